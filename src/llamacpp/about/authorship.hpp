// Authorship: what is known about a model as a whole, from its card, its config.json and its folder's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>

#include "llamacpp/config/model_config.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

// A value is null if nothing is known.
struct Authorship {
  Json name, author, version, organization, finetune, basename, description, size_label;
  Json license, license_name, license_link;
  Json source_url, source_doi, source_uuid, source_repo_url;
  // Each item is an object with "name", "organization", "version", "repo_url" and so on, where they are known.
  std::optional<std::vector<Json>> base_models, datasets;
  std::optional<Json::List> tags, languages;
};

// `parameters` helps to tell sizes in names from other numbers.
Authorship find_authorship(const Json& card, const Json& raw_config, const std::string& folder_name,
                           std::uint64_t parameters);

}  // namespace ballast::llamacpp
