#include "ops/adapter/layers.hpp"

#include <ballast/error.hpp>

#include <charconv>
#include <map>
#include <optional>

#include "core/text.hpp"

namespace ballast::adapter {
namespace {

constexpr std::uint64_t kMaxLayers = 100'000;

// The lists of layers that PEFT replicates: of Llama and Mistral, of BERT, of Falcon.
constexpr std::string_view kLists[] = {"base_model.model.model.layers.", "base_model.model.bert.encoder.layer.",
                                       "base_model.model.transformer.h.", "base_model.model.layers."};

// For each new layer the one that it is a copy of.
std::vector<std::uint64_t> sources_of(const Json& ranges) {
  std::vector<std::uint64_t> sources;
  for (const Json& range : ranges.list()) {
    if (range.list().size() != 2) throw Error(Errc::malformed, "\"layer_replication\" must hold pairs of numbers");
    for (std::uint64_t i = range.list()[0].count(); i < range.list()[1].count(); ++i) {
      sources.push_back(i);
      if (sources.size() > kMaxLayers) throw Error(Errc::limit, "\"layer_replication\" asks for too many layers");
    }
  }
  return sources;
}

std::optional<std::uint64_t> number_behind(std::string_view name, std::string_view list) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + list.size(), name.data() + name.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

}  // namespace

StateDict replicate_layers(const StateDict& base, const AdapterConfig& config) {
  const Json* ranges = config.find("layer_replication");
  if (ranges == nullptr) return base;
  const std::vector<std::uint64_t> sources = sources_of(*ranges);

  std::multimap<std::uint64_t, std::uint64_t> copies;
  for (std::uint64_t i = 0; i < sources.size(); ++i) copies.emplace(sources[i], i);
  StateDict result;
  for (const auto& [name, tensor] : base) {
    std::string_view list;
    for (const std::string_view known : kLists) {
      if (list.empty() && name.starts_with(known)) list = known;
    }
    const auto number = list.empty() ? std::nullopt : number_behind(name, list);
    if (!number) {
      result.insert(name, tensor);
      continue;
    }
    const std::string_view rest = name.substr(list.size() + std::to_string(*number).size());
    const auto [first, last] = copies.equal_range(*number);
    for (auto copy = first; copy != last; ++copy)
      result.insert(std::string(list) + std::to_string(copy->second) + std::string(rest), tensor);
  }
  return result;
}

}  // namespace ballast::adapter
