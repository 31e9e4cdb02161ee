// Tree: the tensors of a checkpoint by the prefixes of their names, and how much lies under each prefix.
//
// Names are split at '.' and '/'. A prefix under which there is only one way on is joined with it: "layers" and the
// only thing in it are one node. Siblings that differ only in their number, and have the same names, dtypes and shapes
// under them, are folded into one node, "layers.{0..31}", which is a glob that matches all of them.
//
// tree_of() reads no tensor data, and takes time in proportion to the names. It may be called from several threads at
// once. The tree owns everything in it.
//
// Example:
//   for (const TreeNode& node : tree_of(open("model.gguf"), {.depth = 2}).nodes)
//     std::printf("%*s%s %llu\n", int(2 * node.depth), "", node.path.c_str(), (unsigned long long)node.bytes);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/listing.hpp>

namespace ballast {

struct TreeNode {
  std::string path{};        // "model.layers.{0..31}"
  std::size_t name_at = 0;   // where its name begins
  std::size_t depth = 0;     // how many nodes are above it
  std::uint64_t folded = 1;  // how many prefixes it stands for: 32
  std::size_t children = 0;  // how many nodes are right below it, also if they are cut off

  // Of everything under the path. Bytes that tensors share count once, under the first of their names in the
  // checkpoint; under the others they are `shared_bytes`.
  std::uint64_t tensors = 0, parameters = 0, bytes = 0, shared_bytes = 0;

  // What the path itself names: a tensor, or `folded` of them. Empty if the path is only a prefix; a path may be both.
  std::string dtype{};  // as TensorDescription has it
  Shape shape{};

  std::string_view name() const { return std::string_view(path).substr(name_at); }  // "layers.{0..31}"
};

struct Tree {
  std::vector<TreeNode> nodes;  // every node comes before its children, and these before its next sibling
  TensorTotals totals;
};

struct TreeOptions {
  SortBy sort = SortBy::name;  // of siblings: by name, bytes or numel; others are Errc::invalid_argument
  bool reverse = false;
  std::size_t depth = 0;  // how many levels; 0 for all
};

Tree tree_of(const Checkpoint& checkpoint, const TreeOptions& options = {});

// The same of some tensors, by their numbers in checkpoint.tensors.
Tree tree_of(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, const TreeOptions& options = {});

// The same nodes one after the other, with the totals, and without keeping them: a tree in which nothing is folded has
// more nodes than the checkpoint has tensors. A node is valid until the function returns.
using TreeVisitor = std::function<void(const TreeNode& node, const TensorTotals& totals)>;
void visit_tree(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, const TreeOptions& options,
                const TreeVisitor& visit);

}  // namespace ballast
