// Message: numbers and texts as bytes that another member of a team reads with a Cursor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ballast/error.hpp>

#include "core/cursor.hpp"

namespace ballast {

class Message {
 public:
  Message& number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<std::byte>(value >> shift));
    return *this;
  }
  Message& text(std::string_view text) {
    number(text.size());
    return bytes(std::as_bytes(std::span(text)));
  }
  Message& bytes(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }

  operator std::span<const std::byte>() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

inline std::string_view read_text(Cursor& in) { return in.string(in.u64("length"), "text"); }

// Values as the members of a team have them in memory: they run the same program.
template <class T>
std::span<const std::byte> bytes_of(std::span<T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(values);
}

template <class T>
void read_values(Cursor& in, std::span<T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = in.bytes(values.size_bytes(), "values");
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

}  // namespace ballast
