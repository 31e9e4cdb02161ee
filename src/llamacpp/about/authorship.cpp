#include "llamacpp/about/authorship.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "llamacpp/about/model_name.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp {
namespace {

// The keys of a card in the order in which they count. A key counts if what it stands for is not known yet.
struct CardKey {
  Json Authorship::*value;
  std::string_view key;
};
constexpr CardKey kCardKeys[] = {
    {&Authorship::name, "name"},
    {&Authorship::author, "author"},
    {&Authorship::version, "version"},
    {&Authorship::organization, "organization"},
    {&Authorship::description, "description"},
    {&Authorship::finetune, "finetune"},
    {&Authorship::basename, "basename"},
    {&Authorship::size_label, "size_label"},
    {&Authorship::source_url, "url"},
    {&Authorship::source_doi, "doi"},
    {&Authorship::source_uuid, "uuid"},
    {&Authorship::source_repo_url, "repo_url"},
    {&Authorship::name, "model_name"},
    {&Authorship::author, "model_author"},
    {&Authorship::version, "model_version"},
    {&Authorship::organization, "model_organization"},
    {&Authorship::description, "model_description"},
    {&Authorship::finetune, "model_finetune"},
    {&Authorship::basename, "model_basename"},
    {&Authorship::size_label, "model_size_label"},
    {&Authorship::source_url, "model_url"},
    {&Authorship::source_doi, "model_doi"},
    {&Authorship::source_uuid, "model_uuid"},
    {&Authorship::source_repo_url, "model_repo_url"},
    {&Authorship::author, "model_creator"},
    {&Authorship::basename, "model_type"},
    {&Authorship::license, "license"},
    {&Authorship::license_name, "license_name"},
    {&Authorship::license_link, "license_link"},
};

// Lists that several keys add to.
struct CardList {
  std::optional<Json::List> Authorship::*list;
  std::string_view key;
};
constexpr CardList kCardLists[] = {
    {&Authorship::tags, "tags"},
    {&Authorship::tags, "pipeline_tag"},
    {&Authorship::languages, "languages"},
    {&Authorship::languages, "language"},
};

bool is_address(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://") || text.starts_with("ssh://");
}

// "org/name" of "https://huggingface.co/org/name".
std::optional<std::string_view> id_in_address(std::string_view address) {
  for (const std::string_view begin : {"http://", "https://"}) {
    if (!address.starts_with(begin)) continue;
    std::string_view rest = address.substr(begin.size());
    if (!rest.starts_with("huggingface.co/")) return std::nullopt;
    rest.remove_prefix(std::string_view("huggingface.co/").size());
    const std::size_t slash = rest.find('/');
    const bool has_both = slash != std::string_view::npos && slash > 0 && slash + 1 < rest.size();
    return has_both && rest.find('/', slash + 1) == std::string_view::npos ? std::optional(rest) : std::nullopt;
  }
  return std::nullopt;
}

// A model or a dataset that a card names by its id or its address.
Json named_source(std::string_view text, std::uint64_t parameters) {
  Json source{Json::Members()};
  std::string_view id = text;
  if (is_address(text)) {
    source.set("repo_url", text);
    const auto inside = id_in_address(text);
    if (!inside) return source;
    id = *inside;
  }
  const ModelNameParts parts = split_model_name(id, parameters);
  if (parts.name) source.set("name", title_of_id(*parts.name));
  if (parts.organization) source.set("organization", title_of_id(*parts.organization));
  if (parts.version) source.set("version", *parts.version);
  if (!is_address(text) && parts.organization && parts.name) {
    source.set("repo_url", "https://huggingface.co/" + *parts.organization + "/" + *parts.name);
  }
  return source;
}

std::optional<std::vector<Json>> read_sources(const Json& card, std::string_view keys, std::uint64_t parameters) {
  const Json* value = find_first(card, keys);
  if (value == nullptr) return std::nullopt;
  Json::List named;
  if (value->is_text()) named.push_back(*value);
  if (value->is_list()) named = value->list();
  std::vector<Json> sources;
  for (const Json& one : named) {
    Json source = one.is_text() ? named_source(one.text(), parameters) : one;
    sources.push_back(source.is_object() ? std::move(source) : Json(Json::Members()));
  }
  return sources;
}

void add_to_list(std::optional<Json::List>& list, const Json* value) {
  if (is_null(value)) return;
  if (!list) list.emplace();
  if (value->is_text()) list->push_back(*value);
  if (value->is_list()) list->insert(list->end(), value->list().begin(), value->list().end());
}

void add_card(Authorship& known, const Json& card, std::uint64_t parameters) {
  for (const auto& [value, key] : kCardKeys) {
    if (const Json* found = card.find(key); found != nullptr && (known.*value).is_null()) known.*value = *found;
  }
  known.base_models = read_sources(card, "base_model base_models base_model_sources", parameters);
  known.datasets = read_sources(card, "datasets dataset dataset_sources", parameters);
  for (const auto& [list, key] : kCardLists) add_to_list(known.*list, card.find(key));
}

void add_name(Authorship& known, std::string_view id, std::uint64_t parameters) {
  const auto learn = [](Json& value, const std::optional<std::string>& learned) {
    if (value.is_null() && learned) value = *learned;
  };
  const ModelNameParts parts = split_model_name(id, parameters);
  if (known.name.is_null() && parts.name) known.name = title_of_id(*parts.name);
  if (known.organization.is_null() && parts.organization) known.organization = title_of_id(*parts.organization);
  learn(known.basename, parts.basename);
  learn(known.finetune, parts.finetune);
  learn(known.version, parts.version);
  learn(known.size_label, parts.size_label);
}

}  // namespace

Authorship find_authorship(const Json& card, const Json& raw_config, const std::string& folder_name,
                           std::uint64_t parameters) {
  Authorship known;
  add_card(known, card, parameters);
  // With more than one slash it is a path on somebody's machine.
  const Json* id = raw_config.find("_name_or_path");
  if (id != nullptr && id->is_text() && std::ranges::count(id->text(), '/') <= 1)
    add_name(known, id->text(), parameters);
  add_name(known, folder_name, parameters);
  return known;
}

}  // namespace ballast::llamacpp
