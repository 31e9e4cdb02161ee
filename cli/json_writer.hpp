// JsonWriter: a JSON document written as it comes, for people and programs: what is opened with Layout::lines has one
// member a line, everything deeper stays on its line, so that three hundred thousand tensors are as many lines to grep.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "output.hpp"

namespace ballast::cli {

class JsonWriter {
 public:
  enum class Layout : std::uint8_t { inline_, lines };

  explicit JsonWriter(Output& out) : out_(out) {}

  // A whole document of `schema`, closed by finish().
  JsonWriter(Output& out, std::string_view schema) : out_(out) {
    begin_object(Layout::lines);
    field("schema", schema);
  }
  void finish() {
    while (!open_.empty()) end();
    out_.write('\n');
  }

  void begin_object(Layout layout = Layout::inline_) { begin('{', '}', layout); }
  void begin_array(Layout layout = Layout::inline_) { begin('[', ']', layout); }
  void end();
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(std::nullptr_t) { raw("null"); }
  void value(std::same_as<bool> auto b) { raw(b ? "true" : "false"); }

  // Shortest form that reads back as the same number; NaN and the infinities, which JSON has not, as strings.
  template <class Number>
  requires(std::floating_point<Number> ||
           (std::integral<Number> && !std::same_as<Number, bool>)) void value(Number number) {
    if constexpr (std::floating_point<Number>) {
      if (number != number) return raw("\"NaN\"");
      if (number - number != 0) return raw(number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    }
    char text[32];
    const auto result = std::to_chars(text, text + sizeof text, number);
    const std::string_view shortest(text, static_cast<std::size_t>(result.ptr - text));
    // "-0" would read back as an integer, without its sign.
    raw(std::floating_point<Number> && shortest == "-0" ? "-0.0" : shortest);
  }

  template <class T>
  void field(std::string_view name, const T& v) {
    key(name);
    value(v);
  }
  template <class Range>
  void array_field(std::string_view name, const Range& values) {
    key(name);
    begin_array();
    for (const auto& v : values) value(v);
    end();
  }

 private:
  struct Level {
    char close;
    bool lines;
    bool empty = true;
  };

  void begin(char open, char close, Layout layout);
  void separate();
  void new_line();
  void raw(std::string_view text) {
    separate();
    out_.write(text);
  }
  void string(std::string_view text);

  Output& out_;
  std::vector<Level> open_;
  bool after_key_ = false;
};

}  // namespace ballast::cli
