// SHiRA changes single elements of a weight. Where they lie, PEFT keeps outside of the state dict; a random mask can be
// drawn again: the first r·(rows + columns) of torch.randperm(rows·columns), which is a shuffle by mt19937.
#include <ballast/error.hpp>

#include <algorithm>

#include "core/text.hpp"
#include "kernels/torch_random.hpp"
#include "ops/adapter/computed.hpp"
#include "ops/adapter/special.hpp"

namespace ballast::adapter {
namespace {

constexpr std::string_view kWeight = ".shira_weight";

std::vector<std::int32_t> random_places(std::uint64_t rows, std::uint64_t columns, std::uint64_t count,
                                        std::uint32_t seed) {
  std::vector<std::uint64_t> shuffled = kernels::TorchRandom(seed).permutation(rows * columns, count);
  std::ranges::sort(shuffled);
  std::vector<std::int32_t> places;
  for (const std::uint64_t place : shuffled) places.push_back(static_cast<std::int32_t>(place / columns));
  for (const std::uint64_t place : shuffled) places.push_back(static_cast<std::int32_t>(place % columns));
  return places;
}

Tensor drawn(const Tensor& base, std::uint64_t count, std::uint32_t seed) {
  const std::uint64_t rows = base.shape()[0], columns = base.shape()[1];
  return computed(DType::i32, {2, count}, "places drawn", {}, [=](const auto&) {
    const std::vector<std::int32_t> places = random_places(rows, columns, count, seed);
    const auto bytes = std::as_bytes(std::span(places));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
}

}  // namespace

void draw_indices(StateDict& file, const StateDict& state, const AdapterConfig& config) {
  const Json* seed = config.find("random_seed");
  const bool is_random = config.text("mask_type") == "random" && seed != nullptr;
  std::vector<std::pair<std::string, Tensor>> indices;
  for (const auto& [name, tensor] : file) {
    if (!name.ends_with(kWeight)) continue;
    const std::string module(name.substr(0, name.size() - kWeight.size()));
    if (file.contains(module + ".shira_indices")) continue;
    if (!is_random) {
      throw Error(Errc::unsupported, "the state dict does not say where the weights of " + quote(name) + " lie")
          .hint("PEFT keeps the places outside of it: save this adapter with PEFT itself");
    }
    const Tensor* base = state.find(module + ".base_layer.weight");
    if (base == nullptr || base->rank() != 2 || base->numel() < tensor.numel())
      throw Error(Errc::mismatch, "there is no matrix " + quote(module + ".base_layer.weight") + " that fits them");
    if (base->numel() >= kernels::TorchRandom::kMostPermuted)
      throw Error(Errc::unsupported, quote(name) + " has more places than can be drawn again")
          .hint("save it with PEFT itself");
    indices.emplace_back(module + ".shira_indices",
                         drawn(*base, tensor.numel(), static_cast<std::uint32_t>(seed->count())));
  }
  for (auto& [name, tensor] : indices) file.insert(name, std::move(tensor));
}

}  // namespace ballast::adapter
