#include "checkpoint/quantization/packed_parts.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/ancestors.hpp"

namespace ballast {

PackedParts::PackedParts(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  if (!checkpoint.quantization) return;
  for (const auto& [name, tensor] : checkpoint.quantization->parts) {
    if (tensor.storage())
      ranges_[tensor.storage().get()].emplace_back(tensor.offset(), tensor.offset() + tensor.nbytes());
  }
  for (auto& [storage, ranges] : ranges_) std::ranges::sort(ranges);
}

// Compares where the bytes lie, since names may have changed.
bool PackedParts::contain(const Tensor& tensor) const {
  if (ranges_.empty()) return false;
  bool is_one = false;
  for_each_ancestor(tensor, [&](const Tensor& ancestor, const Storage::Derivation&) {
    const auto found = ranges_.find(ancestor.storage().get());
    if (found == ranges_.end()) return;
    // Parts do not overlap: only the last part that begins before the tensor ends can reach into the tensor.
    const std::uint64_t begin = ancestor.offset(), end = begin + std::max<std::uint64_t>(ancestor.nbytes(), 1);
    const auto after = std::ranges::lower_bound(found->second, end, {}, &Range::first);
    is_one = is_one || (after != found->second.begin() && std::prev(after)->second > begin);
  });
  return is_one;
}

void PackedParts::refuse(std::string_view name, const Tensor& tensor, std::string_view what) const {
  if (contain(tensor)) throw_refusal(name, "a part of a weight", what);
}

void PackedParts::refuse_weight(std::string_view name, std::string_view what) const {
  if (!checkpoint_.quantization) return;
  const std::string module(name.substr(0, name.rfind('.') + 1));
  const auto lies_there = [&](const auto& part) { return part.name.starts_with(module); };
  if (std::ranges::any_of(checkpoint_.quantization->parts, lies_there)) throw_refusal(name, "a weight", what);
}

void PackedParts::throw_refusal(std::string_view name, std::string_view part_or_weight, std::string_view what) const {
  throw Error(Errc::unsupported, fmt::format("tensor {} is {} that is quantized with {}: it cannot be {}", quote(name),
                                             part_or_weight, checkpoint_.quantization->scheme, what))
      .in(checkpoint_.target)
      .hint(mention(Remedy::dequantize) + " makes numbers of them; such tensors can be copied as they are, and " +
            mention(Remedy::include) + " and " + mention(Remedy::exclude) + " leave them out");
}

}  // namespace ballast
