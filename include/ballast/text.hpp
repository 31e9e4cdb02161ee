// Words for people: what the command, and any program that prints checkpoints, needs to show names and numbers safely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

// Control characters, bidirectional overrides and broken UTF-8 as visible escapes; the rest as it is.
std::string escape_for_terminal(std::string_view text);

std::string format_bytes(std::uint64_t bytes);  // "1.23 GB", decimal
std::string format_count(std::uint64_t count);  // "1.23 B", "11 008"

// "5GB", "64MiB", "123": decimal and binary units.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// "layers.2" before "layers.10".
bool natural_less(std::string_view a, std::string_view b);

// The numbers of the names in that order. Much faster than to sort them by natural_less.
std::vector<std::size_t> natural_order(std::span<const std::string_view> names);

}  // namespace ballast
