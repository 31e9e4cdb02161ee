// YamlCursor: a line of a YAML text, the columns in it, and the scalars that begin there. Readers of collections move
// it on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

// What a hostile text cannot go beyond.
inline constexpr std::size_t kMostYamlDepth = 32;
inline constexpr std::size_t kMostYamlKeys = 1024;

[[noreturn]] void fail_yaml(const char* message);  // Errc::malformed
void require_yaml_depth(std::size_t depth);        // throws Errc::limit
void require_yaml_keys(std::size_t count);         // throws Errc::limit

inline bool is_yaml_space(char c) { return c == ' ' || c == '\t'; }

class YamlCursor {
 public:
  explicit YamlCursor(std::string_view text);

  bool at_end() const { return number_ >= lines_.size(); }
  std::size_t number() const { return number_; }  // of the line, from 0
  std::string_view line() const { return lines_[number_]; }
  std::string_view line(std::size_t number) const { return lines_[number]; }
  std::size_t line_count() const { return lines_.size(); }
  void next_line() { ++number_; }

  // Behind a line's last character there is a newline, which counts as a space.
  char at(std::size_t column) const { return column < line().size() ? line()[column] : '\n'; }
  bool space_at(std::size_t column) const { return column >= line().size() || is_yaml_space(line()[column]); }
  std::size_t skip_spaces(std::size_t column) const;
  bool ends_at(std::size_t column) const;  // nothing but a comment follows
  std::size_t indent() const;              // of a line that is not blank; throws Errc::malformed for a tab

  bool is_quote(std::size_t column) const { return at(column) == '"' || at(column) == '\''; }
  // Leaves `column` behind the closing quote. Lines are folded: a line break is a space, an empty line a line break.
  std::string read_quoted(std::size_t& column);

  // Throws if no plain scalar may begin there. Inside of brackets, more characters mean something.
  void require_plain_start(std::size_t column, bool in_flow) const;
  std::size_t end_of_plain(std::size_t column, bool in_flow) const;  // on this line

 private:
  void next_quoted_line(std::size_t& column);
  void fold_quoted_lines(std::string& text, std::size_t& column);

  std::vector<std::string_view> lines_;
  std::size_t number_ = 0;
  std::size_t kept_ = 0;  // how much of a quoted text stays, even if it ends in spaces
};

}  // namespace ballast
