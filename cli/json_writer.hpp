// JsonWriter: writes a JSON document piece by piece, for people and programs. A container that is opened with
// Layout::lines has one member a line; everything inside a member stays on its line, so that three hundred thousand
// tensors are as many lines to grep.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "output.hpp"

namespace ballast::cli {

class JsonWriter {
 public:
  enum class Layout : std::uint8_t { inline_, lines };

  explicit JsonWriter(Output& out) : out_(out) {}

  // Begins a whole document of `schema`; finish() closes it.
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

  // Writes a literal key of ours, which needs no escapes. Most keys are such literals, and there are many.
  template <std::size_t n>
  requires(n < 64) void key(const char (&name)[n]) {
    separate();
    char* const room = out_.room(n + 3);
    room[0] = '"';
    std::memcpy(room + 1, name, n - 1);
    std::memcpy(room + n, "\": ", 3);
    out_.use(n + 3);
    after_key_ = true;
  }

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(std::nullptr_t) { raw("null"); }
  void value(std::same_as<bool> auto b) { raw(b ? "true" : "false"); }

  // Writes the shortest form that reads back as the same number. NaN and the infinities, which JSON does not have, are
  // written as strings.
  template <class Number>
  requires(std::floating_point<Number> ||
           (std::integral<Number> && !std::same_as<Number, bool>)) void value(Number number) {
    if constexpr (std::floating_point<Number>) {
      if (number != number) return raw("\"NaN\"");
      if (number - number != 0) return raw(number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    }
    separate();
    constexpr std::size_t kLongest = 32;
    char* const text = out_.room(kLongest);
    const auto size = static_cast<std::size_t>(std::to_chars(text, text + kLongest, number).ptr - text);
    // "-0" would read back as an integer, without its sign.
    if (std::floating_point<Number> && std::string_view(text, size) == "-0") return out_.write("-0.0");
    out_.use(size);
  }

  template <class Key, class T>
  void field(const Key& name, const T& v) {
    key(name);
    value(v);
  }
  template <class Key, class Range>
  void array_field(const Key& name, const Range& values) {
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
  void separate() {
    if (after_key_ || open_.empty()) {
      after_key_ = false;
      return;
    }
    Level& level = open_.back();
    if (level.lines) return separate_lines();
    if (!level.empty) {
      std::memcpy(out_.room(2), ", ", 2);
      out_.use(2);
    }
    level.empty = false;
  }
  void separate_lines();
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
