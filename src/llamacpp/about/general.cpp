#include "llamacpp/about/general.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "llamacpp/about/authorship.hpp"
#include "llamacpp/about/model_card.hpp"
#include "llamacpp/about/model_name.hpp"
#include "llamacpp/config/json_values.hpp"
#include "llamacpp/keys/hyperparameters.hpp"
#include "llamacpp/keys/metadata_values.hpp"

namespace ballast::llamacpp {
namespace {

// What generation_config.json may recommend.
enum class SamplingKind : std::uint8_t { text, whole, real };
struct SamplingKey {
  std::string_view source, key;
  SamplingKind kind;
};
constexpr SamplingKey kSamplingKeys[] = {
    {"sequence", "general.sampling.sequence", SamplingKind::text},
    {"top_k", "general.sampling.top_k", SamplingKind::whole},
    {"top_p", "general.sampling.top_p", SamplingKind::real},
    {"min_p", "general.sampling.min_p", SamplingKind::real},
    {"xtc_probability", "general.sampling.xtc_probability", SamplingKind::real},
    {"xtc_threshold", "general.sampling.xtc_threshold", SamplingKind::real},
    {"temperature", "general.sampling.temp", SamplingKind::real},
    {"penalty_last_n", "general.sampling.penalty_last_n", SamplingKind::whole},
    {"penalty_repeat", "general.sampling.penalty_repeat", SamplingKind::real},
    {"mirostat", "general.sampling.mirostat", SamplingKind::whole},
    {"mirostat_tau", "general.sampling.mirostat_tau", SamplingKind::real},
    {"mirostat_eta", "general.sampling.mirostat_eta", SamplingKind::real},
};

// In the order of the file.
struct AuthorshipKey {
  Json Authorship::*value;
  std::string_view key;
};
constexpr AuthorshipKey kAuthorshipKeys[] = {
    {&Authorship::name, "general.name"},
    {&Authorship::author, "general.author"},
    {&Authorship::version, "general.version"},
    {&Authorship::organization, "general.organization"},
    {&Authorship::finetune, "general.finetune"},
    {&Authorship::basename, "general.basename"},
    {&Authorship::description, "general.description"},
    {&Authorship::size_label, "general.size_label"},
    {&Authorship::license, "general.license"},
    {&Authorship::license_name, "general.license.name"},
    {&Authorship::license_link, "general.license.link"},
    {&Authorship::source_url, "general.source.url"},
    {&Authorship::source_doi, "general.source.doi"},
    {&Authorship::source_uuid, "general.source.uuid"},
    {&Authorship::source_repo_url, "general.source.repo_url"},
};
constexpr std::string_view kSourceFacts[] = {"name", "author", "version", "organization", "description",
                                             "url",  "doi",    "uuid",    "repo_url"};

class GeneralWriter {
 public:
  GeneralWriter(const ModelFolder& folder, TypedMetadata& out, std::vector<Note>& notes)
      : folder_(folder), out_(out), notes_(notes) {}

  void write_sampling() {
    const auto config = read_generation_config();
    if (!config) return;
    for (const auto& [source, key, kind] : kSamplingKeys) {
      const Json* value = config->find(source);
      if (is_null(value)) continue;
      try {
        if (kind == SamplingKind::text) write_text(key, *value);
        if (kind == SamplingKind::whole) out_.set(i32_entry(key, *value));
        if (kind == SamplingKind::real) out_.set(f32_entry(key, *value));
      } catch (const Error& error) {
        remark("generation_config.json", fmt::format("{} is left out: {}", quote(source), error.message()));
      }
    }
  }

  void write_authorship(const Authorship& known) {
    for (const auto& [value, key] : kAuthorshipKeys) write_text(key, known.*value);
    write_sources("general.base_model", known.base_models);
    write_sources("general.dataset", known.datasets);
    write_list("general.tags", known.tags);
    write_list("general.languages", known.languages);
  }

 private:
  // A file that is broken is as if it were not there: the converter does not mind it either.
  std::optional<Json> read_generation_config() {
    try {
      return folder_.json("generation_config.json");
    } catch (const Error& error) {
      remark("generation_config.json", fmt::format("it cannot be read: {}", error.message()));
      return std::nullopt;
    }
  }

  void remark(const std::string& file, std::string text) {
    notes_.push_back({folder_.path(file), std::move(text), Note::Kind::oddity, {}});
  }

  // A list is one text with commas, as licenses are. Numbers are texts, too.
  static std::string text_of(const Json& value) {
    if (!value.is_list()) return text_of_one(value);
    std::string all;
    for (const Json& item : value.list()) all += (all.empty() ? "" : ",") + text_of_one(item);
    return all;
  }

