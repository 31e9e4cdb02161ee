#include "llamacpp/keys/metadata_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp {
namespace {

std::string shown_value(const Json& value) {
  const std::string text = to_string(value);
  return text.size() <= 60 ? escape_for_terminal(text) : escape_for_terminal(text.substr(0, 60)) + "…";
}

Error does_not_fit(std::string_view key, const Json& value, std::string_view type) {
  return {Errc::malformed,
          fmt::format("the value of {} would be {}, which is not {}", quote(key), shown_value(value), type)};
}

template <class Integer>
Integer integer_of(std::string_view key, const Json& value, std::string_view type) {
  const auto number = whole_number(&value);
  if (!number || !std::in_range<Integer>(*number)) throw does_not_fit(key, value, type);
  return static_cast<Integer>(*number);
}

float float_of(std::string_view key, const Json& value) {
  const auto number = real_number(&value);
  if (!number) throw does_not_fit(key, value, "a number");
  const auto rounded = static_cast<float>(*number);
  if (!std::isfinite(rounded)) throw does_not_fit(key, value, "a number that fits 32 bits");
  return rounded;
}

MetadataEntry booleans_entry(std::string_view key, const Json::List& items) {
  std::vector<std::byte> bytes;
  for (const Json& item : items) bytes.push_back(std::byte{item.boolean()});
  return MetadataEntry::array_from_bytes(key, MetadataType::boolean, bytes.size(), bytes);
}

template <class T, class Convert>
std::vector<T> converted_items(const Json::List& items, Convert convert) {
  std::vector<T> values;
  std::ranges::transform(items, std::back_inserter(values), convert);
  return values;
}

}  // namespace

MetadataEntry u32_entry(std::string_view key, const Json& value) {
  return MetadataEntry::of(key, integer_of<std::uint32_t>(key, value, "a whole number below 2^32"));
}

MetadataEntry i32_entry(std::string_view key, const Json& value) {
  return MetadataEntry::of(key, integer_of<std::int32_t>(key, value, "a whole number of 32 bits"));
}

MetadataEntry f32_entry(std::string_view key, const Json& value) {
  return MetadataEntry::of(key, float_of(key, value));
}

MetadataEntry list_entry(std::string_view key, const Json& value) {
  const Json::List& items = value.list();
  const auto all = [&](bool (Json::*is)() const noexcept) {
    return std::ranges::all_of(items, [is](const Json& item) { return (item.*is)(); });
  };
  if (all(&Json::is_bool)) return booleans_entry(key, items);
  if (all(&Json::is_text)) {
    return MetadataEntry::strings(key,
                                  converted_items<std::string>(items, [](const Json& item) { return item.text(); }));
  }
  if (all(&Json::is_integer)) {
    const auto numbers = converted_items<std::int32_t>(
        items, [&](const Json& item) { return integer_of<std::int32_t>(key, item, "a whole number of 32 bits"); });
    return MetadataEntry::numbers<std::int32_t>(key, numbers);
  }
  if (all(&Json::is_double)) {
    const auto numbers = converted_items<float>(items, [&](const Json& item) { return float_of(key, item); });
    return MetadataEntry::numbers<float>(key, numbers);
  }
  throw does_not_fit(key, value, "a list of values of one kind");
}

}  // namespace ballast::llamacpp
