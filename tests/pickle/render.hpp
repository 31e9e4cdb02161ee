// A graph as one line of text, so that a table or another program can say what it should be:
//   None True 12 -7 real(3ff0000000000000) text(68656c6c6f) bytes() bytearray(00)
//   (item,...) #0[item,...] #1{key:value,...} #2set(item,...) frozenset(item,...) module.name <id>
//   #3reduce(callee,arguments), followed by +keywords, |state, [items] and {pairs} if it has them
// Strings are in hex, and the items of sets in the order of their text. A value that can change is numbered when it is
// first seen, and is #number alone from then on. The rendering recurses: it is for graphs that tests make.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "formats/pickle/graph.hpp"

namespace ballast::test {

class Renderer {
 public:
  explicit Renderer(const pickle::Graph& graph) : graph_(graph) {}

  std::string operator()(pickle::NodeId id) {
    using pickle::Kind;
    switch (graph_.kind(id)) {
      case Kind::none: return "None";
      case Kind::boolean: return graph_[id].integer != 0 ? "True" : "False";
      case Kind::integer: return std::to_string(graph_[id].integer);
      case Kind::big_integer: return std::string(graph_.chars(id));
      case Kind::real: return real(graph_[id].real);
      case Kind::text: return "text(" + hex(graph_.read_chars(id)) + ")";
      case Kind::bytes: return "bytes(" + hex(graph_.read_chars(id)) + ")";
      case Kind::bytearray: return "bytearray(" + hex(graph_.read_chars(id)) + ")";
      case Kind::tuple: return "(" + items(id) + ")";
      case Kind::list: return numbered(id, [&] { return "[" + items(id) + "]"; });
      case Kind::set: return numbered(id, [&] { return "set(" + items(id, true) + ")"; });
      case Kind::frozenset: return "frozenset(" + items(id, true) + ")";
      case Kind::dict: return numbered(id, [&] { return "{" + pairs(id) + "}"; });
      case Kind::global: return fmt::format("{}.{}", graph_.global(id).module, graph_.global(id).name);
      case Kind::object: return numbered(id, [&] { return object(id); });
      case Kind::persistent: return "<" + (*this)(graph_.persistent_id(id)) + ">";
    }
    return "?";
  }

 private:
  static std::string real(double value) {
    return std::isnan(value) ? "real(nan)" : fmt::format("real({:016x})", std::bit_cast<std::uint64_t>(value));
  }

  static std::string hex(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return out;
  }

  template <class Show>
  std::string numbered(pickle::NodeId id, Show show) {
    const auto [place, is_new] = numbers_.try_emplace(id, numbers_.size());
    const std::string number = fmt::format("#{}", place->second);
    return is_new ? number + show() : number;
  }

  std::string items(pickle::NodeId id, bool sorted = false) {
    std::vector<std::string> words;
    for (const pickle::NodeId item : graph_.items(id)) words.push_back((*this)(item));
    if (sorted) std::sort(words.begin(), words.end());
    return fmt::format("{}", fmt::join(words, ","));
  }

  std::string pairs(pickle::NodeId id) {
    std::string out;
    bool is_key = true;
    for (const pickle::NodeId item : graph_.pairs(id)) {
      if (is_key && !out.empty()) out += ',';
      out += (*this)(item) + (is_key ? ":" : "");
      is_key = !is_key;
    }
    return out;
  }

  std::string object(pickle::NodeId id) {
    static constexpr std::string_view kMakings[] = {"reduce", "newobj", "newobj_ex", "inst", "obj"};
    const pickle::ObjectParts parts = graph_.object(id);
    const auto making = kMakings[static_cast<std::size_t>(graph_[id].making)];
    std::string out = fmt::format("{}({},", making, (*this)(parts.callee));
    out += (*this)(parts.arguments) + ")";
    if (parts.keywords != pickle::kNoNode) out += "+" + (*this)(parts.keywords);
    if (graph_.length(id) != 0) out += "[" + items(id) + "]";
    if (parts.pairs_count != 0) out += "{" + pairs(id) + "}";
    if (parts.state != pickle::kNoNode) out += "|" + (*this)(parts.state);
    return out;
  }

  const pickle::Graph& graph_;
  std::map<pickle::NodeId, std::size_t> numbers_;
};

inline std::string render(const pickle::Graph& graph, pickle::NodeId root) { return Renderer(graph)(root); }

}  // namespace ballast::test
