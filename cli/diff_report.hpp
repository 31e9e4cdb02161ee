// What diff shows: a report as text for people, and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/align.hpp>
#include <ballast/diff.hpp>

#include "session.hpp"

namespace ballast::cli {

// The two sides of a comparison, and how the user wants to see what differs.
struct DiffView {
  std::string target_a, target_b;
  std::string_view file_type_a, file_type_b;  // "Q4_K_M", of a GGUF that says it
  const Aligned* sides = nullptr;
  std::optional<std::uint64_t> top{};  // so many changed tensors, the largest change first
  bool compares_values = true;
};

void write_diff_json(Session& session, const DiffView& view, const DiffReport& report);
void write_diff_text(Session& session, const DiffView& view, const DiffReport& report);

// The tensors that only one side has, and those that changed. A terminal gets a table of the changes with numbers, and
// all others folded by the patterns of their names, unless -v asks for each; a pipe gets a line for each tensor.
void write_diff_lines(Session& session, const DiffView& view, const DiffReport& report);

std::string percent(const Terminal& screen, double share);

}  // namespace ballast::cli
