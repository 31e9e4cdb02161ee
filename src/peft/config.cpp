#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast {
namespace {

// With the keys of every object sorted. The parser has limited the depth.
Json sorted(const Json& json) {  // NOLINT(misc-no-recursion)
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

// Python escapes whatever is not ASCII, beyond 16 bits as a pair of surrogates. The text is valid UTF-8.
std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at])); };
    const std::size_t length = byte(i) < 0x80 ? 1 : byte(i) < 0xE0 ? 2 : byte(i) < 0xF0 ? 3 : 4;
    if (length == 1 || i + length > text.size()) {
      out += text[i++];
      continue;
    }
    std::uint32_t code = byte(i) & (0x7Fu >> length);
    for (std::size_t k = 1; k < length; ++k) code = code << 6 | (byte(i + k) & 0x3F);
    out += code < 0x10000 ? fmt::format("\\u{:04x}", code)
                          : fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 | (code & 0x3FF));
    i += length;
  }
  return out;
}

// A field as `read` has it, or `otherwise` if it is missing or null. Complaints name the field.
template <class T, class Read>
T read_field(const AdapterConfig& config, std::string_view field, T otherwise, const Read& read) {
  const Json* value = config.find(field);
  if (value == nullptr) return otherwise;
  try {
    return read(*value);
  } catch (const Error& error) {
    throw Error(Errc::malformed, "the field " + quote(field) + " of the adapter's configuration: " + error.message());
  }
}

std::string word_of(const Json& json) {
  if (json.is_integer()) return std::to_string(json.integer());
  if (json.is_text()) return json.text();
  throw Error(Errc::malformed, "it must be a list of names");
}

}  // namespace

AdapterConfig AdapterConfig::parse(std::string_view text) {
  AdapterConfig config;
  try {
    config.fields = Json::parse(text);
  } catch (Error& error) {
    const bool has_nan = text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
    throw error.hint(has_nan ? "JSON has no NaN and no Infinity: correct the number" : "");
  }
  if (!config.fields.is_object()) throw Error(Errc::malformed, "an adapter's configuration must be a JSON object");
  return config;
}

std::string AdapterConfig::peft_type() const {
  std::string type = text("peft_type");
  if (!type.empty()) return type;
  throw Error(Errc::malformed, "the configuration has no \"peft_type\"")
      .hint("this is not an adapter_config.json of PEFT; for a LoRA, add \"peft_type\": \"LORA\"");
}

const Json* AdapterConfig::find(std::string_view field) const {
  const Json* value = fields.find(field);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool AdapterConfig::is_set(std::string_view field, bool otherwise) const {
  return read_field(*this, field, otherwise, [](const Json& value) { return value.boolean(); });
}

std::string AdapterConfig::text(std::string_view field, std::string_view otherwise) const {
  return read_field(*this, field, std::string(otherwise), [](const Json& value) { return value.text(); });
}

double AdapterConfig::number(std::string_view field, double otherwise) const {
  return read_field(*this, field, otherwise, [](const Json& value) {
    if (std::isfinite(value.number())) return value.number();
    throw Error(Errc::malformed, "it must be finite");
  });
}

std::uint64_t AdapterConfig::count(std::string_view field, std::uint64_t otherwise) const {
  return read_field(*this, field, otherwise, [](const Json& value) { return value.count(); });
}

std::vector<std::string> AdapterConfig::words(std::string_view field) const {
  return read_field(*this, field, std::vector<std::string>(), [](const Json& value) {
    if (!value.is_list()) return std::vector{word_of(value)};
    std::vector<std::string> words;
    for (const Json& item : value.list()) words.push_back(word_of(item));
    return words;
  });
}

std::string to_string(const AdapterConfig& config) { return escaped(to_string(sorted(config.fields), 2)); }

}  // namespace ballast
