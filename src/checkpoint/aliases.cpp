#include "checkpoint/aliases.hpp"

#include <utility>

namespace ballast {
namespace {

bool is_same(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.is_contiguous() && b.is_contiguous();
}

}  // namespace

Checkpoint unfold_aliases(Checkpoint checkpoint) {
  for (const auto& [removed, kept] : checkpoint.metadata) {
    if (removed == "format" || checkpoint.tensors.contains(removed)) continue;
    const Tensor* tensor = checkpoint.tensors.find(kept);
    if (tensor == nullptr || checkpoint.aliases.contains(kept)) continue;
    checkpoint.tensors.insert(removed, Tensor(*tensor));
    checkpoint.aliases.emplace(removed, kept);
  }
  return checkpoint;
}

Checkpoint fold_aliases(Checkpoint checkpoint) {
  if (checkpoint.aliases.empty()) return checkpoint;
  for (const auto& [removed, kept] : checkpoint.aliases) checkpoint.metadata.erase(removed);
  StateDict kept_tensors;
  kept_tensors.reserve(checkpoint.size());
  for (const auto& [name, tensor] : checkpoint) {
    const auto alias = checkpoint.aliases.find(name);
    const Tensor* kept = alias == checkpoint.aliases.end() ? nullptr : checkpoint.find(alias->second);
    if (kept != nullptr && is_same(tensor, *kept)) {
      checkpoint.metadata[alias->first] = alias->second;
    } else {
      kept_tensors.insert(name, tensor);
    }
  }
  checkpoint.tensors = std::move(kept_tensors);
  checkpoint.aliases.clear();
  return checkpoint;
}

}  // namespace ballast
