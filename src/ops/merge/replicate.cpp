#include "ops/merge/replicate.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <charconv>
#include <optional>
#include <utility>

namespace ballast::merging {
namespace {

constexpr std::uint64_t kMostLayers = 100'000;

// "model.layers.12.mlp.weight" in three pieces.
struct LayerName {
  std::string_view before, after;
  std::uint64_t number;
};
std::optional<LayerName> split_layer(std::string_view name) {
  for (const std::string_view list : {"layers.", "encoder.layer.", "h."}) {
    for (std::size_t at = name.find(list); at != std::string_view::npos; at = name.find(list, at + 1)) {
      if (at != 0 && name[at - 1] != '.') continue;
      const std::string_view rest = name.substr(at + list.size());
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      const auto length = static_cast<std::size_t>(end - rest.data());
      if (error == std::errc() && length < rest.size() && rest[length] == '.')
        return LayerName{name.substr(0, at + list.size()), rest.substr(length), number};
    }
  }
  return std::nullopt;
}

// The old number of each new layer.
std::vector<std::uint64_t> new_layers(const Json& ranges) {
  std::vector<std::uint64_t> layers;
  for (const Json& range : ranges.list()) {
    const auto& ends = range.list();
    if (ends.size() != 2) throw Error(Errc::malformed, "layer_replication is no list of pairs");
    for (std::uint64_t i = ends[0].count(); i < ends[1].count(); ++i) {
      if (layers.size() == kMostLayers)
        throw Error(Errc::limit, fmt::format("layer_replication makes over {} layers", kMostLayers));
      layers.push_back(i);
    }
  }
  return layers;
}

}  // namespace

bool replicate_layers(Checkpoint& checkpoint, const Settings& settings) {
  const Json* ranges = settings.find("layer_replication");
  if (ranges == nullptr) return false;
  std::map<std::uint64_t, std::vector<std::uint64_t>> copies;  // old number -> new ones
  const std::vector<std::uint64_t> layers = new_layers(*ranges);
  for (std::uint64_t i = 0; i < layers.size(); ++i) copies[layers[i]].push_back(i);
  StateDict tensors;
  for (const auto& [name, tensor] : checkpoint) {
    const auto layer = split_layer(name);
    if (!layer) {
      tensors.insert(name, tensor);
      continue;
    }
    for (const std::uint64_t number : copies[layer->number])
      tensors.insert(fmt::format("{}{}{}", layer->before, number, layer->after), tensor);
  }
  checkpoint.tensors = std::move(tensors);
  return true;
}

}  // namespace ballast::merging
