// The fields of a protobuf message, one after the other. A message is
//   key      varint: field number << 3 | wire type
//   value    wire type 0: varint; 1: 8 bytes; 2: varint length and that many bytes; 5: 4 bytes
// until its bytes end. Groups (wire types 3 and 4) are refused: nothing that we read has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/cursor.hpp"

namespace ballast::llamacpp {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtoField {
  std::uint64_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;           // of a varint, and the bits of a fixed number
  std::span<const std::byte> bytes;  // of a field with a length
  std::uint64_t offset = 0;          // of the bytes, in the file

  bool is(std::uint64_t wanted, WireType wire) const noexcept { return number == wanted && type == wire; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

class ProtoMessage {
 public:
  // `base` is the offset of the first byte in the file, for messages.
  explicit ProtoMessage(std::span<const std::byte> bytes, std::uint64_t base = 0) : in_(bytes, base) {}
  explicit ProtoMessage(const ProtoField& field) : in_(field.bytes, field.offset) {}

  // False at the end. Throws Errc::malformed.
  bool next(ProtoField& field);

 private:
  std::uint64_t varint(std::string_view what);

  Cursor in_;
};

}  // namespace ballast::llamacpp
