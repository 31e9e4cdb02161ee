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
  std::optional<std::uint64_t> top;  // so many changed tensors, the largest change first
};

void write_diff_json(Session& session, const DiffView& view, const DiffReport& report);
void write_diff_text(Session& session, const DiffView& view, const DiffReport& report);

}  // namespace ballast::cli
