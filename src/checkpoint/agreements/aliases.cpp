#include "checkpoint/agreements/aliases.hpp"

#include <utility>
#include <vector>

#include "tensor/tensor_numbers.hpp"

namespace ballast {
namespace {

bool is_same(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.is_contiguous() == b.is_contiguous() && (a.is_contiguous() || a.strides() == b.strides());
}

// Whether a name can be an alias: it must not mean anything else in the metadata.
bool is_free(std::string_view name, const Checkpoint& checkpoint) {
  return name != "format" && !checkpoint.metadata.contains(name);
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
  for (const auto& [removed, kept] : checkpoint.aliases) {
    const auto said = checkpoint.metadata.find(removed);
    if (said != checkpoint.metadata.end() && said->second == kept) checkpoint.metadata.erase(said);
  }
  StateDict kept_tensors;
  kept_tensors.reserve(checkpoint.size());
  for (const auto& [name, tensor] : checkpoint) {
    const auto alias = checkpoint.aliases.find(name);
    const bool is_alias = alias != checkpoint.aliases.end() && alias->second != name && is_free(name, checkpoint);
    const Tensor* kept = is_alias ? checkpoint.find(alias->second) : nullptr;
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

Checkpoint alias_same_tensors(Checkpoint checkpoint) {
  TensorNumbers numbers;
  std::vector<std::string_view> firsts;  // the first name of each tensor
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.nbytes() == 0 || checkpoint.aliases.contains(name)) continue;
    const std::size_t number = numbers(tensor);
    if (number == firsts.size())
      firsts.push_back(name);
    else if (is_free(name, checkpoint))
      checkpoint.aliases.emplace(name, firsts[number]);
  }
  return checkpoint;
}

}  // namespace ballast
