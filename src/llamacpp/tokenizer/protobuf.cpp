#include "llamacpp/tokenizer/protobuf.hpp"

#include <fmt/format.h>

namespace ballast::llamacpp {

// Seven bits a byte, the lowest first; the top bit of a byte says that another one follows.
std::uint64_t ProtoMessage::varint(std::string_view what) {
  std::uint64_t value = 0;
  const std::uint64_t begin = in_.position();
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint64_t byte = in_.u8(what);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  throw Error(Errc::malformed, fmt::format("the {} has more than ten bytes", what)).at_byte(begin);
}

bool ProtoMessage::next(ProtoField& field) {
  if (in_.at_end()) return false;
  const std::uint64_t begin = in_.position();
  const std::uint64_t key = varint("key of a field");
  field = {};
  field.number = key >> 3;
  field.type = static_cast<WireType>(key & 7);
  if (field.number == 0) throw Error(Errc::malformed, "a field has the number 0").at_byte(begin);
  switch (field.type) {
    case WireType::varint: field.value = varint("value of a field"); return true;
    case WireType::fixed64: field.value = in_.u64("value of a field"); return true;
    case WireType::fixed32: field.value = in_.u32("value of a field"); return true;
    case WireType::bytes: break;
    default:
      throw Error(Errc::malformed, fmt::format("field {} has wire type {}", field.number, key & 7)).at_byte(begin);
  }
  const std::uint64_t size = varint("length of a field");
  field.offset = in_.position();
  field.bytes = in_.bytes(size, "bytes of a field");
  return true;
}

}  // namespace ballast::llamacpp
