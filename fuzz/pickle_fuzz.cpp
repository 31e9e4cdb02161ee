// The pickle machine and the scanner on any bytes.
//
//   A graph is sound whatever made it: every number in it leads to a node, every chain of links is as long as it says.
//   If the machine reads a pickle, the lenient machine reads it too, without a finding and as the same nodes.
//   If the machine stops, the lenient machine has seen the same globals, and perhaps more.
//   The scanner sees every global that the machine saw.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include <ballast/error.hpp>

#include "formats/pickle/machine.hpp"
#include "formats/pickle/scan.hpp"

namespace {

using ballast::Error;
using ballast::Limits;
using ballast::pickle::Graph;
using ballast::pickle::Kind;
using ballast::pickle::kNoNode;
using ballast::pickle::Node;
using ballast::pickle::NodeId;
using ballast::pickle::ObjectParts;
using ballast::pickle::Pickle;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

std::uint64_t count_of(const Graph& graph, Graph::Items items) {
  std::uint64_t count = 0;
  for (const NodeId item : items) {
    require(item < graph.size(), "a link leads to no node");
    ++count;
  }
  return count;
}

void check_object(const Graph& graph, NodeId id) {
  const ObjectParts parts = graph.object(id);
  require(parts.callee < graph.size(), "an object of no global");
  require(graph.kind(parts.arguments) == Kind::tuple, "arguments that are no tuple");
  require(parts.keywords == kNoNode || graph.kind(parts.keywords) == Kind::dict, "keywords that are no dict");
  require(parts.state == kNoNode || parts.state < graph.size(), "a state that is no node");
  require(count_of(graph, graph.pairs(id)) == 2 * parts.pairs_count, "a wrong number of pairs");
}

void check(const Graph& graph, std::uint64_t size) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node node = graph[id];
    require(node.offset < size, "a node from outside the file");
    require(!node.is_far || graph.length(id) <= size - node.offset, "a string from outside the file");
    require(node.is_far || graph.chars(id).size() <= size * 3, "a string that is longer than the file");
    if (node.kind == Kind::object) check_object(graph, id);
    if (node.kind == Kind::dict) require(count_of(graph, graph.pairs(id)) == 2 * graph.length(id), "wrong length");
    if (node.kind == Kind::list || node.kind == Kind::tuple || node.kind == Kind::object)
      require(count_of(graph, graph.items(id)) == graph.length(id), "a wrong number of items");
    if (node.kind == Kind::persistent) require(graph.persistent_id(id) < id, "a persistent id that is no node");
    if (node.kind == Kind::global) static_cast<void>(graph.global(id).module.size());
  }
}

std::optional<Pickle> run_strictly(Graph& graph, std::uint64_t size, const Limits& limits) {
  try {
    return ballast::pickle::run(graph, 0, size, limits);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const auto source = ballast::memory_source({first, first + size});
  Limits limits;
  limits.max_pickle_nodes = 100'000;

  Graph strict(source), lenient(source);
  const auto pickle = run_strictly(strict, size, limits);
  check(strict, size);
  require(!pickle || pickle->root < strict.size(), "a root that is no node");

  std::vector<Error> complaints;
  try {
    const Pickle same = ballast::pickle::run_leniently(lenient, 0, size, limits, complaints);
    if (pickle) require(same.end == pickle->end && same.root == pickle->root, "lenient and strict end differently");
  } catch (const Error&) {
    require(!pickle, "lenient refuses what strict reads");
  }
  check(lenient, size);
  require(!pickle || (complaints.empty() && lenient.size() == strict.size()), "lenient reads something else");
  require(lenient.globals().size() >= strict.globals().size(), "lenient sees fewer globals");

  ballast::pickle::Scan scan;
  ballast::pickle::scan_pickles(source, 0, size, "", limits, scan);
  require(scan.globals.size() >= lenient.globals().size(), "the scan sees fewer globals");
  return 0;
}
