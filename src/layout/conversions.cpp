#include <ballast/conversions.hpp>
#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/remote.hpp>
#include <ballast/suggest.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "io/section.hpp"
#include "layout/conversion_tables.hpp"
#include "layout/pattern.hpp"
#include "tensor/same_tensor.hpp"
#include "transform/wrappers.hpp"

namespace ballast {
namespace {

// Calls look(type) for every type of a row.
template <class Look>
void for_each_type(const ConversionRow& row, const Look& look) {
  for (std::size_t at = 0; at < row.types.size();) {
    const std::size_t end = std::min(row.types.find(' ', at), row.types.size());
    look(row.types.substr(at, end - at));
    at = end + 1;
  }
}

const ConversionRow* find_row(std::string_view model_type) {
  for (const ConversionRow& row : conversion_rows()) {
    bool has_it = false;
    for_each_type(row, [&](std::string_view type) { has_it = has_it || type == model_type; });
    if (has_it) return &row;
  }
  return nullptr;
}

Error no_map(Errc code, std::string_view model_type) {
  Error error(code, fmt::format("there are no conversions for the model_type {}", quote(model_type)));
  const auto types = types_with_conversions();
  const auto near = nearest(model_type, types);
  return error.hint(fmt::format("{}there are some for {}", near ? "did you mean " + quote(*near) + "? " : std::string(),
                                fmt::join(types, ", ")));
}

// What config.json says that conversions depend on.
struct ModelConfig {
  std::string type;
  std::uint64_t experts = 0;  // 0: it does not say
};

std::string type_in(const Json& config) {
  const Json* type = config.find("model_type");
  return type != nullptr && type->is_text() ? type->text() : std::string();
}

std::uint64_t experts_in(const Json& config) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    const Json* count = config.find(key);
    if (count != nullptr && count->is_integer()) return count->count();
  }
  return 0;
}

// The configuration that a map fits is that of the model or, if there is none for that, of its language model.
std::optional<ModelConfig> read_config(const Checkpoint& checkpoint, const OpenOptions& given) {
  if (checkpoint.target.empty()) return std::nullopt;
  const OpenOptions options = options_for(checkpoint.target, given);
  const bool is_folder = options.files->list(checkpoint.target).has_value();
  if (!is_folder && !options.files->exists(checkpoint.target)) return std::nullopt;  // standard input, memory
  const std::string path = is_folder ? options.files->inside(checkpoint.target, "config.json")
                                     : options.files->beside(checkpoint.target, "config.json");
  if (!options.files->exists(path)) return std::nullopt;
  try {
    const Json config = io::read_configuration(*options.files->open(path), options.limits);
    const Json* text = config.find("text_config");
    const bool is_of_text =
        text != nullptr && find_row(type_in(config)) == nullptr && find_row(type_in(*text)) != nullptr;
    const Json& found = is_of_text ? *text : config;
    return ModelConfig{type_in(found), experts_in(found)};
  } catch (Error& error) {
    throw error.in(path);
  }
}

struct Chosen {
  std::string type;  // empty: there is nothing to do
  std::uint64_t experts = 0;
};

Chosen choose(const Checkpoint& checkpoint, std::string_view model_type, const OpenOptions& options) {
  const auto config = read_config(checkpoint, options);
  if (model_type == "auto") {
    if (!config || find_row(config->type) == nullptr) return {};
    return {config->type, config->experts};
  }
  if (find_row(model_type) == nullptr) throw no_map(Errc::invalid_argument, model_type);
  return {std::string(model_type), config && config->type == model_type ? config->experts : 0};
}

bool is_same(const StateDict& before, const StateDict& after) {
  return std::ranges::equal(before, after, [](const StateDict::Entry& a, const StateDict::Entry& b) {
    return a.name == b.name && is_same_tensor(a.tensor, b.tensor);
  });
}

Checkpoint converted(Checkpoint checkpoint, const Chosen& chosen, const WeightMap& map) {
  const StateDict before = checkpoint.tensors;
  try {
    checkpoint = apply(std::move(checkpoint), map);
  } catch (const Error& error) {
    throw error.saying(fmt::format("transformers' conversions for {}: {}", chosen.type, error.message()));
  }
  if (is_same(before, checkpoint.tensors)) {
    checkpoint.notes.push_back({checkpoint.target,
                                fmt::format("transformers' conversions for {} change no tensor", chosen.type),
                                Note::Kind::remark});
  }
  return checkpoint;
}

}  // namespace

std::vector<std::string_view> types_with_conversions() {
  std::vector<std::string_view> types;
  for (const ConversionRow& row : conversion_rows())
    for_each_type(row, [&](std::string_view type) { types.push_back(type); });
  std::ranges::sort(types);
  return types;
}

WeightMap conversions_of(std::string_view model_type, std::uint64_t experts) {
  const ConversionRow* row = find_row(model_type);
  if (row == nullptr) throw no_map(Errc::invalid_argument, model_type);
  WeightMap all;
  for (const std::string_view text : row->maps) {
    if (text.empty()) continue;
    for (WeightRule& rule : WeightMap::parse(text).rules) {
      if (rule.change == WeightChange::stack && places_in(rule.from.front()).contains("expert")) rule.count = experts;
      rule.place = all.rules.size() + 1;
      all.rules.push_back(std::move(rule));
    }
  }
  return all;
}

std::string conversion_type(const Checkpoint& checkpoint, const OpenOptions& options) {
  const auto config = read_config(checkpoint, options);
  if (!config || config->type.empty()) {
    throw Error(Errc::not_found, "no config.json says which model this is, so nothing says which conversions it needs")
        .in(checkpoint.target)
        .hint(fmt::format("name its model_type; there are conversions for {}",
                          fmt::join(types_with_conversions(), ", ")));
  }
  if (find_row(config->type) == nullptr) throw no_map(Errc::unsupported, config->type).in(checkpoint.target);
  return config->type;
}

Checkpoint with_conversions(Checkpoint checkpoint, std::string_view model_type, const OpenOptions& options) {
  const Chosen chosen = choose(checkpoint, model_type, options);
  if (chosen.type.empty()) return checkpoint;
  checkpoint = take_out_wrappers(std::move(checkpoint));
  WeightMap map = conversions_of(chosen.type, chosen.experts);
  for (WeightRule& rule : WeightMap::parse(words_of_tensorflow()).rules) {
    rule.place = map.rules.size() + 1;
    map.rules.push_back(std::move(rule));
  }
  return converted(std::move(checkpoint), chosen, map);
}

Checkpoint without_conversions(Checkpoint checkpoint, std::string_view model_type, const OpenOptions& options) {
  const Chosen chosen = choose(checkpoint, model_type, options);
  if (chosen.type.empty()) return checkpoint;
  return converted(std::move(checkpoint), chosen, conversions_of(chosen.type, chosen.experts).reversed());
}

}  // namespace ballast
