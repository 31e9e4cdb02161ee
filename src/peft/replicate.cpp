#include "peft/replicate.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/text.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

constexpr std::uint64_t kMostLayers = 100'000;

// The names of the list of layers in Llama and most others, in BERT, and in Falcon.
constexpr std::string_view kLists[] = {"layers.", "encoder.layer.", "h."};

// "model.layers.12.mlp.weight" in three pieces.
struct LayerName {
  std::string_view list;  // "model.layers."
  std::uint64_t number;
  std::string_view rest;  // ".mlp.weight"
};

// The outermost layer that the tensor lies in.
std::optional<LayerName> parse_layer(std::string_view name) {
  for (std::string_view here = name; !here.empty(); take_segment(here)) {
    for (const std::string_view list : kLists) {
      if (!here.starts_with(list)) continue;
      const std::string_view behind = here.substr(list.size()), segment = first_segment(behind);
      const auto number = number_in(segment);
      if (number && segment.size() != behind.size())
        return LayerName{name.substr(0, name.size() - behind.size()), *number, behind.substr(segment.size())};
    }
  }
  return std::nullopt;
}

// PEFT descends from "model" to "model" and then to "bert".
bool is_found_by_peft(std::string_view list) {
  list = without_prefix(list);
  while (list.starts_with("model.")) take_segment(list);
  if (list.starts_with("bert.")) take_segment(list);
  return std::ranges::find(kLists, list) != std::end(kLists);
}

using Lists = std::map<std::string_view, std::set<std::uint64_t>>;  // with the numbers of their layers

// The list that is meant, with its layers.
const Lists::value_type& chosen_list(const Lists& lists) {
  if (lists.empty())
    throw Error(Errc::mismatch, "\"layer_replication\" is set, but the base has no layers")
        .hint("names of layers are such as \"model.layers.0.mlp.weight\"");
  std::vector<const Lists::value_type*> found;
  for (const auto& list : lists) {
    if (lists.size() == 1 || is_found_by_peft(list.first)) found.push_back(&list);
  }
  if (found.size() == 1) return *found.front();
  throw Error(Errc::unsupported,
              fmt::format("\"layer_replication\" is set, and it is not known whether it means the layers {} or {}",
                          quote(without_prefix(lists.begin()->first)), quote(without_prefix(lists.rbegin()->first))));
}

// For each new layer the one that it is a copy of.
std::vector<std::uint64_t> sources_of(const Json& ranges) {
  std::vector<std::uint64_t> sources;
  for (const Json& range : ranges.list()) {
    if (range.list().size() != 2) throw Error(Errc::malformed, "\"layer_replication\" must hold pairs of numbers");
    for (std::uint64_t i = range.list()[0].count(); i < range.list()[1].count(); ++i) {
      if (sources.size() == kMostLayers) throw Error(Errc::limit, "\"layer_replication\" asks for too many layers");
      sources.push_back(i);
    }
  }
  return sources;
}

}  // namespace

bool has_replicated_layers(const AdapterConfig& config) {
  const Json* ranges = config.find("layer_replication");
  return ranges != nullptr && !(ranges->is_list() && ranges->list().empty());
}

StateDict replicate_layers(const StateDict& base, const AdapterConfig& config) {
  if (!has_replicated_layers(config)) return base;
  const std::vector<std::uint64_t> sources = sources_of(*config.find("layer_replication"));
  Lists lists;
  for (const auto& entry : base) {
    if (const auto layer = parse_layer(entry.name)) lists[layer->list].insert(layer->number);
  }
  const auto& [list, layers] = chosen_list(lists);
  std::multimap<std::uint64_t, std::uint64_t> copies;  // from the old number to the new ones
  for (std::uint64_t i = 0; i < sources.size(); ++i) {
    if (!layers.contains(sources[i]))
      throw Error(Errc::mismatch,
                  fmt::format("\"layer_replication\" asks for layer {}, which the base does not have", sources[i]))
          .hint("the adapter belongs to another model, or to another size of it");
    copies.emplace(sources[i], i);
  }
  StateDict result;
  for (const auto& [name, tensor] : base) {
    const auto layer = parse_layer(name);
    if (!layer || layer->list != list) {
      result.insert(name, tensor);
      continue;
    }
    const auto [first, last] = copies.equal_range(layer->number);
    for (auto copy = first; copy != last; ++copy)
      result.insert(fmt::format("{}{}{}", list, copy->second, layer->rest), tensor);
  }
  return result;
}

}  // namespace ballast::peft
