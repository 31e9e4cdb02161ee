#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/metadata_text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast {
namespace {

constexpr std::string_view kTypeHint =
    "write KEY:[TYPE]=a,b,c or KEY:[TYPE]=[\"a\", \"b\"]: u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool string";

// An element as somebody wrote it.
struct Item {
  enum class Kind : std::uint8_t { text, number, boolean, word } kind;  // a word may be any of the others
  std::string text;
};

[[noreturn]] void refuse_array(std::string_view key, const std::string& why) {
  throw Error(Errc::invalid_argument, fmt::format("field {}: {}", quote(key), why)).hint(kTypeHint);
}

std::optional<MetadataType> type_called(std::string_view word) {
  return word == "str" ? MetadataType::string : metadata_type_from_name(word);
}

Item item_of(std::string_view key, const Json& json) {
  if (json.is_text()) return {Item::Kind::text, json.text()};
  if (json.is_number()) return {Item::Kind::number, to_string(json)};
  if (json.is_bool()) return {Item::Kind::boolean, json.boolean() ? "true" : "false"};
  refuse_array(key, "an array has texts, numbers, or true and false in it, and nothing else");
}

// Nothing if the text is not a JSON array.
std::optional<std::vector<Item>> json_items(std::string_view key, std::string_view text) {
  if (!text.starts_with('[')) return std::nullopt;
  std::optional<Json> json;
  try {
    json = Json::parse(text);
  } catch (const Error& error) {
    if (error.code() != Errc::malformed) throw;
    return std::nullopt;
  }
  std::vector<Item> items;
  for (const Json& item : json->list()) items.push_back(item_of(key, item));
  return items;
}

std::vector<Item> comma_items(std::string_view text) {
  std::vector<Item> items;
  if (text.empty()) return items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back({Item::Kind::word, std::string(text.substr(begin, end - begin))});
    begin = end + 1;
  }
  return items;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

template <class T>
std::optional<MetadataEntry> array_of_numbers(std::string_view key, const std::vector<Item>& items) {
  std::vector<T> values;
  for (const Item& item : items) {
    const std::string_view text = item.kind == Item::Kind::word ? trimmed(item.text) : std::string_view(item.text);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool may_be_number = item.kind == Item::Kind::number || item.kind == Item::Kind::word;
    if (!may_be_number || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    values.push_back(value);
  }
  return MetadataEntry::numbers(key, std::span<const T>(values));
}

std::optional<MetadataEntry> array_of_strings(std::string_view key, const std::vector<Item>& items) {
  std::vector<std::string> texts;
  for (const Item& item : items) {
    if (item.kind != Item::Kind::text && item.kind != Item::Kind::word) return std::nullopt;
    texts.push_back(item.text);
  }
  return MetadataEntry::strings(key, texts);
}

std::optional<MetadataEntry> array_of_booleans(std::string_view key, const std::vector<Item>& items) {
  std::vector<std::byte> values;
  for (const Item& item : items) {
    const std::string_view text = item.kind == Item::Kind::word ? trimmed(item.text) : std::string_view(item.text);
    if (item.kind == Item::Kind::text || (text != "true" && text != "false")) return std::nullopt;
    values.push_back(std::byte{text == "true"});
  }
  return MetadataEntry::array_from_bytes(key, MetadataType::boolean, values.size(), values);
}

// Nothing if an element cannot be of that type.
std::optional<MetadataEntry> array_of(MetadataType type, std::string_view key, const std::vector<Item>& items) {
  switch (type) {
    case MetadataType::u8: return array_of_numbers<std::uint8_t>(key, items);
    case MetadataType::i8: return array_of_numbers<std::int8_t>(key, items);
    case MetadataType::u16: return array_of_numbers<std::uint16_t>(key, items);
    case MetadataType::i16: return array_of_numbers<std::int16_t>(key, items);
    case MetadataType::u32: return array_of_numbers<std::uint32_t>(key, items);
    case MetadataType::i32: return array_of_numbers<std::int32_t>(key, items);
    case MetadataType::u64: return array_of_numbers<std::uint64_t>(key, items);
    case MetadataType::i64: return array_of_numbers<std::int64_t>(key, items);
    case MetadataType::f32: return array_of_numbers<float>(key, items);
    case MetadataType::f64: return array_of_numbers<double>(key, items);
    case MetadataType::boolean: return array_of_booleans(key, items);
    case MetadataType::string: return array_of_strings(key, items);
    case MetadataType::array: break;
  }
  return std::nullopt;
}

MetadataEntry guessed_array(std::string_view key, const std::vector<Item>& items) {
  constexpr std::array kGuesses = {MetadataType::string, MetadataType::boolean, MetadataType::u32, MetadataType::i32,
                                   MetadataType::u64,    MetadataType::i64,     MetadataType::f32, MetadataType::f64};
  if (items.empty()) refuse_array(key, "an empty array does not say of what type its elements would be");
  for (const MetadataType type : kGuesses) {
    if (auto field = array_of(type, key, items)) return *std::move(field);
  }
  refuse_array(key, "the elements of an array are all of one type");
}

MetadataEntry array_of_type(MetadataType type, std::string_view key, std::string_view text) {
  auto items = json_items(key, text);
  if (auto field = array_of(type, key, items ? *items : comma_items(text))) return *std::move(field);
  refuse_array(key, fmt::format("{} is no array of {}", quote(text), name(type)));
}

// The type in "KEY:[TYPE]", and the key without it.
std::optional<MetadataType> take_element_type(std::string_view& key) {
  const std::size_t colon = key.rfind(":[");
  if (colon == 0 || colon == key.npos || !key.ends_with(']')) return std::nullopt;
  const std::string_view word = key.substr(colon + 2, key.size() - colon - 3);
  const auto type = type_called(word);
  if (!type || *type == MetadataType::array) refuse_array(key, fmt::format("there is no type {}", quote(word)));
  key = key.substr(0, colon);
  return type;
}

// "KEY=VALUE", "KEY:TYPE=VALUE" or "KEY:[TYPE]=VALUE" taken apart.
struct Assigned {
  std::string key;
  std::optional<MetadataType> type, element_type;
  std::string text;
};

Assigned taken_apart(std::string_view assignment) {
  auto [key, type, text] = parse_metadata_assignment(assignment);
  std::string_view plain = key;
  const auto element_type = type ? std::nullopt : take_element_type(plain);
  constexpr std::string_view kShortString = ":str";
  if (!type && !element_type && plain.size() > kShortString.size() && plain.ends_with(kShortString)) {
    plain.remove_suffix(kShortString.size());
    type = MetadataType::string;
  }
  if (element_type) type = MetadataType::array;
  return {std::string(plain), type, element_type, std::move(text)};
}

MetadataEntry assigned_array(const Assigned& assigned, const MetadataEntry* old) {
  const auto& [key, type, element_type, text] = assigned;
  if (element_type) return array_of_type(*element_type, key, text);
  const auto items = json_items(key, text);
  if (!items) refuse_array(key, fmt::format("it is an array, and {} is no JSON array", quote(text)));
  const bool keeps_type = !type && old != nullptr && old->element_type != MetadataType::array;
  return keeps_type ? array_of_type(old->element_type, key, text) : guessed_array(key, *items);
}

}  // namespace

std::string assign(TypedMetadata& fields, std::string_view assignment) {
  const Assigned assigned = taken_apart(assignment);
  const MetadataEntry* old = fields.find(assigned.key);
  const bool is_array = assigned.type    ? *assigned.type == MetadataType::array
                        : old != nullptr ? old->is_array()
                                         : json_items(assigned.key, assigned.text).has_value();
  if (is_array)
    fields.set(assigned_array(assigned, old));
  else
    fields.set_from_text(assigned.key, assigned.text, assigned.type);
  return assigned.key;
}

TextAssignment parse_text_assignment(std::string_view assignment) {
  Assigned assigned = taken_apart(assignment);
  const auto type = assigned.element_type ? assigned.element_type : assigned.type;
  if (assigned.type.value_or(MetadataType::string) != MetadataType::string) {
    throw Error(Errc::invalid_argument,
                fmt::format("{} cannot be {}{}: the metadata of such a file are texts", quote(assigned.key),
                            assigned.element_type ? "an array of " : "", name(*type)));
  }
  return {std::move(assigned.key), std::move(assigned.text)};
}

}  // namespace ballast
