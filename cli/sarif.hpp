// SARIF 2.1.0: findings for programs that show them beside the files, such as code hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "output.hpp"

namespace ballast::cli {

struct SarifRule {
  std::string_view id, text;
};

struct SarifResult {
  std::string_view rule;   // the id of a rule
  std::string_view level;  // "error" or "warning"
  std::string message;
  std::string file;
  std::optional<std::uint64_t> offset{};  // in the file
};

void write_sarif(Output& out, std::string_view tool, std::span<const SarifRule> rules,
                 std::span<const SarifResult> results);

}  // namespace ballast::cli
