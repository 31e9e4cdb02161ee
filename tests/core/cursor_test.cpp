#include "core/cursor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.hpp"

namespace ballast {
namespace {

std::span<const std::byte> bytes_in(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Cursor, ReadsNumbersOfEveryWidth) {
  using namespace std::string_view_literals;
  Cursor in(bytes_in("\x01\x02\x01\x04\x03\x02\x01\x08\x07\x06\x05\x04\x03\x02\x01\xff\xfe\xff\xfd\xff\xff\xff"sv));
  EXPECT_EQ(in.u8("a"), 1u);
  EXPECT_EQ(in.u16("b"), 0x0102u);
  EXPECT_EQ(in.u32("c"), 0x01020304u);
  EXPECT_EQ(in.u64("d"), 0x0102030405060708u);
  EXPECT_EQ(in.i8("e"), -1);
  EXPECT_EQ(in.i16("f"), -2);
  EXPECT_EQ(in.i32("g"), -3);
  EXPECT_TRUE(in.at_end());
}

TEST(Cursor, ReadsFloatsWithTheirBits) {
  using namespace std::string_view_literals;
  Cursor in(bytes_in("\x00\x00\xc0\x3f\x00\x00\x00\x00\x00\x00\x04\xc0\x01\x00\x80\x7f"sv));
  EXPECT_EQ(in.f32("a"), 1.5f);
  EXPECT_EQ(in.f64("b"), -2.5);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(in.f32("c")), 0x7f800001u);  // a signalling NaN stays a signalling NaN
}

TEST(Cursor, ReadsTheOtherByteOrder) {
  using namespace std::string_view_literals;
  Cursor in(bytes_in("\x01\x02\x01\x02\x03\x04\x3f\xc0\x00\x00\xff\xff\xff\xff\xff\xff\xff\xfe"sv), 0,
            std::endian::big);
  EXPECT_EQ(in.u16("a"), 0x0102u);
  EXPECT_EQ(in.u32("b"), 0x01020304u);
  EXPECT_EQ(in.f32("c"), 1.5f);
  EXPECT_EQ(in.i64("d"), -2);
}

TEST(Cursor, GivesViewsOfTheBytesThemselves) {
  const std::string text = "keyvalue";
  Cursor in(bytes_in(text));
  EXPECT_EQ(in.string(3, "key"), "key");
  EXPECT_EQ(in.bytes(5, "value").data(), bytes_in(text).data() + 3);
  EXPECT_EQ(in.string(0, "nothing"), "");
}

TEST(Cursor, SaysInsideWhatAndAtWhichByteOfTheFileTheBytesEnd) {
  Cursor in(bytes_in("12345"), 100);
  in.skip(2, "magic");
  EXPECT_EQ(in.position(), 102u);
  EXPECT_ERROR(in.u64("tensor count"), Errc::malformed, "ends inside the tensor count (byte 102)");
  EXPECT_ERROR(in.string(std::numeric_limits<std::uint64_t>::max(), "key"), Errc::malformed,
               "ends inside the key (byte 102)");
  EXPECT_EQ(in.string(3, "rest"), "345") << "a read that failed took nothing";
}

TEST(Cursor, ComparesACountWithTheBytesThatFollow) {
  const Cursor in(bytes_in("123456789"), 7);
  EXPECT_NO_THROW(in.require_room_for(3, 3, "tensor count"));
  EXPECT_NO_THROW(in.require_room_for(0, 100, "tensor count"));
  EXPECT_ERROR(in.require_room_for(4, 3, "tensor count"), Errc::malformed,
               "the tensor count is 4, but only 9 bytes follow (byte 7)");
  EXPECT_ERROR(in.require_room_for(0x8000000000000000, 2, "tensor count"), Errc::malformed, "is 9223372036854775808");
}

}  // namespace
}  // namespace ballast