  static std::string text_of_one(const Json& value) { return value.is_text() ? value.text() : to_string(value); }

  void write_text(std::string_view key, const Json& value) {
    if (value.is_null()) return;
    if (value.is_object()) return remark("README.md", fmt::format("{} is left out: it is not a text", quote(key)));
    const std::string text = text_of(value);
    if (!text.empty()) out_.set(MetadataEntry::of(key, text));
  }

  void write_sources(std::string_view key, const std::optional<std::vector<Json>>& sources) {
    if (!sources) return;
    out_.set(u32_entry(fmt::format("{}.count", key), Json(std::uint64_t{sources->size()})));
    for (std::size_t i = 0; i < sources->size(); ++i) {
      for (const std::string_view fact : kSourceFacts) {
        const Json* value = (*sources)[i].find(fact);
        if (value != nullptr) write_text(fmt::format("{}.{}.{}", key, i, fact), *value);
      }
    }
  }

  // A card's list is of texts, but YAML takes some words for other things: "no" for false.
  void write_list(std::string_view key, const std::optional<Json::List>& list) {
    if (!list || list->empty()) return;
    const auto is_text = [](const Json& item) { return item.is_text(); };
    const auto is_boolean = [](const Json& item) { return item.is_bool(); };
    const bool is_mixed = std::ranges::any_of(*list, is_text) || std::ranges::any_of(*list, is_boolean);
    if (!is_mixed) return write_list_as_it_is(key, *list);
    std::vector<std::string> texts;
    for (const Json& item : *list) {
      if (item.is_bool()) {
        texts.emplace_back(item.boolean() ? "yes" : "no");
      } else if (!item.is_object() && !item.is_null()) {
        texts.push_back(text_of(item));
      }
    }
    if (!texts.empty()) out_.set(MetadataEntry::strings(key, texts));
  }

  void write_list_as_it_is(std::string_view key, const Json::List& list) {
    try {
      out_.set(list_entry(key, list));
    } catch (const Error& error) {
      remark("README.md", fmt::format("{} is left out: {}", quote(key), error.message()));
    }
  }

  const ModelFolder& folder_;
  TypedMetadata& out_;
  std::vector<Note>& notes_;
};

std::string counted_size(const ParameterCounts& counts) {
  if (counts.expert_count == 0) return rounded_parameter_count(counts.total);
  const std::uint64_t used = fits(checked_add(counts.shared, counts.expert), "the number of parameters");
  return fmt::format("{}x{}", counts.expert_count, rounded_parameter_count(used));
}

std::uint64_t add_counts(std::uint64_t a, std::uint64_t b) {
  return fits(checked_add(a, b), "the number of parameters");
}

}  // namespace

ParameterCounts count_parameters(std::span<const CountedTensor> tensors) {
  ParameterCounts counts;
  std::uint64_t experts_in_all = 0, expert_tensors = 0;
  for (const auto& [name, shape] : tensors) {
    std::uint64_t size = 1;
    for (const std::uint64_t dim : shape) size = fits(checked_mul(size, dim), "the number of parameters");
    counts.total = add_counts(counts.total, size);
    const bool is_bias = name.find(".bias") != std::string_view::npos;
    const bool is_experts = name.find("_exps.") != std::string_view::npos && shape.size() >= 3;
    const std::uint64_t experts = is_experts ? shape[shape.size() - (is_bias ? 2 : 3)] : 0;
    if (experts == 0) {
      counts.shared = add_counts(counts.shared, size);
      continue;
    }
    counts.expert = add_counts(counts.expert, size / experts);
    experts_in_all = add_counts(experts_in_all, experts);
    ++expert_tensors;
  }
  counts.expert_count = expert_tensors == 0 ? 0 : experts_in_all / expert_tensors;
  return counts;
}

void add_general(const ModelFolder& folder, const ModelConfig& config, const ParameterCounts& counts,
                 TypedMetadata& out, std::vector<Note>& notes) {
  out.set(MetadataEntry::of("general.architecture", config.architecture));
  add_early_keys(config, out);
  out.set(MetadataEntry::of("general.type", std::string_view("model")));

  Authorship known = find_authorship(read_model_card(folder, notes), config.raw, folder.name(), counts.total);
  if (known.name.is_null()) known.name = folder.name();
  if (known.size_label.is_null() && counts.total > 0) known.size_label = counted_size(counts);
  GeneralWriter writer(folder, out, notes);
  writer.write_sampling();
  writer.write_authorship(known);
}

}  // namespace ballast::llamacpp
