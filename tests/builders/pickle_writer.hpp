// A pickle by hand, one instruction a call: PickleWriter(2).global("os", "system").text("id").tuple1().reduce().stop()
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/source.hpp>

namespace ballast::test {

inline SourcePtr source_of(std::string_view bytes) {
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return memory_source({first, first + bytes.size()});
}

class PickleWriter {
 public:
  PickleWriter() = default;  // protocols 0 and 1 have no PROTO
  explicit PickleWriter(int protocol) { op('\x80').little_endian(static_cast<std::uint64_t>(protocol), 1); }

  operator std::string_view() const { return bytes_; }
  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  SourcePtr source() const { return source_of(bytes_); }

  PickleWriter& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  PickleWriter& op(char opcode) { return raw({&opcode, 1}); }
  PickleWriter& repeat(std::size_t count, std::string_view bytes) {
    for (std::size_t i = 0; i < count; ++i) raw(bytes);
    return *this;
  }

  PickleWriter& none() { return op('N'); }
  PickleWriter& boolean(bool value) { return op(value ? '\x88' : '\x89'); }
  PickleWriter& integer(std::int64_t value) {
    if (value >= 0 && value < 256) return op('K').little_endian(static_cast<std::uint64_t>(value), 1);
    if (value >= INT32_MIN && value <= INT32_MAX) return op('J').little_endian(static_cast<std::uint64_t>(value), 4);
    return op('\x8a').raw("\x08").little_endian(static_cast<std::uint64_t>(value), 8);
  }
  PickleWriter& real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    op('G');
    for (int shift = 56; shift >= 0; shift -= 8) bytes_ += static_cast<char>(bits >> shift & 0xFF);
    return *this;
  }
  PickleWriter& text(std::string_view text) { return op('X').little_endian(text.size(), 4).raw(text); }
  PickleWriter& bytes(std::string_view bytes) { return op('B').little_endian(bytes.size(), 4).raw(bytes); }

  PickleWriter& mark() { return op('('); }
  PickleWriter& empty_list() { return op(']'); }
  PickleWriter& empty_dict() { return op('}'); }
  PickleWriter& empty_tuple() { return op(')'); }
  PickleWriter& append() { return op('a'); }
  PickleWriter& appends() { return op('e'); }
  PickleWriter& set_item() { return op('s'); }
  PickleWriter& set_items() { return op('u'); }
  PickleWriter& tuple() { return op('t'); }
  PickleWriter& tuple1() { return op('\x85'); }
  PickleWriter& tuple2() { return op('\x86'); }
  PickleWriter& tuple3() { return op('\x87'); }

  PickleWriter& global(std::string_view module, std::string_view name) {
    return op('c').raw(module).raw("\n").raw(name).raw("\n");
  }
  PickleWriter& stack_global(std::string_view module, std::string_view name) {
    return text(module).text(name).op('\x93');
  }
  PickleWriter& reduce() { return op('R'); }
  PickleWriter& newobj() { return op('\x81'); }
  PickleWriter& build() { return op('b'); }
  PickleWriter& persistent() { return op('Q'); }

  PickleWriter& put(std::uint32_t index) { return op('r').little_endian(index, 4); }
  PickleWriter& get(std::uint32_t index) { return op('j').little_endian(index, 4); }
  PickleWriter& stop() { return op('.'); }

  PickleWriter& little_endian(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }

 private:
  std::string bytes_;
};

}  // namespace ballast::test
