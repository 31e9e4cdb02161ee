#include <ballast/provenance.hpp>

#include <algorithm>
#include <utility>

#include "tensor/ancestors.hpp"

namespace ballast {

void for_each_ancestor(const Tensor& tensor,
                       const std::function<void(const Tensor&, const Storage::Derivation&)>& visit) {
  std::vector<const Tensor*> waiting{&tensor};
  while (!waiting.empty()) {
    const Tensor* next = waiting.back();
    waiting.pop_back();
    const auto derivation = next->storage() ? next->storage()->derivation() : Storage::Derivation{};
    visit(*next, derivation);
    waiting.insert(waiting.end(), derivation.from.rbegin(), derivation.from.rend());
  }
}

std::uint64_t kept_memory_bytes(const Tensor& tensor, std::set<const Storage*>& counted) {
  std::uint64_t total = 0;
  for_each_ancestor(tensor, [&](const Tensor& ancestor, const Storage::Derivation&) {
    const Storage* storage = ancestor.storage().get();
    if (storage != nullptr && counted.insert(storage).second) total += storage->memory_bytes();
  });
  return total;
}

Provenance provenance(const Tensor& tensor) {
  Provenance found;
  for_each_ancestor(tensor, [&](const Tensor& ancestor, const Storage::Derivation& derivation) {
    if (!ancestor.is_contiguous()) found.steps.emplace_back("gather");
    if (!derivation.step.empty()) found.steps.push_back(derivation.step);
    if (derivation.packed) {
      found.from.push_back(*derivation.packed);
    } else if (const auto place = ancestor.storage() ? ancestor.storage()->location() : std::nullopt) {
      found.from.push_back({place->file, place->offset + ancestor.offset(), place->open_file});
    }
  });
  std::ranges::reverse(found.steps);  // the last step was visited first
  return found;
}

void add_facts(kernels::FactHash& hash, const Tensor& tensor, const Storage::Derivation& derivation) {
  hash.add(name(tensor.dtype()));
  hash.add(tensor.rank());
  for (const std::uint64_t dim : tensor.shape()) hash.add(dim);
  hash.add(tensor.is_contiguous());
  if (!tensor.is_contiguous()) {
    for (const std::int64_t stride : tensor.strides()) hash.add(static_cast<std::uint64_t>(stride));
  }
  hash.add(tensor.offset());
  hash.add(derivation.step);
  hash.add(derivation.from.size());
}

}  // namespace ballast
