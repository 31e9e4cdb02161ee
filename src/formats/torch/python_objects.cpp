#include "formats/torch/python_objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "formats/torch/calls.hpp"
#include "formats/torch/mapping.hpp"
#include "formats/torch/pickled_bytes.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

constexpr std::size_t kMostShown = 200;
constexpr std::size_t kMostDimensions = 64;

// The first few arguments of an object. Each is asked for as the type that it should have; nothing if it has another
// one.
class Given {
 public:
  Given(const Graph& graph, NodeId object) : graph_(graph), made_(construction_of(graph, object)) {}

  std::size_t count() const {
    std::size_t count = 0;
    while (count < 4 && node(count) != kNoNode) ++count;
    return count;
  }
  NodeId node(std::size_t i) const { return made_.argument(graph_, i); }
  std::optional<std::int64_t> integer(std::size_t i) const {
    const NodeId at = node(i);
    if (at == kNoNode || graph_.kind(at) != Kind::integer) return std::nullopt;
    return graph_[at].integer;
  }
  std::optional<double> number(std::size_t i) const {
    if (const auto whole = integer(i)) return static_cast<double>(*whole);
    const NodeId at = node(i);
    if (at == kNoNode || graph_.kind(at) != Kind::real) return std::nullopt;
    return graph_[at].real;
  }
  std::optional<std::string_view> text(std::size_t i) const {
    const NodeId at = node(i);
    if (at == kNoNode || graph_.kind(at) != Kind::text || graph_[at].is_far) return std::nullopt;
    return graph_.chars(at);
  }
  std::optional<std::string> bytes(std::size_t i) const {
    const NodeId at = node(i);
    if (at == kNoNode) return std::nullopt;
    const bool is_near = graph_.kind(at) == Kind::bytes || graph_.kind(at) == Kind::text;  // text if Python 2 wrote it
    if (is_near && !graph_[at].is_far) return std::string(graph_.chars(at));
    return short_bytes(graph_, at);
  }

 private:
  const Graph& graph_;
  Construction made_;
};

using Text = std::optional<std::string>;

Text complex_object(const Graph& graph, NodeId node) {
  const Given given(graph, node);
  const auto real = given.number(0), imaginary = given.number(1);
  return real && imaginary ? Text(complex_text(*real, *imaginary)) : std::nullopt;
}

// range(3) is pickled as range(0, 3, 1).
Text range_object(const Graph& graph, NodeId node) {
  const Given given(graph, node);
  const auto first = given.integer(0), last = given.integer(1), step = given.integer(2);
  if (!first || !last || (given.count() > 2 && !step)) return std::nullopt;
  if (!step || *step == 1) return fmt::format("range({}, {})", *first, *last);
  return fmt::format("range({}, {}, {})", *first, *last, *step);
}

Text bytes_object(const Graph& graph, NodeId node) {
  const auto bytes = short_bytes(graph, node);
  if (!bytes) return std::nullopt;
  const std::string text = quoted(*bytes, true, kMostShown);
  const auto callee = callee_of(graph, node);
  return callee && callee->is("builtins", "bytearray") ? "bytearray(" + text + ")" : text;
}

Text size_object(const Graph& graph, NodeId node) {
  const NodeId sizes = sequence_of(graph, Given(graph, node).node(0));
  if (sizes == kNoNode || graph.length(sizes) > kMostDimensions) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const NodeId size : graph.items(sizes)) {
    if (graph.kind(size) != Kind::integer) return std::nullopt;
    numbers.push_back(graph[size].integer);
  }
  return fmt::format("torch.Size([{}])", fmt::join(numbers, ", "));
}

Text device_object(const Graph& graph, NodeId node) {
  const Given given(graph, node);
  const auto type = given.text(0);
  if (!type) return std::nullopt;
  const auto index = given.integer(1);
  const std::string quoted_type = quoted(*type, false, kMostShown);
  return index ? fmt::format("device(type={}, index={})", quoted_type, *index)
               : fmt::format("device(type={})", quoted_type);
}

