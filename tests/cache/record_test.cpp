#include "cache/record.hpp"

#include <gtest/gtest.h>
#include <ballast/error.hpp>

#include "core/base64.hpp"
#include "kernels/digest.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

// A file may hold any bytes, and anybody can compute a digest.
TEST(CacheRecord, OfAnyBytesIsReadOrRefused) {
  CacheRecord record;
  record.key.version = "1";
  record.key.sources.emplace_back().name = "a";
  record.checkpoint.values.push_back({"epoch", "int", std::int64_t{3}});
  record.checkpoint.notes.push_back({"a", "odd"});
  RecordedTensor& tensor = record.tensors.emplace_back();
  tensor.name = "w";
  tensor.shape = {2, 3};
  const auto bytes = *from_base64(encode_cache_record(record, "target"));
  const auto sealed = [](std::vector<std::byte> content) {
    const std::uint64_t digest = kernels::xxh3_64(content);
    const auto front = std::as_bytes(std::span(&digest, 1));
    content.insert(content.begin(), front.begin(), front.end());
    return to_base64(content);
  };
  const std::vector<std::byte> content(bytes.begin() + 8, bytes.end());
  EXPECT_EQ(decode_cache_record(sealed(content), "target").tensors.size(), 1u);
  EXPECT_ERROR(decode_cache_record("no base64", "target"), Errc::malformed, "the record");
  EXPECT_ERROR(decode_cache_record(to_base64(content), "target"), Errc::malformed, "the record");
  for (std::size_t size = 0; size < content.size(); ++size) {
    const std::vector<std::byte> part(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_ERROR(decode_cache_record(sealed(part), "target"), Errc::malformed, "");
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    for (const int change : {0x01, 0x7F, 0xFF}) {
      std::vector<std::byte> bad = content;
      bad[i] ^= static_cast<std::byte>(change);
      try {
        static_cast<void>(decode_cache_record(sealed(bad), "target"));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::malformed) << i;
      }
    }
  }
}

}  // namespace
}  // namespace ballast
