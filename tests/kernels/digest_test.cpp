#include "kernels/digest.hpp"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace ballast::kernels {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

TEST(Sha256, GivesThePublishedDigests) {
  Sha256 sha;
  EXPECT_EQ(sha.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  sha.update(bytes("abc"));
  EXPECT_EQ(sha.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, IsTheSameInPartsAndBeginsAnewAfterEachDigest) {
  Sha256 sha;
  sha.update(bytes("a"));
  sha.update({});
  sha.update(bytes("bc"));
  const auto first = sha.finish();
  sha.update(bytes("lost"));
  sha.reset();
  sha.update(bytes("abc"));
  EXPECT_EQ(sha.finish(), first);
}

TEST(Xxh3, GivesThePublishedDigestOfNothing) { EXPECT_EQ(to_hex(xxh3_64({})), "2d06800538d394c2"); }

TEST(Xxh3, IsTheSameInParts) {
  std::vector<std::byte> data(100'000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37);
  const std::span<const std::byte> all(data);
  Xxh3 streaming;
  for (const std::size_t size : {0U, 1U, 16U, 17U, 240U, 241U, 1024U, 100'000U}) {
    streaming.reset();
    for (std::size_t at = 0; at < size; at += 333)
      streaming.update(all.subspan(at, std::min<std::size_t>(333, size - at)));
    EXPECT_EQ(streaming.digest_64(), xxh3_64(all.first(size)));
  }
}

TEST(Hex, IsLowerCaseAndKeepsLeadingZeros) {
  const std::byte some[] = {std::byte{0x00}, std::byte{0xAB}, std::byte{0x0F}};
  EXPECT_EQ(to_hex(some), "00ab0f");
  EXPECT_EQ(to_hex(std::uint64_t{1}), "0000000000000001");
}

}  // namespace
}  // namespace ballast::kernels
