#include <ballast/error.hpp>
#include <ballast/typed_metadata.hpp>

#include <charconv>
#include <cmath>
#include <concepts>

#include <fmt/format.h>

#include "core/json_string.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

std::string replace_what_is_not_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(1);
  }
  return out;
}

struct AppendValue {
  std::string& out;
  bool quoted;

  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::string_view value) const {
    if (!quoted)
      out += value;
    else
      append_json_string(out, replace_what_is_not_utf8(value));
  }
  template <class T>
  void operator()(T number) const {
    out += fmt::format("{}", number);
  }
};

// The whole text as a number; nothing if it is not a number or does not fit.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

template <class T>
std::optional<MetadataEntry> number_field(std::string_view key, std::string_view text) {
  const auto number = parse_number<T>(text);
  return number ? std::optional(MetadataEntry::of(key, *number)) : std::nullopt;
}

std::optional<MetadataEntry> field_of_type(std::string_view key, MetadataType type, std::string_view text) {
  switch (type) {
    case MetadataType::u8: return number_field<std::uint8_t>(key, text);
    case MetadataType::i8: return number_field<std::int8_t>(key, text);
    case MetadataType::u16: return number_field<std::uint16_t>(key, text);
    case MetadataType::i16: return number_field<std::int16_t>(key, text);
    case MetadataType::u32: return number_field<std::uint32_t>(key, text);
    case MetadataType::i32: return number_field<std::int32_t>(key, text);
    case MetadataType::u64: return number_field<std::uint64_t>(key, text);
    case MetadataType::i64: return number_field<std::int64_t>(key, text);
    case MetadataType::f32: return number_field<float>(key, text);
    case MetadataType::f64: return number_field<double>(key, text);
    case MetadataType::string: return MetadataEntry::of(key, text);
    case MetadataType::boolean:
      if (const auto value = parse_bool(text)) return MetadataEntry::of(key, *value);
      return std::nullopt;
    case MetadataType::array: break;
  }
  return std::nullopt;
}

// A text such as "nan", "inf" or a word of hexadecimal digits is taken for a name, not for a number.
bool looks_like_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("+-.0123456789eE") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

MetadataEntry guessed_field(std::string_view key, std::string_view text) {
  if (looks_like_number(text)) {
    for (const MetadataType type : {MetadataType::u32, MetadataType::i32, MetadataType::u64, MetadataType::i64,
                                    MetadataType::f32, MetadataType::f64}) {
      if (auto field = field_of_type(key, type, text)) return *std::move(field);
    }
  }
  if (const auto value = parse_bool(text)) return MetadataEntry::of(key, *value);
  return MetadataEntry::of(key, text);
}

}  // namespace

std::string text(const MetadataEntry& field, std::uint64_t max_items) {
  std::string out;
  if (!field.is_array()) {
    std::visit(AppendValue{out, false}, field.value().get());
    return out;
  }
  if (field.element_type == MetadataType::array) return fmt::format("[{} arrays]", field.count);
  out += '[';
  std::uint64_t shown = 0;
  for (const MetadataValue item : field.items()) {
    if (shown != 0) out += ", ";
    if (shown == max_items) {
      out += fmt::format("... {} more", field.count - shown);
      break;
    }
    std::visit(AppendValue{out, true}, item.get());
    ++shown;
  }
  out += ']';
  return out;
}

MetadataAssignment parse_metadata_assignment(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    throw Error(Errc::invalid_argument, quote(text) + " is no KEY=VALUE")
        .hint("write general.name=Tiny, or with a type llama.block_count:u32=2");
  }
  MetadataAssignment assignment{std::string(text.substr(0, equals)), {}, std::string(text.substr(equals + 1))};
  const auto colon = assignment.key.rfind(':');
  if (colon == 0 || colon == std::string::npos) return assignment;
  assignment.type = metadata_type_from_name(std::string_view(assignment.key).substr(colon + 1));
  if (assignment.type) assignment.key.resize(colon);
  return assignment;
}

void TypedMetadata::set_from_text(std::string_view key, std::string_view text, std::optional<MetadataType> type) {
  const MetadataEntry* old = find(key);
  if (!type && old != nullptr) type = old->type;
  if (!type) return set(guessed_field(key, text));
  if (*type == MetadataType::array) {
    throw Error(Errc::invalid_argument, "field " + quote(key) + " is an array, which cannot be set from a text")
        .hint("name a type to replace it: KEY:string=VALUE");
  }
  auto field = field_of_type(key, *type, text);
  if (!field) {
    throw Error(Errc::invalid_argument,
                quote(text) + " is no " + std::string(name(*type)) + ", which field " + quote(key) + " is")
        .hint("name another type with KEY:TYPE=VALUE: u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool string");
  }
  set(*std::move(field));
}

}  // namespace ballast
