// Words for people: the command, and any program that prints checkpoints, needs these functions to show names and
// numbers safely. They keep no state, so any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

// Turns control characters, bidirectional overrides and broken UTF-8 into visible escapes; leaves all other text
// unchanged.
std::string escape_for_terminal(std::string_view text);
void append_escaped(std::string& out, std::string_view text);  // the same, appended to `out`

std::string format_bytes(std::uint64_t bytes);  // "1.23 GB", decimal
std::string format_count(std::uint64_t count);  // "1.23 B", "11 008"

// Reads "5GB", "64MiB", "123", with decimal and binary units.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// Puts "layers.2" before "layers.10".
bool natural_less(std::string_view a, std::string_view b);

// The indices of the names in natural_less order. Much faster than sorting the names by natural_less.
std::vector<std::size_t> natural_order(std::span<const std::string_view> names);

}  // namespace ballast
