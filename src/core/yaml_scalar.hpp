// The scalars of YAML: what a plain one means, what a quoted one stands for, and how several lines become one text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <ballast/json.hpp>

namespace ballast {

// null, a boolean, a number or a text, as YAML 1.1 tells them apart.
Json resolve_plain_scalar(std::string_view text);

// Appends what the escape at `at` (behind the backslash) stands for, and returns the position behind the escape.
// Throws Errc::malformed.
std::size_t append_yaml_escape(std::string& out, std::string_view line, std::size_t at);

// The head of a block scalar: "|", ">-", "|2+".
struct BlockScalarStyle {
  bool is_folded = false;
  char chomping = ' ';     // '-' leaves out the last newlines, '+' keeps all, ' ' keeps one
  std::size_t indent = 0;  // how much deeper than its parent the text stands; 0 if its first line says it
};
BlockScalarStyle read_block_style(std::string_view head);  // throws Errc::malformed

// The text of the lines of a block scalar, with their indentation cut off.
std::string join_block_scalar(const BlockScalarStyle& style, std::span<const std::string_view> lines);

std::string_view trimmed_right(std::string_view text);  // without spaces and tabs at the end

}  // namespace ballast
