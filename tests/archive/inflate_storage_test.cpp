// Deflated members, read in every order, and streams that are not what was declared.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "builders/zip_file.hpp"
#include "formats/archive/inflate_storage.hpp"
#include "formats/archive/zip.hpp"
#include "support/expect_error.hpp"

namespace ballast::archive {
namespace {

using test::ZipEntry;
using test::ZipFile;

std::string some_text(std::size_t size) {
  std::string text;
  std::uint32_t state = 1;
  while (text.size() < size) {
    state = state * 1664525 + 1013904223;
    text += "word" + std::to_string(state >> 20) + ' ';
  }
  text.resize(size);
  return text;
}

StoragePtr storage_of(const ZipFile& file) {
  const Zip zip = read_zip(file.source(), {});
  return member_storage(zip, zip.members[0]);
}

std::string read(const Storage& storage, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  storage.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(InflateStorage, ReadsForwardsInPiecesOfAnySize) {
  const std::string plain = some_text(300'000);
  for (const std::size_t piece : {1000u, 65536u, 299999u, 300000u}) {
    const StoragePtr storage = storage_of(ZipFile().deflated("a", plain));
    for (std::size_t at = 0; at < plain.size(); at += piece) {
      const std::size_t size = std::min(piece, plain.size() - at);
      EXPECT_EQ(read(*storage, at, size), plain.substr(at, size));
    }
  }
}

TEST(InflateStorage, ReadsBackwardsAndTwiceByBeginningAnew) {
  const std::string plain = some_text(200'000);
  const StoragePtr storage = storage_of(ZipFile().deflated("a", plain));
  for (const std::size_t at : {150'000u, 20u, 199'999u, 0u, 0u, 70'000u})
    EXPECT_EQ(read(*storage, at, 1), plain.substr(at, 1));
  EXPECT_EQ(read(*storage, 0, plain.size()), plain);
  EXPECT_EQ(read(*storage, 0, plain.size()), plain);
}

TEST(InflateStorage, ReadsFromManyThreads) {
  const std::string plain = some_text(100'000);
  const StoragePtr storage = storage_of(ZipFile().deflated("a", plain));
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 20; ++i) {
        const std::size_t at = (t * 31'337 + i * 4'999) % 90'000;
        wrong += read(*storage, at, 1000) != plain.substr(at, 1000);
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(InflateStorage, ReadsNothingFromAnEmptyMember) {
  EXPECT_EQ(read(*storage_of(ZipFile().deflated("a", "")), 0, 0), "");
}

TEST(InflateStorage, NeverGivesMoreThanTheDeclaredSize) {
  const auto file = ZipFile().deflated("a", std::string(1000, 'x')).change([](ZipEntry& e) {
    e.local.bytes = e.central.bytes = 999;
  });
  const StoragePtr storage = storage_of(file);
  EXPECT_EQ(storage->size_bytes(), 999u);
  EXPECT_EQ(read(*storage, 0, 998), std::string(998, 'x'));  // only a read of the last byte shows that more follows
  EXPECT_ERROR(read(*storage, 0, 999), Errc::malformed,
               "file: member \"a\" has a deflated stream that goes on behind the 999 bytes that are declared");
  EXPECT_ERROR(read(*storage, 998, 1), Errc::malformed, "goes on behind the 999 bytes");
}

TEST(InflateStorage, RefusesAStreamThatEndsEarly) {
  const auto file = ZipFile().deflated("a", std::string(1000, 'x')).change([](ZipEntry& e) {
    e.local.bytes = e.central.bytes = 1001;
  });
  const StoragePtr storage = storage_of(file);
  EXPECT_ERROR(read(*storage, 0, 1001), Errc::malformed,
               "member \"a\" has a deflated stream that ends after 1000 of 1001 bytes");
  EXPECT_EQ(read(*storage, 0, 1000), std::string(1000, 'x'));
  EXPECT_ERROR(read(*storage, 1000, 1), Errc::malformed, "ends after 1000 of 1001 bytes");
}

TEST(InflateStorage, RefusesAStreamThatIsCutOff) {
  const auto file = ZipFile().deflated("a", some_text(1000)).change([](ZipEntry& e) {
    e.data.resize(100);
    e.local.packed_bytes = e.central.packed_bytes = 100;
  });
  EXPECT_ERROR_AT(read(*storage_of(file), 0, 1000), Errc::malformed, "is cut off after", 131);
}

TEST(InflateStorage, RefusesAStreamThatIsBroken) {
  const auto file = ZipFile().deflated("a", "data").change([](ZipEntry& e) { e.data[0] = '\x07'; });
  EXPECT_ERROR(read(*storage_of(file), 0, 4), Errc::malformed, "is broken after 0 of 4 bytes");
}

TEST(InflateStorage, RefusesBytesBehindTheStream) {
  for (const std::string hidden : {"x", "hidden"}) {
    const auto file = ZipFile().deflated("a", "data").change([&](ZipEntry& e) {
      e.data += hidden;
      e.local.packed_bytes = e.central.packed_bytes = static_cast<std::uint32_t>(e.data.size());
    });
    EXPECT_ERROR(read(*storage_of(file), 0, 4), Errc::malformed,
                 "has " + std::to_string(hidden.size()) + " bytes behind its deflated stream");
  }
}

TEST(InflateStorage, RefusesAnEmptyMemberThatHoldsSomething) {
  const auto file = ZipFile().deflated("a", "data").change([](ZipEntry& e) { e.local.bytes = e.central.bytes = 0; });
  EXPECT_ERROR(read(*storage_of(file), 0, 0), Errc::malformed, "goes on behind the 0 bytes that are declared");
}

TEST(InflateStorage, SaysTheSameAgainAfterAnError) {
  const auto file = ZipFile().deflated("a", some_text(1000)).change([](ZipEntry& e) { e.data.back() ^= '\xFF'; });
  const StoragePtr storage = storage_of(file);
  const auto first = test::error_of([&] { read(*storage, 0, 1000); });
  const auto second = test::error_of([&] { read(*storage, 0, 1000); });
  ASSERT_TRUE(first && second);
  EXPECT_STREQ(first->what(), second->what());
}

TEST(InflateStorage, MeasuresUpToTheLimit) {
  const std::string packed = test::deflate_raw(std::string(1000, 'x'));
  const auto bytes = std::as_bytes(std::span(packed));
  const auto source = memory_source({bytes.begin(), bytes.end()});
  const auto whole = measure_inflated(*source, 0, packed.size(), 1000);
  EXPECT_EQ(whole.bytes, 1000u);
  EXPECT_EQ(whole.packed_bytes, packed.size());
  EXPECT_TRUE(whole.is_whole);
  const auto part = measure_inflated(*source, 0, packed.size(), 999);
  EXPECT_EQ(part.bytes, 999u);
  EXPECT_FALSE(part.is_whole);
}

}  // namespace
}  // namespace ballast::archive
