// TypedMetadata: the typed metadata of a GGUF file, in the file's order.
//
// An entry's value stays as the bytes that the file has for it, in the little-endian encoding of GGUF 3, kept alive by
// a shared owner: a vocabulary of 160 000 strings is one span and costs nothing until somebody walks it. Copies share
// the values. Several threads may read typed metadata while nobody changes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace ballast {

// The numbers are those of GGUF.
enum class MetadataType : std::uint8_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

std::string_view name(MetadataType type) noexcept;  // "u32", "bool", "string", "array", ...
std::optional<MetadataType> metadata_type_from_name(std::string_view name) noexcept;
std::size_t width(MetadataType type) noexcept;  // bytes of one value; 0 for strings and arrays, whose size is not fixed

// One number, boolean or string: a view of bytes that somebody else keeps alive.
struct MetadataValue {
  MetadataType type;
  std::span<const std::byte> bytes;  // for a string, its characters

  // Integers are widened to 64 bits; a boolean is true unless it is 0. For an array, an empty string.
  std::variant<bool, std::uint64_t, std::int64_t, float, double, std::string_view> get() const noexcept;

  // Nothing if the value is of another kind, or does not fit.
  std::optional<std::uint64_t> as_uint() const noexcept;  // any integer of at least 0
  std::optional<std::int64_t> as_int() const noexcept;
  std::optional<double> as_double() const noexcept;  // any number
  std::optional<bool> as_bool() const noexcept;
  std::optional<std::string_view> as_string() const noexcept;  // bytes; UTF-8 if the file follows its specification
};

// The elements of an array, one after the other: strings have no fixed offsets, so the way to the last one leads past
// all others.
class MetadataItems {
 public:
  class iterator {
   public:
    using value_type = MetadataValue;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    iterator(MetadataType type, std::span<const std::byte> rest) noexcept : type_(type), rest_(rest) { find_item(); }
    MetadataValue operator*() const noexcept { return {type_, item_}; }
    iterator& operator++() noexcept {
      find_item();
      return *this;
    }
    void operator++(int) noexcept { find_item(); }
    friend bool operator==(const iterator& at, std::default_sentinel_t) noexcept { return at.at_end_; }

   private:
    void find_item() noexcept;

    MetadataType type_ = MetadataType::u8;
    bool at_end_ = true;
    std::span<const std::byte> item_, rest_;
  };

  MetadataItems(MetadataType type, std::span<const std::byte> bytes) noexcept : type_(type), bytes_(bytes) {}
  iterator begin() const noexcept { return {type_, bytes_}; }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  MetadataType type_;
  std::span<const std::byte> bytes_;
};

// A key and its value. It is cheap to copy, and keeps alive what it views.
struct MetadataEntry {
  std::string_view key;
  MetadataType type = MetadataType::u8;
  MetadataType element_type = MetadataType::u8;  // of an array
  std::uint64_t count = 1;                       // elements of an array
  std::span<const std::byte> bytes;  // as in MetadataValue; of an array its elements, each string after a u64 length
  std::shared_ptr<const void> owner;

  // These copy the key and the value. They throw Errc::invalid_argument for an empty key, and for bytes that are not
  // such a value.
  static MetadataEntry from_bytes(std::string_view key, MetadataType type, std::span<const std::byte> bytes);
  static MetadataEntry array_from_bytes(std::string_view key, MetadataType element_type, std::uint64_t count,
                                        std::span<const std::byte> bytes);
  static MetadataEntry of(std::string_view key, std::string_view text);
  static MetadataEntry strings(std::string_view key, std::span<const std::string> texts);
  template <class T>
  requires std::is_arithmetic_v<T>
  static MetadataEntry of(std::string_view key, T number) {
    return from_bytes(key, type_of<T>(), std::as_bytes(std::span(&number, 1)));
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  static MetadataEntry numbers(std::string_view key, std::span<const T> values) {
    return array_from_bytes(key, type_of<T>(), values.size(), std::as_bytes(values));
  }

  bool is_array() const noexcept { return type == MetadataType::array; }
  // The elements of an array. An array of arrays is kept as bytes and has no items.
  MetadataItems items() const noexcept {
    const bool has_items = is_array() && element_type != MetadataType::array;
    return {element_type, has_items ? bytes : std::span<const std::byte>{}};
  }
  MetadataValue value() const noexcept { return {type, bytes}; }

  std::optional<std::uint64_t> as_uint() const noexcept { return value().as_uint(); }
  std::optional<std::int64_t> as_int() const noexcept { return value().as_int(); }
  std::optional<double> as_double() const noexcept { return value().as_double(); }
  std::optional<bool> as_bool() const noexcept { return value().as_bool(); }
  std::optional<std::string_view> as_string() const noexcept { return value().as_string(); }

  // The same key, type and bytes.
  friend bool operator==(const MetadataEntry& a, const MetadataEntry& b) noexcept;

 private:
  template <class T>
  static constexpr MetadataType type_of() {
    if constexpr (std::is_same_v<T, bool>) return MetadataType::boolean;
    if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? MetadataType::f32 : MetadataType::f64;
    constexpr MetadataType kUnsigned[] = {MetadataType::u8, MetadataType::u16, MetadataType::u32, MetadataType::u64};
    constexpr MetadataType kSigned[] = {MetadataType::i8, MetadataType::i16, MetadataType::i32, MetadataType::i64};
    constexpr std::size_t kSize = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kSize] : kUnsigned[kSize];
  }
};

// The value as text for people: a number, true or false, a string as it is, [1, 2, ... 98 more] for an array, whose
// strings are written as in JSON. The text is not yet escaped for a terminal.
std::string text(const MetadataEntry& entry, std::uint64_t max_items = std::numeric_limits<std::uint64_t>::max());

// "general.name=Tiny", or with a type, "llama.block_count:u32=2". A word after the last colon that is not the name of a
// type belongs to the key.
struct MetadataAssignment {
  std::string key;
  std::optional<MetadataType> type;
  std::string text;
};
MetadataAssignment parse_metadata_assignment(std::string_view text);  // throws Errc::invalid_argument

class TypedMetadata {
 public:
  std::size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }
  const MetadataEntry& operator[](std::size_t i) const noexcept { return entries_[i]; }

  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  const MetadataEntry* find(std::string_view key) const noexcept;
  std::optional<std::uint64_t> find_uint(std::string_view key) const noexcept;
  std::optional<std::string_view> find_string(std::string_view key) const noexcept;

  // Replaces the entry that has the key, or appends the entry.
  void set(MetadataEntry entry);
  bool remove(std::string_view key);  // false if no entry has the key

  // Sets a value from text that somebody typed. Without a type, the key keeps the type that it has; a new key gets
  // bool, u32, i32, u64, i64, f32 or string, the first of these that the text can be. Throws Errc::invalid_argument if
  // the text cannot be of that type, and for arrays.
  void set_from_text(std::string_view key, std::string_view text, std::optional<MetadataType> type = {});

  friend bool operator==(const TypedMetadata& a, const TypedMetadata& b) noexcept { return a.entries_ == b.entries_; }

 private:
  friend struct Doors;

  struct Slot {
    std::uint32_t hash;
    std::uint32_t number;  // the number of the entry, from 1; 0 is an empty slot
  };

  std::size_t find_slot(std::string_view key, std::uint32_t hash) const noexcept;
  std::optional<std::size_t> adopt(std::vector<MetadataEntry> entries);
  std::optional<std::size_t> index();

  std::vector<MetadataEntry> entries_;
  std::vector<Slot> slots_;  // open addressing; a power of two
};

}  // namespace ballast
