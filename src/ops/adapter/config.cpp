#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <algorithm>

#include "core/text.hpp"

namespace ballast {
namespace {

// Keys sorted at every depth.
Json sorted(const Json& json) {
  if (json.is_list()) {
    Json::List list;
    for (const Json& item : json.list()) list.push_back(sorted(item));
    return list;
  }
  if (!json.is_object()) return json;
  Json::Members members;
  for (const auto& [key, value] : json.members()) members.emplace_back(key, sorted(value));
  std::ranges::sort(members, {}, &Json::Member::first);
  return members;
}

[[noreturn]] void throw_wrong(std::string_view field, const Error& error) {
  throw Error(Errc::malformed, "the field " + quote(field) + " of the adapter's configuration: " + error.message());
}

}  // namespace

AdapterConfig AdapterConfig::parse(std::string_view text) {
  AdapterConfig config{Json::parse(text)};
  if (!config.fields.is_object()) throw Error(Errc::malformed, "an adapter's configuration must be a JSON object");
  return config;
}

std::string AdapterConfig::peft_type() const {
  const std::string type = text("peft_type");
  if (!type.empty()) return type;
  throw Error(Errc::malformed, "the configuration has no \"peft_type\"")
      .hint("this is no adapter_config.json of PEFT; for a LoRA, add \"peft_type\": \"LORA\"");
}

const Json* AdapterConfig::find(std::string_view field) const {
  const Json* value = fields.find(field);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool AdapterConfig::is_set(std::string_view field) const try {
  const Json* value = find(field);
  return value != nullptr && value->boolean();
} catch (const Error& error) {
  throw_wrong(field, error);
}

std::string AdapterConfig::text(std::string_view field) const try {
  const Json* value = find(field);
  return value == nullptr ? "" : value->text();
} catch (const Error& error) {
  throw_wrong(field, error);
}

double AdapterConfig::number(std::string_view field, double otherwise) const try {
  const Json* value = find(field);
  return value == nullptr ? otherwise : value->number();
} catch (const Error& error) {
  throw_wrong(field, error);
}

std::string to_string(const AdapterConfig& config) { return to_string(sorted(config.fields), 2); }

}  // namespace ballast
