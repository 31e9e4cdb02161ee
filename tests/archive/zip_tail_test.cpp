// Zips at the end of other files: each that some program would open is found, and chance bytes in weights are not.
#include "formats/archive/zip_tail.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "builders/zip_file.hpp"

namespace ballast::archive {
namespace {

using namespace std::string_literals;
using test::ZipEnd;
using test::ZipFile;

ZipFile zip_of_one() { return ZipFile().stored("a", "data"); }

std::optional<std::uint64_t> find_in(const std::string& bytes) {
  const auto view = std::as_bytes(std::span(bytes));
  return find_zip_at_end(*memory_source({view.begin(), view.end()}));
}

std::string random_weights(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST(ZipTail, IsFoundBehindOtherBytes) {
  EXPECT_EQ(find_in(zip_of_one().text()), 82u);
  EXPECT_EQ(find_in("weights" + zip_of_one().text()),
            89u);  // as Python reads it: offsets count from the archive's beginning
  EXPECT_EQ(find_in(zip_of_one().prefix("weights").text()), 89u);
  EXPECT_EQ(find_in(std::string(1 << 20, 'w') + zip_of_one().text()), (1u << 20) + 82u);
}

TEST(ZipTail, IsFoundWithItsOffsetsRight) {
  const std::string front = "weights";
  const ZipFile shifted = zip_of_one().change([](test::ZipEntry& entry) { entry.before = "weights"; });
  EXPECT_EQ(find_in(shifted.text()), 89u);
}

TEST(ZipTail, IsFoundWithACommentOfAnyLength) {
  for (const std::size_t size : {1u, 100u, 0xFFFFu}) {
    EXPECT_EQ(find_in("w" + zip_of_one().comment(std::string(size, 'c')).text()), 83u) << size;
    EXPECT_EQ(find_in("w" + zip_of_one().suffix(std::string(size, 'c')).text()), 83u) << size;  // Python accepts that
  }
  EXPECT_EQ(find_in("w" + zip_of_one().suffix(std::string(0x10000, 'c')).text()), std::nullopt);  // no one looks so far
}

TEST(ZipTail, IsFoundBeforeASecondSignature) {
  EXPECT_EQ(find_in("w" + zip_of_one().comment("PK\x05\x06").text()), 83u);
  EXPECT_EQ(find_in("w" + zip_of_one().comment(ZipFile().text()).text()), 83u);
}

TEST(ZipTail, IsFoundByItsZip64Record) {
  EXPECT_EQ(find_in("w" + zip_of_one()
                              .zip64()
                              .change_end([](ZipEnd& e) { e.directory_bytes = e.directory_offset = 0xFFFFFFFF; })
                              .text()),
            159u);
}

TEST(ZipTail, IsFoundByTheWholeOfItsRecordsAndNothingLess) {
  const auto wide = [](std::function<void(test::Zip64End&)> lie) {
    return "w" + zip_of_one()
                     .zip64(std::move(lie))
                     .change_end([](ZipEnd& e) { e.directory_bytes = e.directory_offset = 0xFFFFFFFF; })
                     .text();
  };
  const std::string right = wide([](test::Zip64End&) {});
  EXPECT_EQ(find_in(right), 159u);
  for (const std::size_t signature : {83u, 139u, 159u}) {  // of the zip64 record, its locator and the end record
    std::string wrong = right;
    wrong[signature + 3] ^= 0x40;
    EXPECT_EQ(find_in(wrong), std::nullopt) << signature;
  }
  for (const std::uint64_t offset : {std::uint64_t{83}, std::uint64_t{150}, UINT64_MAX}) {
    const std::string between = wide([&](test::Zip64End& e) {
      e.record_offset = offset;
      e.between = "x";
    });
    EXPECT_EQ(find_in(between), offset == 83 ? std::optional<std::uint64_t>(160) : std::nullopt) << offset;
  }
}

TEST(ZipTail, IsNotFoundByARecordThatTheFileEndsIn) {
  std::string text = "w" + zip_of_one()
                               .zip64([](test::Zip64End& e) { e.between = "x"; })
                               .change_end([](ZipEnd& e) { e.directory_bytes = e.directory_offset = 0xFFFFFFFF; })
                               .comment("PK\x06\x06")
                               .text();
  const auto locator = text.find("PK\x06\x07");
  text.replace(locator + 8, 8, test::u64(text.size() - 4));
  EXPECT_EQ(find_in(text), std::nullopt);
}

TEST(ZipTail, IsFoundByADirectoryThatHasRoomForAMemberAndIsNotLargerThanTheFile) {
  const auto saying = [](std::uint64_t bytes, std::uint64_t offset) {
    return find_in("w" + zip_of_one()
                             .change_end([=](ZipEnd& e) {
                               e.directory_bytes = bytes;
                               e.directory_offset = offset;
                             })
                             .text());
  };
  EXPECT_EQ(saying(46, 36), 83u);
  EXPECT_EQ(saying(45, 36), std::nullopt);
  EXPECT_EQ(saying(83, 36), 83u);
  EXPECT_EQ(saying(84, 36), std::nullopt);
  EXPECT_EQ(saying(50, 103), std::nullopt);  // no room for a signature before the end of the file
}

TEST(ZipTail, IsNotAnEmptyArchive) {
  EXPECT_EQ(find_in("weights" + ZipFile().text()), std::nullopt);
  EXPECT_EQ(find_in(""), std::nullopt);
  EXPECT_EQ(find_in("PK\x05\x06"), std::nullopt);
}

// A signature alone may be chance: four given bytes are found once in 2^32 positions of random weights.
TEST(ZipTail, IsNotFoundByASignatureAloneInWeights) {
  const std::string signatures[] = {"PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "PK\x06\x06", "PK\x06\x07", "PK\x07\x08"};
  for (const std::string& weights :
       {std::string(200'000, '\0'), random_weights(200'000, 1), std::string(200'000, '\xFF')}) {
    for (const std::string& signature : signatures) {
      for (const std::size_t from_end : {4u, 20u, 22u, 23u, 42u, 98u, 1000u, 65557u, 65558u}) {
        std::string bytes = weights;
        bytes.replace(bytes.size() - from_end, 4, signature);
        EXPECT_EQ(find_in(bytes), std::nullopt) << from_end;
      }
    }
  }
}

TEST(ZipTail, IsNotFoundInRandomWeights) {
  for (unsigned seed = 0; seed < 300; ++seed) ASSERT_EQ(find_in(random_weights(70'000, seed)), std::nullopt) << seed;
}

// A file of nothing but signatures makes us look, but not for long.
TEST(ZipTail, TakesLittleTimeForManySignatures) {
  std::string bytes;
  while (bytes.size() < 70'000) bytes += "PK\x05\x06";
  EXPECT_EQ(find_in(bytes), std::nullopt);
}

}  // namespace
}  // namespace ballast::archive
