#include "formats/torch/arguments.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>

namespace ballast::torch {

using pickle::Graph;
using pickle::Kind;
using pickle::NodeId;

namespace {

// No call that is known here has more arguments, and an argument list may be as long as the file.
constexpr std::size_t kMostArguments = 16;

bool is_sequence(Kind kind) { return kind == Kind::tuple || kind == Kind::list; }

}  // namespace

Arguments::Arguments(const Graph& graph, NodeId tuple, std::string_view what)
    : graph_(graph), tuple_(tuple), what_(what) {
  if (tuple == pickle::kNoNode) throw Error(Errc::malformed, fmt::format("{}: has no arguments", what));
  if (!is_sequence(graph.kind(tuple))) complain(0, "takes a tuple of arguments");
  for (const NodeId item : graph.items(tuple)) {
    if (items_.size() == kMostArguments) break;
    items_.push_back(item);
  }
}

void Arguments::require(std::size_t count) const {
  if (items_.size() < count) complain(0, fmt::format("takes {} arguments, but has {}", count, items_.size()));
}

std::string Arguments::text(std::size_t i, std::string_view what) const {
  require(i + 1);
  const Kind kind = graph_.kind(items_[i]);
  if (kind != Kind::text && kind != Kind::bytes) complain(i, fmt::format("the {} is no text", what));
  if (graph_[items_[i]].is_far) complain(i, fmt::format("the {} is {} bytes long", what, graph_.length(items_[i])));
  return std::string(graph_.chars(items_[i]));
}

std::int64_t Arguments::integer(std::size_t i, std::string_view what) const {
  require(i + 1);
  const Kind kind = graph_.kind(items_[i]);
  if (kind != Kind::integer && kind != Kind::boolean) complain(i, fmt::format("the {} is no 64-bit integer", what));
  return graph_[items_[i]].integer;
}

std::uint64_t Arguments::count(std::size_t i, std::string_view what) const {
  const std::int64_t value = integer(i, what);
  if (value < 0) complain(i, fmt::format("the {} is {}", what, value));
  return static_cast<std::uint64_t>(value);
}

bool Arguments::truth(std::size_t i) const noexcept {
  return has(i) && graph_.kind(items_[i]) == Kind::boolean && graph_[items_[i]].integer != 0;
}

double Arguments::real(std::size_t i, std::string_view what) const {
  require(i + 1);
  if (graph_.kind(items_[i]) == Kind::real) return graph_[items_[i]].real;
  return static_cast<double>(integer(i, what));
}

std::vector<std::uint64_t> Arguments::counts(std::size_t i, std::string_view what) const {
  require(i + 1);
  NodeId node = items_[i];
  if (graph_.kind(node) == Kind::object && graph_.object(node).arguments != pickle::kNoNode) {  // torch.Size((2, 3))
    const Arguments size(graph_, graph_.object(node).arguments, what);
    size.require(1);
    node = size[0];
  }
  if (!is_sequence(graph_.kind(node))) complain(i, fmt::format("the {} is no tuple", what));
  std::vector<std::uint64_t> values;
  for (const NodeId item : graph_.items(node)) {
    const pickle::Node& number = graph_[item];
    if (number.kind != Kind::integer) complain(i, fmt::format("the {} holds something that is no integer", what));
    if (number.integer < 0) complain(i, fmt::format("the {} holds {}", what, number.integer));
    values.push_back(static_cast<std::uint64_t>(number.integer));
  }
  return values;
}

void Arguments::complain(std::size_t i, const std::string& message) const {
  const auto has_place = [&](NodeId item) {
    return graph_.kind(item) != Kind::none &&
           graph_.kind(item) != Kind::boolean;  // a file has one node for each of these values
  };
  const NodeId culprit = i < items_.size() && has_place(items_[i]) ? items_[i] : tuple_;
  throw Error(Errc::malformed, fmt::format("{}: {}", what_, message)).at_byte(graph_[culprit].offset);
}

}  // namespace ballast::torch