Text path_object(const Graph& graph, NodeId node) {
  const Given given(graph, node);
  std::string path;
  for (std::size_t i = 0; i < 64 && given.node(i) != kNoNode; ++i) {
    const auto part = given.text(i);
    if (!part) return std::nullopt;
    if (!path.empty() && !path.ends_with('/')) path += '/';
    path += *part;
  }
  if (path.empty()) path += '.';
  return fmt::format("{}({})", callee_of(graph, node)->name, quoted(path, false, kMostShown));
}

Text decimal_object(const Graph& graph, NodeId node) {
  const auto digits = Given(graph, node).text(0);
  return digits ? Text(fmt::format("Decimal({})", quoted(*digits, false, kMostShown))) : std::nullopt;
}

// "1/2", or "3" if it is a whole number; since Python 3.12 the two numbers.
Text fraction_object(const Graph& graph, NodeId node) {
  const Given given(graph, node);
  if (const auto above = given.integer(0), below = given.integer(1); above && below)
    return fmt::format("Fraction({}, {})", *above, *below);
  const auto text = given.text(0);
  if (!text) return std::nullopt;
  const auto slash = text->find('/');
  return fmt::format("Fraction({}, {})", text->substr(0, slash),
                     slash == std::string_view::npos ? "1" : text->substr(slash + 1));
}

Text type_object(const Graph& graph, NodeId node) {
  const NodeId of = Given(graph, node).node(0);
  if (of == kNoNode) return std::nullopt;
  if (graph.kind(of) == Kind::none) return "<class 'NoneType'>";
  if (graph.is_global(of, "builtins", "Ellipsis")) return "<class 'ellipsis'>";
  if (graph.is_global(of, "builtins", "NotImplemented")) return "<class 'NotImplementedType'>";
  return std::nullopt;
}

unsigned byte_at(std::string_view bytes, std::size_t i) { return static_cast<unsigned char>(bytes[i]); }

// Year (2 bytes), month, day; in a datetime then hour, minute, second, microsecond (3). The high bit of the month or
// the hour says which of two equal hours is meant.
Text date_object(const Graph& graph, NodeId node) {
  const Given given(graph, node);
  const auto bytes = given.bytes(0);
  const auto callee = callee_of(graph, node);
  const bool is_date = callee->name == "date", is_time = callee->name == "time";
  const std::size_t date_bytes = is_time ? 0 : 4, time_bytes = is_date ? 0 : 6;
  if (!bytes || bytes->size() != date_bytes + time_bytes || given.count() != 1) return std::nullopt;
  std::vector<unsigned> parts;
  if (!is_time) parts = {byte_at(*bytes, 0) * 256 + byte_at(*bytes, 1), byte_at(*bytes, 2) & 0x7F, byte_at(*bytes, 3)};
  if (!is_date) {
    const std::string_view time = std::string_view(*bytes).substr(date_bytes);
    const unsigned micro = byte_at(time, 3) * 65536 + byte_at(time, 4) * 256 + byte_at(time, 5);
    parts.insert(parts.end(), {byte_at(time, 0) & 0x7F, byte_at(time, 1)});
    if (byte_at(time, 2) != 0 || micro != 0) parts.push_back(byte_at(time, 2));
    if (micro != 0) parts.push_back(micro);
  }
  return fmt::format("datetime.{}({})", callee->name, fmt::join(parts, ", "));
}

Text duration_object(const Graph& graph, NodeId node) {
  const Given given(graph, node);
  std::string text;
  const std::string_view names[] = {"days", "seconds", "microseconds"};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    const auto part = given.integer(i);
    if (!part) return std::nullopt;
    if (*part != 0) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", names[i], *part);
  }
  return fmt::format("datetime.timedelta({})", text.empty() ? "0" : text);
}

