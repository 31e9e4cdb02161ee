#include <ballast/error.hpp>
#include <ballast/typed_metadata.hpp>

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
static_assert(std::size(kFieldTypes) == static_cast<std::size_t>(MetadataType::f64) + 1);

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
MetadataEntry copied(std::string_view key, MetadataType type, MetadataType element_type, std::uint64_t count,
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

bool has_items(MetadataType type, std::uint64_t count, std::span<const std::byte> bytes) noexcept {
  if (const std::size_t each = width(type); each != 0) return bytes.size() % each == 0 && bytes.size() / each == count;
  std::uint64_t found = 0;
  std::size_t used = 0;
  for (const MetadataValue item : MetadataItems(type, bytes)) {
    used += kLengthBytes + item.bytes.size();
    ++found;
  }
  return found == count && used == bytes.size();
}

}  // namespace

std::string_view name(MetadataType type) noexcept { return kFieldTypes[static_cast<std::size_t>(type)].name; }

std::size_t width(MetadataType type) noexcept { return kFieldTypes[static_cast<std::size_t>(type)].width; }

std::optional<MetadataType> metadata_type_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kFieldTypes); ++i) {
    if (kFieldTypes[i].name == name) return static_cast<MetadataType>(i);
  }
  return std::nullopt;
}

std::variant<bool, std::uint64_t, std::int64_t, float, double, std::string_view> MetadataValue::get() const noexcept {
  switch (type) {
    case MetadataType::u8: return std::uint64_t{load<std::uint8_t>(bytes)};
    case MetadataType::u16: return std::uint64_t{load<std::uint16_t>(bytes)};
    case MetadataType::u32: return std::uint64_t{load<std::uint32_t>(bytes)};
    case MetadataType::u64: return load<std::uint64_t>(bytes);
    case MetadataType::i8: return std::int64_t{load<std::int8_t>(bytes)};
    case MetadataType::i16: return std::int64_t{load<std::int16_t>(bytes)};
    case MetadataType::i32: return std::int64_t{load<std::int32_t>(bytes)};
    case MetadataType::i64: return load<std::int64_t>(bytes);
    case MetadataType::f32: return load<float>(bytes);
    case MetadataType::f64: return load<double>(bytes);
    case MetadataType::boolean: return load<std::uint8_t>(bytes) != 0;
    case MetadataType::string: return as_text(bytes);
    case MetadataType::array: break;
  }
  return std::string_view{};
}

std::optional<std::uint64_t> MetadataValue::as_uint() const noexcept {
  const auto value = get();
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value); number && *number >= 0)
    return static_cast<std::uint64_t>(*number);
  return std::nullopt;
}

std::optional<std::int64_t> MetadataValue::as_int() const noexcept {
  const auto value = get();
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value); number && std::in_range<std::int64_t>(*number))
    return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

std::optional<double> MetadataValue::as_double() const noexcept {
  const auto value = get();
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<float>(&value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<bool> MetadataValue::as_bool() const noexcept {
  if (type != MetadataType::boolean) return std::nullopt;
  return load<std::uint8_t>(bytes) != 0;
}

std::optional<std::string_view> MetadataValue::as_string() const noexcept {
  if (type != MetadataType::string) return std::nullopt;
  return as_text(bytes);
}

void MetadataItems::iterator::find_item() noexcept {
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

MetadataEntry MetadataEntry::from_bytes(std::string_view key, MetadataType type, std::span<const std::byte> bytes) {
  if (type == MetadataType::array || (type != MetadataType::string && bytes.size() != width(type)))
    throw_wrong_size(key, bytes.size(), "one " + std::string(name(type)));
  return copied(key, type, MetadataType::u8, 1, bytes);
}

MetadataEntry MetadataEntry::array_from_bytes(std::string_view key, MetadataType element_type, std::uint64_t count,
                                              std::span<const std::byte> bytes) {
  if (element_type == MetadataType::array || !has_items(element_type, count, bytes)) {
    throw_wrong_size(key, bytes.size(),
                     "an array of " + std::to_string(count) + " elements of type " + std::string(name(element_type)));
  }
  return copied(key, MetadataType::array, element_type, count, bytes);
}

MetadataEntry MetadataEntry::of(std::string_view key, std::string_view text) {
  return from_bytes(key, MetadataType::string, std::as_bytes(std::span(text)));
}

MetadataEntry MetadataEntry::strings(std::string_view key, std::span<const std::string> texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const std::uint64_t length = text.size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
  }
  return copied(key, MetadataType::array, MetadataType::string, texts.size(), std::as_bytes(std::span(bytes)));
}

bool operator==(const MetadataEntry& a, const MetadataEntry& b) noexcept {
  if (a.key != b.key || a.type != b.type || !std::ranges::equal(a.bytes, b.bytes)) return false;
  return !a.is_array() || (a.element_type == b.element_type && a.count == b.count);
}

// The slot that holds the key, or the empty slot where the key would go.
std::size_t TypedMetadata::find_slot(std::string_view key, std::uint32_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.number == 0 || (slot.hash == hash && entries_[slot.number - 1].key == key)) return i;
  }
}

// Makes slots for all fields and for as many again, so that adding a field costs little.
std::optional<std::size_t> TypedMetadata::index() {
  slots_.assign(std::bit_ceil(2 * entries_.size() + 8), Slot{});
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint32_t hash = short_name_hash(entries_[i].key);
    Slot& slot = slots_[find_slot(entries_[i].key, hash)];
    if (slot.number != 0) return i;
    slot = {hash, static_cast<std::uint32_t>(i + 1)};
  }
  return std::nullopt;
}

const MetadataEntry* TypedMetadata::find(std::string_view key) const noexcept {
  if (slots_.empty()) return nullptr;
  const Slot& slot = slots_[find_slot(key, short_name_hash(key))];
  return slot.number == 0 ? nullptr : &entries_[slot.number - 1];
}

std::optional<std::uint64_t> TypedMetadata::find_uint(std::string_view key) const noexcept {
  const MetadataEntry* field = find(key);
  return field ? field->as_uint() : std::nullopt;
}

std::optional<std::string_view> TypedMetadata::find_string(std::string_view key) const noexcept {
  const MetadataEntry* field = find(key);
  return field ? field->as_string() : std::nullopt;
}

void TypedMetadata::set(MetadataEntry field) {
  if ((entries_.size() + 1) * 4 > slots_.size() * 3) index();
  const std::uint32_t hash = short_name_hash(field.key);
  Slot& slot = slots_[find_slot(field.key, hash)];
  if (slot.number != 0) {
    entries_[slot.number - 1] = std::move(field);
    return;
  }
  entries_.push_back(std::move(field));
  slot = {hash, static_cast<std::uint32_t>(entries_.size())};
}

bool TypedMetadata::remove(std::string_view key) {
  const MetadataEntry* field = find(key);
  if (field == nullptr) return false;
  entries_.erase(entries_.begin() + (field - entries_.data()));
  index();
  return true;
}

std::optional<std::size_t> TypedMetadata::adopt(std::vector<MetadataEntry> fields) {
  entries_ = std::move(fields);
  return index();
}

}  // namespace ballast
