// Rebuilds tensors from what a pickle would have called: every function by which PyTorch rebuilds a tensor, as data.
//
// A view is checked against its storage before anybody can read through it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

#include "formats/torch/numpy.hpp"
#include "formats/torch/rebuild_call.hpp"
#include "formats/torch/storage_table.hpp"

namespace ballast::torch {

// The tensors as which one object of the tree is listed.
struct Rebuilt {
  struct Part {
    std::string suffix;  // "" for the tensor itself, "indices" for NAME.indices
    Tensor tensor;
  };
  std::vector<Part> parts;
  std::optional<Composite> composite;  // without its name; its parts are named by suffix
};

// Opens a file that lies in the bytes of a pickle (torch.storage._load_from_bytes).
using NestedReader = std::function<Checkpoint(const SourcePtr& source)>;

class Rebuilder {
 public:
  Rebuilder(const pickle::Graph& graph, StorageTable& storages, const Limits& limits, NestedReader nested)
      : graph_(graph), storages_(storages), limits_(limits), nested_(std::move(nested)) {}

  // Nothing if the node does not stand for a tensor. Throws Errc::malformed, or Errc::unsupported for a tensor that is
  // understood but cannot be shown.
  std::optional<Rebuilt> rebuild(pickle::NodeId node);

  // The file inside `_load_from_bytes(…)`, opened once; null if the node is not such a call. It lives as long as this
  // object.
  const Checkpoint* nested_file(pickle::NodeId node);

 private:
  Rebuilt rebuild_call(const RebuildCall& call);
  Tensor one_tensor(const RebuildCall& call);
  Tensor tensor_of(const RebuildCall& call, std::optional<std::size_t> dtype_argument,
                   std::optional<std::size_t> metadata_argument);
  Rebuilt quantized(const RebuildCall& call);
  Rebuilt sparse(const RebuildCall& call);
  Rebuilt nested_tensor(const RebuildCall& call);
  Rebuilt wrapped(const RebuildCall& call);
  std::vector<Rebuilt::Part> attribute_tensors(pickle::NodeId state);
  Tensor meta(const RebuildCall& call, std::size_t dtype_argument);
  Tensor legacy_tensor(const RebuildCall& call);
  Tensor plain_tensor(pickle::NodeId node, std::string_view what);
  Tensor numbers(pickle::NodeId node, std::string_view what);
  Tensor listed_numbers(pickle::NodeId list, std::string_view what);
  Tensor array(const NumpyArray& array);

  Stored storage_of(pickle::NodeId node, std::string_view what);
  Tensor view(const Stored& stored, DType dtype, const class Arguments& arguments, std::size_t first) const;

  const pickle::Graph& graph_;
  StorageTable& storages_;
  const Limits& limits_;
  NestedReader nested_;

  // What a node stands for is made once: many tensors may share a node, and each would take as much memory again.
  std::map<std::pair<pickle::NodeId, std::uint64_t>, StoragePtr> array_bytes_;  // by their node and size
  std::unordered_map<pickle::NodeId, Tensor> lists_;
  std::unordered_map<pickle::NodeId, Checkpoint> files_;  // by the node of their bytes
};

}  // namespace ballast::torch
