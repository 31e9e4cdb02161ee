// Archives that a strict reading refuses, and the members that a lenient one still finds: whatever some reader
// somewhere would load must be there to be scanned.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "builders/zip_file.hpp"
#include "formats/archive/zip.hpp"
#include "support/expect_error.hpp"
#include "support/shared_files.hpp"

namespace ballast::archive {
namespace {

using test::u32;
using test::u64;
using test::ZipEnd;
using test::ZipEntry;
using test::ZipFile;

std::string content_found(const Zip& zip, const ZipMember& member) {
  const auto source = member_source(zip, member, {});
  std::string content(source->size_bytes(), '\0');
  source->read_at(0, std::as_writable_bytes(std::span(content)));
  return content;
}

// "name=content" of every member, sorted: only that they are there is promised.
std::vector<std::string> found_in(const io::ByteSourcePtr& source) {
  const Zip zip = read_zip(source, {}, ZipReading::lenient);
  EXPECT_FALSE(zip.findings.empty());
  EXPECT_TRUE(test::error_of([&] { read_zip(source, {}); }).has_value()) << "a strict reading reads it";
  std::vector<std::string> members;
  for (const ZipMember& member : zip.members) members.push_back(member.name + "=" + content_found(zip, member));
  std::sort(members.begin(), members.end());
  return members;
}
std::vector<std::string> found_in(const ZipFile& file) { return found_in(file.source()); }
std::vector<std::string> found_in_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return found_in(io::from_memory({bytes.begin(), bytes.end()}));
}

using Members = std::vector<std::string>;

ZipFile two() { return ZipFile().stored("a", "data").deflated("b", "more"); }
const Members kTwo = {"a=data", "b=more"};

TEST(LenientZip, FindsMembersWithoutADirectory) {
  const std::string whole = two().text();
  EXPECT_EQ(found_in_bytes(whole.substr(0, whole.size() - 1)), kTwo);
  EXPECT_EQ(found_in_bytes(whole.substr(0, whole.find("PK\x01\x02"))), kTwo);
}

TEST(LenientZip, FindsStreamedMembersWithoutADirectory) {
  const std::string whole = ZipFile().streamed("a", "data").streamed("b", "more", true).stored("c", "").zip64().text();
  EXPECT_EQ(found_in_bytes(whole.substr(0, whole.size() - 1)), (Members{"a=data", "b=more", "c="}));
}

TEST(LenientZip, FindsTheBeginningOfATruncatedMember) {
  const std::string whole = ZipFile().stored("a", "0123456789").text();
  EXPECT_EQ(found_in_bytes(whole.substr(0, 36)), (Members{"a=01234"}));
}

TEST(LenientZip, FindsMembersBehindAPrefix) {
  EXPECT_EQ(found_in(two().prefix("#!/bin/sh\n")), kTwo);
  EXPECT_EQ(found_in(ZipFile().streamed("a", "data").zip64().prefix("#!")), (Members{"a=data"}));
}

TEST(LenientZip, FindsMembersBeforeASuffix) { EXPECT_EQ(found_in(two().suffix("signature")), kTwo); }

TEST(LenientZip, FindsBothNamesOfAMember) {
  EXPECT_EQ(found_in(ZipFile().stored("a", "data").change([](ZipEntry& e) { e.local.name = "b"; })),
            (Members{"a=data", "b=data"}));
}

TEST(LenientZip, FindsBothSizesOfAMember) {
  EXPECT_EQ(
      found_in(ZipFile().stored("a", "data").change([](ZipEntry& e) { e.central.packed_bytes = e.central.bytes = 2; })),
      (Members{"a=da", "a=data"}));
}

TEST(LenientZip, FindsBothWaysToUnpackAMember) {
  const std::string packed = test::deflate_raw("data");
  EXPECT_EQ(found_in(ZipFile().deflated("a", "data").change([](ZipEntry& e) { e.central.method = 0; })),
            (Members{"a=" + packed, "a=data"}));
}

TEST(LenientZip, ReadsPlainDataThatPretendToBeEncrypted) {
  for (const std::uint16_t flags : std::initializer_list<std::uint16_t>{0x1, 0x20, 0x40, 0x2000})
    EXPECT_EQ(
        found_in(ZipFile().stored("a", "data").change([=](ZipEntry& e) { e.local.flags = e.central.flags = flags; })),
        (Members{"a=data"}));
}

TEST(LenientZip, FindsMembersThatAreNotListed) {
  EXPECT_EQ(found_in(two().change([](ZipEntry& e) { e.is_listed = false; })), kTwo);
  EXPECT_EQ(found_in(ZipFile().stored("a", "data").change_end([](ZipEnd& e) {
              e.before_directory = ZipFile().stored("hidden", "!").text().substr(0, 37);
              e.directory_offset += 37;
            })),
            (Members{"a=data", "hidden=!"}));
}

TEST(LenientZip, FindsTheMembersOfEveryDirectory) {
  const std::string other = ZipFile().stored("other", "!").text();
  EXPECT_EQ(found_in(two().suffix(other)), (Members{"a=data", "b=more", "other=!"}));
  EXPECT_EQ(found_in(two().comment(other)), (Members{"a=data", "b=more", "other=!"}));
}

// libzip may prefer the end record inside the data.
TEST(LenientZip, FindsTheMembersOfADirectoryInsideTheData) {
  const std::string inner = "--" + ZipFile().stored("inner", "!").text();
  EXPECT_EQ(found_in(ZipFile().stored("a", inner).suffix("tail")), (Members{"a=" + inner, "inner=!"}));
}

TEST(LenientZip, FindsDuplicates) {
  EXPECT_EQ(found_in(ZipFile().stored("a", "1").stored("a", "2")), (Members{"a=1", "a=2"}));
}

TEST(LenientZip, FindsAllThatAStreamHolds) {
  const auto declared = [](std::uint32_t bytes) {
    return ZipFile().deflated("a", "0123456789").change([=](ZipEntry& e) { e.local.bytes = e.central.bytes = bytes; });
  };
  const Zip longer = read_zip(declared(99).source(), {}, ZipReading::lenient);
  const Zip shorter = read_zip(declared(1).source(), {}, ZipReading::lenient);
  EXPECT_EQ(content_found(longer, longer.members[0]), "0123456789");
  EXPECT_EQ(content_found(shorter, shorter.members[0]), "0123456789");
  ASSERT_EQ(shorter.findings.size(), 1u);
  EXPECT_EQ(shorter.findings[0].what, "member \"a\" inflates to 10 bytes, but 1 are declared");
  EXPECT_EQ(shorter.findings[0].offset, 31u);
}

TEST(LenientZip, FindsWhatABrokenStreamHoldsBeforeItBreaks) {
  std::string plain;
  for (int i = 0; i < 20000; ++i) plain += static_cast<char>((i * i) >> 5);
  const auto broken = ZipFile().deflated("a", plain).change([](ZipEntry& e) {
    for (std::size_t i = e.data.size() / 2; i < e.data.size(); ++i) e.data[i] = '\xFF';
  });
  const Zip zip = read_zip(broken.source(), {}, ZipReading::lenient);
  const std::string found = content_found(zip, zip.members[0]);
  EXPECT_GT(found.size(), 1000u);
  EXPECT_EQ(found.substr(0, 1000), plain.substr(0, 1000));
  ASSERT_EQ(zip.findings.size(), 1u);
  EXPECT_NE(zip.findings[0].what.find("does not end well after"), std::string::npos);
}

TEST(LenientZip, GivesUpOnABombAtTheLimit) {
  const auto bomb = ZipFile().deflated("a", std::string(100'000, '\0')).deflated("b", std::string(100'000, '\0'));
  Limits limits;
  limits.max_inflated_bytes = 150'000;
  const Zip zip = read_zip(bomb.source(), limits, ZipReading::lenient);
  ASSERT_EQ(zip.findings.size(), 1u);
  EXPECT_EQ(zip.findings[0].what,
            "member \"b\" is looked into for 50000 bytes and no further: as much has been inflated as "
            "Limits::max_inflated_bytes allows");
  EXPECT_EQ(zip.members[0].bytes, 100'000u);
  EXPECT_EQ(zip.members[1].bytes, 50'000u);
}

// What is behind the limit is not called broken.
TEST(LenientZip, SaysThatALimitIsUsedUp) {
  const auto three = ZipFile().deflated("a", "12345").deflated("b", "12345").deflated("c", "12345");
  Limits limits;
  limits.max_inflated_bytes = 5;
  const Zip zip = read_zip(three.source(), limits, ZipReading::lenient);
  ASSERT_EQ(zip.findings.size(), 2u);
  for (const auto& finding : zip.findings)
    EXPECT_NE(finding.what.find("is looked into for 0 bytes and no further"), std::string::npos);
}

TEST(LenientZip, LeavesOutMembersThatOverlapTooOften) {
  ZipFile file;
  file.stored("a", std::string(10'000, 'x'));
  for (int i = 0; i < 100; ++i)
    file.stored("b" + std::to_string(i), "").change([](ZipEntry& e) {
      e.has_local = false;
      e.header_offset = 0;
      e.central.bytes = e.central.packed_bytes = 10'000;
    });
  const Zip zip = read_zip(file.source(), {}, ZipReading::lenient);
  EXPECT_LT(zip.members.size(), 10u);
  EXPECT_NE(zip.findings.back().what.find("are left out"), std::string::npos);
}

TEST(LenientZip, ListsNoMoreFindingsThanAnybodyReads) {
  ZipFile file;
  for (int i = 0; i < 300; ++i) file.stored("a", "");
  const Zip zip = read_zip(file.source(), {}, ZipReading::lenient);
  EXPECT_EQ(zip.members.size(), 300u);
  EXPECT_EQ(zip.findings.size(), 201u);
}

TEST(LenientZip, FindsTheMembersOfTheHostileFixtures) {
  SKIP_WITHOUT_SHARED("fixtures/malicious");
  const auto names = [](const char* file) {
    const Zip zip =
        read_zip(io::open_file(test::shared_path(std::string("fixtures/malicious/") + file)), {}, ZipReading::lenient);
    Members members;
    for (const ZipMember& member : zip.members) members.push_back(member.name);
    return std::make_pair(members, zip.findings.size());
  };
  EXPECT_EQ(names("picklescan__data__malicious1_0x20.zip"), std::make_pair(Members{"model/config.pkl"}, 1ul));
  EXPECT_EQ(names("picklescan__data__malicious1_wrong_ext.zip"), std::make_pair(Members{"data.txt"}, 0ul));
  EXPECT_EQ(names("picklescan__data2__object_arrays.npz").second, 0u);
  EXPECT_EQ(names("picklescan__data2__object_arrays_compressed.npz").second, 0u);
}

}  // namespace
}  // namespace ballast::archive
