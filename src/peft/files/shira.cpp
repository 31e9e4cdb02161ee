// SHiRA changes single elements of a weight, whose indices PEFT keeps outside of the state dict. A random mask can be
// drawn again: its elements are the first r·(rows + columns) of torch.randperm(rows·columns), a shuffle by mt19937.
#include <ballast/error.hpp>

#include <algorithm>

#include "core/text.hpp"
#include "kernels/linear/torch_random.hpp"
#include "peft/computed.hpp"
#include "peft/files/special.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

constexpr std::string_view kShiraWeight = ".shira_weight";

// [2, count]: the rows of the elements, and then their columns.
Tensor drawn_indices(const Tensor& base, std::uint64_t count, std::uint32_t seed) {
  const std::uint64_t rows = base.shape()[0], columns = base.shape()[1];
  return computed(DType::i32, {2, count}, "indices drawn", {}, [=](const auto&) {
    std::vector<std::uint64_t> elements = kernels::TorchRandom(seed).permutation(rows * columns, count);
    std::ranges::sort(elements);
    std::vector<std::int32_t> indices;
    for (const std::uint64_t element : elements) indices.push_back(static_cast<std::int32_t>(element / columns));
    for (const std::uint64_t element : elements) indices.push_back(static_cast<std::int32_t>(element % columns));
    return to_bytes(indices);
  });
}

}  // namespace

void draw_indices(StateDict& file, const StateDict& state, const AdapterConfig& config) {
  const Json* seed = config.find("random_seed");
  const bool is_random = config.text("mask_type") == "random" && seed != nullptr;
  std::vector<std::pair<std::string, Tensor>> indices;
  for (const auto& [name, tensor] : file) {
    if (!name.ends_with(kShiraWeight)) continue;
    const std::string module(without_ending(name, kShiraWeight));
    if (file.contains(module + ".shira_indices")) continue;
    if (!is_random) {
      throw Error(Errc::unsupported, "the state dict does not say where the weights of " + quote(name) + " belong")
          .hint("PEFT keeps their indices outside of it: save this adapter with PEFT itself");
    }
    const Tensor* base = state.find(module + ".base_layer.weight");
    if (base == nullptr || base->rank() != 2 || base->numel() < tensor.numel())
      throw Error(Errc::mismatch,
                  "there is no matrix " + quote(module + ".base_layer.weight") + " that " + quote(name) + " would fit");
    if (base->numel() >= kernels::TorchRandom::kMostPermuted)
      throw Error(Errc::unsupported, quote(name) + " has more indices than can be drawn again")
          .hint("save it with PEFT itself");
    indices.emplace_back(module + ".shira_indices",
                         drawn_indices(*base, tensor.numel(), static_cast<std::uint32_t>(seed->count())));
  }
  for (auto& [name, tensor] : indices) file.insert(name, std::move(tensor));
}

}  // namespace ballast::peft
