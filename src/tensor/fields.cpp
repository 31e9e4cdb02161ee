#include <ballast/error.hpp>
#include <ballast/fields.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/name_hash.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read where they lie");

struct TypeInfo {
  std::string_view name;
  std::size_t width;
};

// In the order of the enum.
constexpr TypeInfo kFieldTypes[] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8},
};
static_assert(std::size(kFieldTypes) == static_cast<std::size_t>(FieldType::f64) + 1);

constexpr std::size_t kLengthBytes = 8;  // bytes of the length of a string in an array

template <class T>
T load(std::span<const std::byte> bytes) noexcept {
  T value{};
  if (bytes.size() >= sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Copies key and value into one block of memory.
Field copied(std::string_view key, FieldType type, FieldType element_type, std::uint64_t count,
             std::span<const std::byte> bytes) {
  if (key.empty()) throw Error(Errc::invalid_argument, "a field must have a key");
  const std::shared_ptr<char[]> copy(new char[key.size() + bytes.size()]);
  std::memcpy(copy.get(), key.data(), key.size());
  if (!bytes.empty()) std::memcpy(copy.get() + key.size(), bytes.data(), bytes.size());
  const auto* value = reinterpret_cast<const std::byte*>(copy.get() + key.size());
  return {{copy.get(), key.size()}, type, element_type, count, {value, bytes.size()}, copy};
}

[[noreturn]] void throw_wrong_size(std::string_view key, std::size_t size, const std::string& what) {
  throw Error(Errc::invalid_argument, std::to_string(size) + " bytes for field " + quote(key) + " are not " + what);
}

bool has_items(FieldType type, std::uint64_t count, std::span<const std::byte> bytes) noexcept {
  if (const std::size_t each = width(type); each != 0) return bytes.size() % each == 0 && bytes.size() / each == count;
  std::uint64_t found = 0;
  std::size_t used = 0;
  for (const FieldValue item : FieldItems(type, bytes)) {
    used += kLengthBytes + item.bytes.size();
    ++found;
  }
  return found == count && used == bytes.size();
}

}  // namespace

std::string_view name(FieldType type) noexcept { return kFieldTypes[static_cast<std::size_t>(type)].name; }

std::size_t width(FieldType type) noexcept { return kFieldTypes[static_cast<std::size_t>(type)].width; }

std::optional<FieldType> field_type_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kFieldTypes); ++i) {
    if (kFieldTypes[i].name == name) return static_cast<FieldType>(i);
  }
  return std::nullopt;
}

std::variant<bool, std::uint64_t, std::int64_t, float, double, std::string_view> FieldValue::get() const noexcept {
  switch (type) {
    case FieldType::u8: return std::uint64_t{load<std::uint8_t>(bytes)};
    case FieldType::u16: return std::uint64_t{load<std::uint16_t>(bytes)};
    case FieldType::u32: return std::uint64_t{load<std::uint32_t>(bytes)};
    case FieldType::u64: return load<std::uint64_t>(bytes);
    case FieldType::i8: return std::int64_t{load<std::int8_t>(bytes)};
    case FieldType::i16: return std::int64_t{load<std::int16_t>(bytes)};
    case FieldType::i32: return std::int64_t{load<std::int32_t>(bytes)};
    case FieldType::i64: return load<std::int64_t>(bytes);
    case FieldType::f32: return load<float>(bytes);
    case FieldType::f64: return load<double>(bytes);
    case FieldType::boolean: return load<std::uint8_t>(bytes) != 0;
    case FieldType::string: return as_text(bytes);
    case FieldType::array: break;
  }
  return std::string_view{};
}

std::optional<std::uint64_t> FieldValue::as_uint() const noexcept {
  const auto value = get();
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value); number && *number >= 0)
    return static_cast<std::uint64_t>(*number);
  return std::nullopt;
}

std::optional<std::int64_t> FieldValue::as_int() const noexcept {
  const auto value = get();
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value); number && std::in_range<std::int64_t>(*number))
    return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

