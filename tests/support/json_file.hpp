// Reads expectations, which are JSON files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <ballast/json.hpp>

namespace ballast::test {

Json read_json(const std::filesystem::path& path);

std::vector<std::uint64_t> counts(const Json& list);  // a list such as [2, 3]

}  // namespace ballast::test
