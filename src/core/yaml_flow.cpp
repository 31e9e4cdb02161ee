#include "core/yaml_flow.hpp"

#include <string>
#include <string_view>
#include <utility>

#include <ballast/error.hpp>

#include "core/yaml_scalar.hpp"

namespace ballast {
namespace {

class YamlFlowReader {
 public:
  YamlFlowReader(YamlCursor& in, std::size_t& column) : in_(in), column_(column) {}

  Json read(std::size_t depth) {  // NOLINT(misc-no-recursion)
    require_yaml_depth(depth);
    if (in_.at(column_) == '[') return read_list(depth);
    if (in_.at(column_) == '{') return read_mapping(depth);
    if (in_.is_quote(column_)) return in_.read_quoted(column_);
    in_.require_plain_start(column_, true);
    return read_plain();
  }

 private:
  // Also to other lines, and past comments.
  void skip_space() {
    while (true) {
      column_ = in_.skip_spaces(column_);
      if (column_ < in_.line().size() && !in_.ends_at(column_)) return;
      in_.next_line();
      column_ = 0;
      if (in_.at_end()) fail_yaml("a list in brackets does not end");
    }
  }

  Json read_plain() {
    std::string text;
    while (true) {
      const std::size_t end = in_.end_of_plain(column_, true);
      const std::string_view part = trimmed_right(in_.line().substr(column_, end - column_));
      if (!text.empty() && !part.empty()) text += ' ';
      text += part;
      column_ = end;
      if (end < in_.line().size()) break;
      skip_space();
      if (in_.end_of_plain(column_, true) == column_) break;
    }
    return resolve_plain_scalar(text);
  }

  Json read_list(std::size_t depth) {  // NOLINT(misc-no-recursion)
    Json::List items;
    ++column_;
    while (true) {
      skip_space();
      if (in_.at(column_) == ']') break;
      Json item = read(depth + 1);
      skip_space();
      if (is_colon()) item = Json::Members{{key_text(item), read_value(depth)}};
      items.push_back(std::move(item));
      if (!skip_comma(']')) break;
    }
    ++column_;
    return items;
  }

  Json read_mapping(std::size_t depth) {  // NOLINT(misc-no-recursion)
    Json mapping{Json::Members()};
    ++column_;
    while (true) {
      skip_space();
      if (in_.at(column_) == '}') break;
      const bool is_quoted = in_.is_quote(column_);
      const std::string key = key_text(read(depth + 1));
      skip_space();
      const bool has_value = is_colon() || (is_quoted && in_.at(column_) == ':');
      mapping.set(key, has_value ? read_value(depth) : Json());
      require_yaml_keys(mapping.members().size());
      if (!skip_comma('}')) break;
    }
    ++column_;
    return mapping;
  }

  bool is_colon() const {
    constexpr std::string_view kEnds = ",[]{}";
    return in_.at(column_) == ':' &&
           (in_.space_at(column_ + 1) || kEnds.find(in_.at(column_ + 1)) != std::string_view::npos);
  }

  // Behind a colon.
  Json read_value(std::size_t depth) {  // NOLINT(misc-no-recursion)
    constexpr std::string_view kEnds = ",]}";
    ++column_;
    skip_space();
    return kEnds.find(in_.at(column_)) == std::string_view::npos ? read(depth + 1) : Json();
  }

  // False at the closing bracket.
  bool skip_comma(char closing) {
    skip_space();
    if (in_.at(column_) == closing) return false;
    if (in_.at(column_) != ',') fail_yaml("no comma between two values in brackets");
    ++column_;
    return true;
  }

  static std::string key_text(const Json& key) {
    if (key.is_list() || key.is_object()) throw Error(Errc::unsupported, "a key that is not a scalar");
    return key.is_text() ? key.text() : to_string(key);
  }

  YamlCursor& in_;
  std::size_t& column_;
};

}  // namespace

Json read_yaml_flow(YamlCursor& in, std::size_t& column, std::size_t depth) {
  return YamlFlowReader(in, column).read(depth);
}

}  // namespace ballast