struct ShownObject {
  std::string_view module, name;
  Text (*show)(const Graph&, NodeId);
};
constexpr ShownObject kShownObjects[] = {
    {"builtins", "complex", complex_object},
    {"builtins", "range", range_object},
    {"builtins", "xrange", range_object},
    {"builtins", "bytes", bytes_object},
    {"builtins", "bytearray", bytes_object},
    {"_codecs", "encode", bytes_object},
    {"builtins", "type", type_object},
    {"torch", "Size", size_object},
    {"torch", "device", device_object},
    {"pathlib", "PosixPath", path_object},
    {"pathlib", "PurePosixPath", path_object},
    {"pathlib._local", "PosixPath", path_object},
    {"pathlib._local", "PurePosixPath", path_object},
    {"decimal", "Decimal", decimal_object},
    {"fractions", "Fraction", fraction_object},
    {"datetime", "date", date_object},
    {"datetime", "datetime", date_object},
    {"datetime", "time", date_object},
    {"datetime", "timedelta", duration_object},
};

constexpr std::string_view kBuiltinClasses[] = {"bool",      "bytearray", "bytes", "complex", "dict",  "float",
                                                "frozenset", "int",       "list",  "object",  "range", "set",
                                                "slice",     "str",       "tuple", "type"};

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string complex_text(double real, double imaginary) {
  if (real == 0 && !std::signbit(real)) return fmt::format("{}j", imaginary);
  return fmt::format("({}{:+}j)", real, imaginary);
}

// Uses single quotes, unless the text has single quotes and no double quotes.
std::string quoted(std::string_view chars, bool is_bytes, std::size_t most) {
  const bool use_double = chars.find('\'') != std::string_view::npos && chars.find('"') == std::string_view::npos;
  const char mark = use_double ? '"' : '\'';
  std::string text = is_bytes ? "b" : "";
  text += mark;
  for (std::size_t i = 0; i < chars.size(); ++i) {
    if (text.size() > most) return text + "…";
    const auto c = static_cast<unsigned char>(chars[i]);
    if (c == static_cast<unsigned char>(mark) || c == '\\')
      text += fmt::format("\\{}", chars[i]);
    else if (c == '\n')
      text += "\\n";
    else if (c == '\r')
      text += "\\r";
    else if (c == '\t')
      text += "\\t";
    else if (c < 0x20 || c == 0x7F || (is_bytes && c > 0x7F))
      text += fmt::format("\\x{:02x}", c);
    else
      text += chars[i];
  }
  return text + mark;
}

std::optional<std::string> short_bytes(const Graph& graph, NodeId node) {
  constexpr std::uint64_t kMost = 1024;  // the text that is shown is shorter
  const auto length = graph.kind(node) == Kind::object ? pickled_length(graph, node) : std::nullopt;
  if (!length || *length > kMost) return std::nullopt;
  const auto bytes = pickled_bytes_source(graph, node, {});
  std::string chars(static_cast<std::size_t>(bytes->size_bytes()), '\0');
  bytes->read(0, std::as_writable_bytes(std::span(chars)));
  return chars;
}

std::string global_text(const Graph& graph, NodeId node) {
  const auto global = global_of(graph, node);
  if (global->module != "builtins") return fmt::format("{}.{}", graph.global(node).module, global->name);
  if (global->name == "Ellipsis" || global->name == "NotImplemented") return std::string(global->name);
  // Python 2 had two names for each of these classes.
  const std::string_view name = global->name == "unicode" ? "str" : global->name == "long" ? "int" : global->name;
  const bool is_class = std::ranges::find(kBuiltinClasses, name) != std::end(kBuiltinClasses);
  return is_class ? fmt::format("<class '{}'>", name) : fmt::format("builtins.{}", name);
}

std::optional<std::string> value_object_text(const Graph& graph, NodeId node) {
  const auto callee = callee_of(graph, node);
  if (!callee) return std::nullopt;
  for (const ShownObject& known : kShownObjects) {
    if (callee->is(known.module, known.name)) return known.show(graph, node);
  }
  return std::nullopt;
}

}  // namespace ballast::torch
