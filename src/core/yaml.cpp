#include "core/yaml.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "core/yaml_cursor.hpp"
#include "core/yaml_flow.hpp"
#include "core/yaml_scalar.hpp"

namespace ballast {
namespace {

constexpr std::size_t kLongestYamlKey = 1024;

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0x7F || (byte < 0x20 && c != '\t' && c != '\n' && c != '\r');
  });
}

std::size_t spaces_before(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Reads a document line by line. A node stands at a line and a column; its column is its indentation, also if something
// stands before it on the line ("- name: x" holds a mapping at column 2). A collection ends before the first line that
// is indented less than itself.
class YamlReader {
 public:
  explicit YamlReader(std::string_view text) : in_(text) {}

  Json read() {
    try {
      skip_blank_lines();
      if (in_.at_end()) return {};
      Json document = read_node(in_.indent(), -1, 0);
      skip_blank_lines();
      if (!in_.at_end()) fail_yaml("this does not belong to anything before it");
      return document;
    } catch (Error& error) {
      if (error.code() == Errc::malformed || error.code() == Errc::unsupported) {
        throw Error(error.code(),
                    fmt::format("line {}: {}", std::min(in_.number() + 1, in_.line_count()), error.message()));
      }
      throw;
    }
  }

 private:
  void skip_blank_lines() {
    while (!in_.at_end() && in_.ends_at(0)) in_.next_line();
    if (!in_.at_end() && is_document_mark()) {
      throw Error(Errc::unsupported, "more than one document");
    }
  }

  bool is_document_mark() const {
    return (in_.line().starts_with("---") || in_.line().starts_with("...")) && in_.space_at(3);
  }

  bool is_item(std::size_t column) const { return in_.at(column) == '-' && in_.space_at(column + 1); }

  void expect_end_of_line(std::size_t column) {
    if (in_.at(column) != '#' && !in_.ends_at(column)) fail_yaml("something follows a value that has ended");
    in_.next_line();
  }

  // `parent` is the column of what the node is in, and -1 for a document.
  Json read_node(std::size_t column, std::ptrdiff_t parent, std::size_t depth) {  // NOLINT(misc-no-recursion)
    require_yaml_depth(depth);
    if (is_item(column)) return read_sequence(column, depth);
    if (end_of_key(column)) return read_mapping(column, depth);
    return read_value(column, parent, depth);
  }

  Json read_sequence(std::size_t column, std::size_t depth) {  // NOLINT(misc-no-recursion)
    Json::List items;
    for (std::size_t begin = column;;) {
      const std::size_t content = in_.skip_spaces(begin + 1);
      if (in_.ends_at(begin + 1)) {
        in_.next_line();
        items.push_back(read_below(column, false, depth));
      } else if (is_item(content) || end_of_key(content)) {
        items.push_back(read_node(content, static_cast<std::ptrdiff_t>(column), depth + 1));
      } else {
        items.push_back(read_value(content, static_cast<std::ptrdiff_t>(column), depth));
      }
      skip_blank_lines();
      if (in_.at_end() || in_.indent() != column || !is_item(column)) break;
      begin = column;
    }
    require_end_of_collection(column);
    return items;
  }

  Json read_mapping(std::size_t column, std::size_t depth) {  // NOLINT(misc-no-recursion)
    Json mapping{Json::Members()};
    while (true) {
      const auto end = end_of_key(column);
      if (!end) fail_yaml("this is neither a key with a value nor part of what stands before it");
      const std::string key = read_key(column, *end);
      mapping.set(key, read_mapping_value(*end + 1, column, depth));
      require_yaml_keys(mapping.members().size());
      skip_blank_lines();
      if (in_.at_end() || in_.indent() != column || is_item(column)) break;
    }
    require_end_of_collection(column);
    return mapping;
  }

  void require_end_of_collection(std::size_t column) const {
    if (!in_.at_end() && in_.indent() > column) fail_yaml("indented deeper than what it belongs to");
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  Json read_mapping_value(std::size_t after_colon, std::size_t column, std::size_t depth) {
    if (in_.ends_at(after_colon)) {
      in_.next_line();
      return read_below(column, true, depth);
    }
    return read_value(in_.skip_spaces(after_colon), static_cast<std::ptrdiff_t>(column), depth);
  }

  // The value that stands in the lines below its key or its dash; null if there is none.
  // NOLINTNEXTLINE(misc-no-recursion)
  Json read_below(std::size_t column, bool may_be_sequence_here, std::size_t depth) {
    skip_blank_lines();
    if (in_.at_end()) return {};
    const std::size_t indent = in_.indent();
    if (indent > column) return read_node(indent, static_cast<std::ptrdiff_t>(column), depth + 1);
    if (indent == column && may_be_sequence_here && is_item(column)) return read_sequence(column, depth + 1);
    return {};
  }

  // The column of the colon that makes a key of what stands at a column.
  std::optional<std::size_t> end_of_key(std::size_t column) const {
    if (in_.at(column) == '?' && in_.space_at(column + 1))
      throw Error(Errc::unsupported, "a key that is not on one line");
    const bool is_quoted = in_.is_quote(column);
    std::size_t end = is_quoted ? end_of_quoted(column) : column;
    if (in_.at(column) == '[' || in_.at(column) == '{' || in_.at(column) == '#') return std::nullopt;
    if (is_quoted) {
      end = in_.skip_spaces(end);
      return in_.at(end) == ':' && in_.space_at(end + 1) ? std::optional(end) : std::nullopt;
    }
    const std::size_t limit = std::min(in_.line().size(), column + kLongestYamlKey);
    for (; end < limit; ++end) {
      if (in_.line()[end] == ':' && in_.space_at(end + 1)) return end;
      if (in_.line()[end] == '#' && end > column && is_yaml_space(in_.line()[end - 1])) return std::nullopt;
    }
    return std::nullopt;
  }

  // The column behind the closing quote, or the end of the line if there is none on it.
  std::size_t end_of_quoted(std::size_t column) const {
    const char quote_mark = in_.line()[column];
    for (std::size_t i = column + 1; i < in_.line().size(); ++i) {
      if (in_.line()[i] == '\\' && quote_mark == '"') {
        ++i;
      } else if (in_.line()[i] == quote_mark) {
        if (quote_mark == '"' || in_.at(i + 1) != '\'') return i + 1;
        ++i;
      }
    }
    return in_.line().size();
  }

  std::string read_key(std::size_t column, std::size_t end) {
    if (in_.is_quote(column)) return in_.read_quoted(column);
    in_.require_plain_start(column, false);
    return std::string(trimmed_right(in_.line().substr(column, end - column)));
  }

  // A value that begins on this line. Its further lines are indented deeper than `parent`.
  Json read_value(std::size_t column, std::ptrdiff_t parent, std::size_t depth) {
    const char first = in_.at(column);
    if (first == '|' || first == '>') return read_block_scalar(column, parent);
    if (first == '[' || first == '{') {
      Json value = read_yaml_flow(in_, column, depth + 1);
      expect_end_of_line(column);
      return value;
    }
    if (in_.is_quote(column)) {
      std::string text = in_.read_quoted(column);
      expect_end_of_line(column);
      return text;
    }
    in_.require_plain_start(column, false);
    return read_plain_lines(column, parent);
  }

  Json read_plain_lines(std::size_t column, std::ptrdiff_t parent) {
    std::string text;
    for (std::size_t breaks = 0;;) {
      const std::size_t end = in_.end_of_plain(column, false);
      if (in_.at(end) == ':') fail_yaml("a colon that makes a key, where a value stands");
      const std::string_view part = trimmed_right(in_.line().substr(column, end - column));
      if (!text.empty()) text += breaks > 1 ? std::string(breaks - 1, '\n') : " ";
      text += part;
      const bool has_comment = end < in_.line().size();
      in_.next_line();
      for (breaks = 1; !in_.at_end() && in_.skip_spaces(0) >= in_.line().size(); ++breaks) in_.next_line();
      if (has_comment || in_.at_end()) break;
      column = in_.skip_spaces(0);
      const bool is_deeper = static_cast<std::ptrdiff_t>(column) > parent;
      if (!is_deeper || in_.line()[column] == '#' || is_document_mark()) break;
    }
    return resolve_plain_scalar(text);
  }

  Json read_block_scalar(std::size_t column, std::ptrdiff_t parent) {
    const BlockScalarStyle style = read_block_style(in_.line().substr(column));
    in_.next_line();
    const std::size_t least = static_cast<std::size_t>(std::max<std::ptrdiff_t>(parent + 1, 1));
    std::size_t indent = style.indent > 0 ? least - 1 + style.indent : least;
    if (style.indent == 0) {
      for (std::size_t i = in_.number(); i < in_.line_count(); ++i) {
        const std::size_t spaces = spaces_before(in_.line(i));
        indent = std::max(indent, spaces);
        if (spaces < in_.line(i).size()) break;
      }
    }
    std::vector<std::string_view> content;
    for (; !in_.at_end(); in_.next_line()) {
      const std::size_t spaces = spaces_before(in_.line());
      if (spaces < indent && spaces < in_.line().size()) break;
      content.push_back(in_.line().size() > indent ? in_.line().substr(indent) : std::string_view());
    }
    return join_block_scalar(style, content);
  }

  YamlCursor in_;
};

}  // namespace

Json parse_yaml(std::string_view text) {
  if (valid_utf8_prefix(text) != text.size()) throw Error(Errc::malformed, "the text is not UTF-8");
  if (has_control_character(text)) throw Error(Errc::malformed, "a control character in the text");
  if (text.starts_with('%')) throw Error(Errc::unsupported, "a directive");
  return YamlReader(text).read();
}

}  // namespace ballast
