// Packed streams: what one unpacks to, and that one which is not whole is never called whole.
#include "formats/archive/unpack.hpp"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "builders/pickle_writer.hpp"

namespace ballast::archive {
namespace {

using End = Unpacked::End;
constexpr std::uint64_t kPlenty = 1 << 20;

std::string noise(std::size_t size) {
  std::mt19937 random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string zstd_of(const std::string& content, bool with_checksum = true) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, with_checksum ? 1 : 0);
  std::string frame(ZSTD_compressBound(content.size()), '\0');
  frame.resize(ZSTD_compress2(context.get(), frame.data(), frame.size(), content.data(), content.size()));
  return frame;
}

std::string deflated(const std::string& content, Packing packing) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, packing == Packing::gzip ? 15 + 16 : 15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0'), in = content;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string packed(const std::string& content, Packing packing) {
  return packing == Packing::zstd ? zstd_of(content) : deflated(content, packing);
}

Unpacked unpacked(const std::string& stream, Packing packing, std::uint64_t most = kPlenty) {
  return unpack(*test::source_of(stream), packing, most);
}

constexpr Packing kPackings[] = {Packing::gzip, Packing::zlib, Packing::zstd};
constexpr std::size_t kSizes[] = {0, 1, 1000, 65'535, 65'536, 65'537, 131'072, 200'000};

TEST(Unpack, GivesBackWhatWasPacked) {
  for (const Packing packing : kPackings) {
    for (const std::size_t size : kSizes) {
      for (const std::string& content : {noise(size), std::string(size, 'a')}) {
        const std::string stream = packed(content, packing);
        EXPECT_EQ(packing_of(stream), packing);
        const Unpacked whole = unpacked(stream, packing);
        EXPECT_EQ(whole.end, End::whole) << name(packing) << " of " << size;
        EXPECT_TRUE(std::ranges::equal(whole.bytes, std::as_bytes(std::span(content))));
      }
    }
  }
}

TEST(Unpack, CallsBrokenWhatIsCutOff) {
  for (const Packing packing : kPackings) {
    for (const std::string& content : {noise(300), std::string(65'536, 'a')}) {
      const std::string stream = packed(content, packing);
      for (std::size_t size = 0; size < stream.size(); ++size)
        EXPECT_EQ(unpacked(stream.substr(0, size), packing).end, End::broken) << name(packing) << " at " << size;
    }
  }
  const std::string bare = zstd_of(noise(300), false);
  for (std::size_t size = 0; size < bare.size(); ++size)
    EXPECT_EQ(unpacked(bare.substr(0, size), Packing::zstd).end, End::broken) << "without a checksum at " << size;
}

TEST(Unpack, CallsBrokenWhatHasAnotherChecksum) {
  for (const Packing packing : kPackings) {
    std::string stream = packed(noise(300), packing);
    std::string content = stream, check = stream;
    content[stream.size() / 2] ^= 1;
    check[stream.size() - (packing == Packing::gzip ? 8 : 1)] ^= 1;
    EXPECT_EQ(unpacked(content, packing).end, End::broken) << name(packing);
    EXPECT_EQ(unpacked(check, packing).end, End::broken) << name(packing);
  }
}

TEST(Unpack, CallsBrokenWhatGoesOnBehindItsEnd) {
  for (const Packing packing : kPackings) {
    for (const std::size_t size : kSizes) {
      for (const std::string& tail : {std::string(1, '\0'), std::string("junk"), std::string(100, '\0')})
        EXPECT_EQ(unpacked(packed(noise(size), packing) + tail, packing).end, End::broken) << name(packing) << size;
    }
  }
}

TEST(Unpack, TakesSeveralMembersOrFramesForOneStream) {
  for (const Packing packing : {Packing::gzip, Packing::zstd}) {
    const std::string two = packed(noise(65'536), packing) + packed("more", packing);
    EXPECT_EQ(unpacked(two, packing).end, End::whole);
    EXPECT_EQ(unpacked(two, packing).bytes.size(), 65'540U);
    EXPECT_EQ(unpacked(two.substr(0, two.size() - 1), packing).end, End::broken);
  }
  const std::string zlib = packed("some", Packing::zlib);
  EXPECT_EQ(unpacked(zlib + zlib, Packing::zlib).end, End::broken) << "no program reads two of them";
}

TEST(Unpack, HoldsNoMoreThanItIsAllowedTo) {
  for (const Packing packing : kPackings) {
    const std::string bomb = packed(std::string(kPlenty, 'a'), packing);
    EXPECT_EQ(unpacked(bomb, packing, kPlenty).end, End::whole);
    const Unpacked cut = unpacked(bomb, packing, kPlenty - 1);
    EXPECT_EQ(cut.end, End::too_large) << name(packing);
    EXPECT_LT(cut.bytes.size(), kPlenty);
  }
}

TEST(Unpack, KnowsAPackingByItsFirstBytes) {
  using namespace std::string_view_literals;
  EXPECT_EQ(packing_of("\x1f\x8b\x08\0"sv), Packing::gzip);
  EXPECT_EQ(packing_of("\x28\xb5\x2f\xfd"sv), Packing::zstd);
  EXPECT_EQ(packing_of("\x78\x9c\0\0"sv), Packing::zlib);
  for (const std::string_view other : {""sv, "\x1f\x8b\x08"sv, "\x1f\x8b\x07\0"sv, "\x28\xb5\x2f\xfc"sv,
                                       "\x78\x9d\0\0"sv, "\x79\x94\0\0"sv, "\x78\x20\0\0"sv, "abcd"sv})
    EXPECT_EQ(packing_of(other), std::nullopt) << testing::PrintToString(other);
}

}  // namespace
}  // namespace ballast::archive