std::optional<double> FieldValue::as_double() const noexcept {
  const auto value = get();
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<float>(&value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<bool> FieldValue::as_bool() const noexcept {
  if (type != FieldType::boolean) return std::nullopt;
  return load<std::uint8_t>(bytes) != 0;
}

std::optional<std::string_view> FieldValue::as_string() const noexcept {
  if (type != FieldType::string) return std::nullopt;
  return as_text(bytes);
}

void FieldItems::iterator::find_item() noexcept {
  std::size_t before = 0;
  std::uint64_t size = width(type_);
  if (size == 0) {
    before = kLengthBytes;
    size = load<std::uint64_t>(rest_);
  }
  at_end_ = rest_.size() < before || size > rest_.size() - before;
  if (at_end_) return;
  item_ = rest_.subspan(before, static_cast<std::size_t>(size));
  rest_ = rest_.subspan(before + item_.size());
}

Field Field::from_bytes(std::string_view key, FieldType type, std::span<const std::byte> bytes) {
  if (type == FieldType::array || (type != FieldType::string && bytes.size() != width(type)))
    throw_wrong_size(key, bytes.size(), "one " + std::string(name(type)));
  return copied(key, type, FieldType::u8, 1, bytes);
}

Field Field::array_from_bytes(std::string_view key, FieldType element_type, std::uint64_t count,
                              std::span<const std::byte> bytes) {
  if (element_type == FieldType::array || !has_items(element_type, count, bytes)) {
    throw_wrong_size(key, bytes.size(),
                     "an array of " + std::to_string(count) + " elements of type " + std::string(name(element_type)));
  }
  return copied(key, FieldType::array, element_type, count, bytes);
}

Field Field::of(std::string_view key, std::string_view text) {
  return from_bytes(key, FieldType::string, std::as_bytes(std::span(text)));
}

Field Field::strings(std::string_view key, std::span<const std::string> texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const std::uint64_t length = text.size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
  }
  return copied(key, FieldType::array, FieldType::string, texts.size(), std::as_bytes(std::span(bytes)));
}

bool operator==(const Field& a, const Field& b) noexcept {
  if (a.key != b.key || a.type != b.type || !std::ranges::equal(a.bytes, b.bytes)) return false;
  return !a.is_array() || (a.element_type == b.element_type && a.count == b.count);
}

// The slot that holds the key, or the empty slot where the key would go.
std::size_t Fields::find_slot(std::string_view key, std::uint32_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.number == 0 || (slot.hash == hash && fields_[slot.number - 1].key == key)) return i;
  }
}

// Makes slots for all fields and for as many again, so that adding a field costs little.
std::optional<std::size_t> Fields::index() {
  slots_.assign(std::bit_ceil(2 * fields_.size() + 8), Slot{});
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::uint32_t hash = short_name_hash(fields_[i].key);
    Slot& slot = slots_[find_slot(fields_[i].key, hash)];
    if (slot.number != 0) return i;
    slot = {hash, static_cast<std::uint32_t>(i + 1)};
  }
  return std::nullopt;
}

const Field* Fields::find(std::string_view key) const noexcept {
  if (slots_.empty()) return nullptr;
  const Slot& slot = slots_[find_slot(key, short_name_hash(key))];
  return slot.number == 0 ? nullptr : &fields_[slot.number - 1];
}

std::optional<std::uint64_t> Fields::find_uint(std::string_view key) const noexcept {
  const Field* field = find(key);
  return field ? field->as_uint() : std::nullopt;
}

std::optional<std::string_view> Fields::find_string(std::string_view key) const noexcept {
  const Field* field = find(key);
  return field ? field->as_string() : std::nullopt;
}

void Fields::set(Field field) {
  if ((fields_.size() + 1) * 4 > slots_.size() * 3) index();
  const std::uint32_t hash = short_name_hash(field.key);
  Slot& slot = slots_[find_slot(field.key, hash)];
  if (slot.number != 0) {
    fields_[slot.number - 1] = std::move(field);
    return;
  }
  fields_.push_back(std::move(field));
  slot = {hash, static_cast<std::uint32_t>(fields_.size())};
}

bool Fields::remove(std::string_view key) {
  const Field* field = find(key);
  if (field == nullptr) return false;
  fields_.erase(fields_.begin() + (field - fields_.data()));
  index();
  return true;
}

std::optional<std::size_t> Fields::adopt(std::vector<Field> fields) {
  fields_ = std::move(fields);
  return index();
}

}  // namespace ballast
