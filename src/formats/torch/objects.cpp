#include "formats/torch/objects.hpp"

#include <ballast/error.hpp>

#include <utility>
#include <vector>

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

// Visits every node that can be reached once, and does not look into tensors.
class Search {
 public:
  Search(const Graph& graph, Rebuilder& rebuilder, Objects& objects)
      : graph_(graph), rebuilder_(rebuilder), objects_(objects), seen_(graph.size()) {}

  void run(NodeId root) {
    push(root);
    while (!waiting_.empty()) {
      const NodeId node = waiting_.back();
      waiting_.pop_back();
      visit(node);
    }
  }

 private:
  void push(NodeId node) {
    if (node == kNoNode || seen_[node]) return;
    seen_[node] = true;
    waiting_.push_back(node);
  }

  void visit(NodeId node) {
    switch (graph_.kind(node)) {
      case Kind::tuple:
      case Kind::list:
      case Kind::set:
      case Kind::frozenset:
        for (const NodeId item : graph_.items(node)) push(item);
        break;
      case Kind::dict:
        for (const NodeId item : graph_.pairs(node)) push(item);
        break;
      case Kind::persistent: is_tensor(node); break;
      case Kind::object:
        if (!is_tensor(node)) look_into(node);
        break;
      default: break;
    }
  }

  bool is_tensor(NodeId node) try {
    if (const Checkpoint* file = graph_.kind(node) == Kind::object ? rebuilder_.nested_file(node) : nullptr) {
      objects_.files.emplace(node, *file);
      return true;
    }
    auto rebuilt = rebuilder_.rebuild(node);
    if (!rebuilt) return false;
    objects_.tensors.emplace(node, *std::move(rebuilt));
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::unsupported) throw;
    return false;
  }

  void look_into(NodeId node) {
    const auto parts = graph_.object(node);
    for (const NodeId part : {parts.callee, parts.arguments, parts.keywords, parts.state}) push(part);
    for (const NodeId item : graph_.items(node)) push(item);
    for (const NodeId item : graph_.pairs(node)) push(item);
  }

  const Graph& graph_;
  Rebuilder& rebuilder_;
  Objects& objects_;
  std::vector<bool> seen_;
  std::vector<NodeId> waiting_;
};

}  // namespace

void keep_objects(Graph& graph, NodeId root, Rebuilder& rebuilder, Objects& objects) {
  Search(graph, rebuilder, objects).run(root);
  objects.root = root;
  objects.graph.emplace(std::move(graph));
}

}  // namespace ballast::torch
