// Expectations come as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <ballast/json.hpp>

namespace ballast::test {

Json read_json(const std::filesystem::path& path);

std::vector<std::uint64_t> counts(const Json& list);  // [2, 3]

}  // namespace ballast::test
