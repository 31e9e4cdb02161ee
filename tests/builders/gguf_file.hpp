// GgufBuilder: a GGUF file in a line or two, right or wrong, written without the library under test.
//
//   GgufBuilder().kv("general.name", "tiny").tensor("w", kF32, {2, 3})      a right file, with data that vary
//   GgufBuilder().tensor_at("w", kF32, {2, 3}, 96).data(12)                 the offset as given, and 12 bytes of data
//   GgufBuilder().key_count(1u << 30)                                       a count that lies
//
// Dimensions are in the file's order: the fastest first.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::test {

// ggml's numbers of some types, and the sizes of their blocks.
struct GgmlType {
  std::uint32_t id;
  std::uint64_t block_elements, block_bytes;
};
inline constexpr GgmlType kF32{0, 1, 4}, kF16{1, 1, 2}, kQ4_0{2, 32, 18}, kQ8_0{8, 32, 34}, kQ4_K{12, 256, 144},
    kI8{24, 1, 1}, kNvfp4{40, 64, 36};

// GGUF's numbers of its value types.
enum GgufValue : std::uint32_t {
  kU8,
  kI8Value,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32Value,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

class GgufBuilder {
 public:
  explicit GgufBuilder(std::uint32_t version = 3, std::endian order = std::endian::little)
      : version_(version), stored_version_(version), order_(order) {}

  // Encodings in this file's version and byte order, for values that the functions below cannot make.
  template <std::integral T>
  std::string number(T value) const {
    std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
    if (order_ != std::endian::native) std::reverse(bytes.begin(), bytes.end());
    return bytes;
  }
  std::string length(std::uint64_t value) const {
    return version_ == 1 ? number(static_cast<std::uint32_t>(value)) : number(value);
  }
  std::string string(std::string_view text) const { return length(text.size()) + std::string(text); }

  // Values.
  GgufBuilder& kv_raw(std::string_view key, std::uint32_t type, std::string_view value) {
    return raw_key(string(key) + number(type) + std::string(value));
  }
  GgufBuilder& kv(std::string_view key, std::string_view text) { return kv_raw(key, kString, string(text)); }
  GgufBuilder& kv(std::string_view key, std::uint32_t value) { return kv_raw(key, kU32, number(value)); }
  GgufBuilder& array(std::string_view key, std::uint32_t type, std::uint64_t count, std::string_view elements) {
    return kv_raw(key, kArray, number(type) + length(count) + std::string(elements));
  }
  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& texts) {
    std::string elements;
    for (const std::string& text : texts) elements += string(text);
    return array(key, kString, texts.size(), elements);
  }
  GgufBuilder& raw_key(std::string_view bytes) {
    keys_ += bytes;
    ++key_count_;
    return *this;
  }
  GgufBuilder& alignment(std::uint32_t alignment) {
    alignment_ = alignment;
    return kv("general.alignment", alignment);
  }

  // Tensors.
  GgufBuilder& tensor(std::string_view name, const GgmlType& type, const std::vector<std::uint64_t>& dims) {
    std::uint64_t count = 1;
    for (const std::uint64_t dim : dims) count *= dim;
    tensor_at(name, type, dims, data_.size());
    const std::uint64_t size = count / type.block_elements * type.block_bytes;
    for (std::uint64_t i = 0; i < size; ++i) data_ += static_cast<char>(data_.size() * 37 + 11);
    while (data_.size() % alignment_ != 0) data_ += '\0';
    return *this;
  }
  GgufBuilder& tensor_at(std::string_view name, const GgmlType& type, const std::vector<std::uint64_t>& dims,
                         std::uint64_t offset) {
    std::string info = string(name) + number(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) info += length(dim);
    return raw_tensor(info + number(type.id) + number(offset));
  }
  GgufBuilder& raw_tensor(std::string_view bytes) {
    tensors_ += bytes;
    ++tensor_count_;
    return *this;
  }

  // The functions below make files that lie.
  GgufBuilder& magic(std::string_view magic) { return magic_ = magic, *this; }
  GgufBuilder& stored_version(std::uint32_t version) { return stored_version_ = version, *this; }
  GgufBuilder& key_count(std::uint64_t count) { return said_keys_ = count, *this; }
  GgufBuilder& tensor_count(std::uint64_t count) { return said_tensors_ = count, *this; }
  GgufBuilder& pad_to(std::uint64_t alignment) { return alignment_ = alignment, *this; }  // no key states it
  GgufBuilder& data(std::size_t size) { return data_.assign(size, '\0'), *this; }
  GgufBuilder& data(std::string_view bytes) { return data_ = bytes, *this; }
  GgufBuilder& append_data(std::string_view bytes) { return data_ += bytes, *this; }

  std::string header() const {
    return magic_ + number(stored_version_) + length(said_tensors_.value_or(tensor_count_)) +
           length(said_keys_.value_or(key_count_)) + keys_ + tensors_;
  }

  std::string text() const {
    std::string text = header();
    while (text.size() % alignment_ != 0) text += '\0';
    return text + data_;
  }

  std::vector<std::byte> bytes() const {
    const std::string text = this->text();
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::string magic_ = "GGUF", keys_, tensors_, data_;
  std::uint32_t version_, stored_version_;
  std::endian order_;
  std::uint64_t key_count_ = 0, tensor_count_ = 0, alignment_ = 32;
  std::optional<std::uint64_t> said_keys_, said_tensors_;
};

}  // namespace ballast::test
