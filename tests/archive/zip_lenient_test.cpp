// Archives that a strict reading refuses, and the members that a lenient one still finds: whatever some reader
// somewhere would load must be there to be scanned.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "builders/zip_file.hpp"
#include "formats/archive/zip.hpp"
#include "formats/archive/zip_report.hpp"
#include "formats/archive/zip_salvage.hpp"
#include "support/expect_error.hpp"
#include "support/fixtures.hpp"

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
  source->read(0, std::as_writable_bytes(std::span(content)));
  return content;
}

// Returns "name=content" of every member, sorted, because a lenient reading does not promise their order.
std::vector<std::string> found_in(const SourcePtr& source) {
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
  return found_in(memory_source({bytes.begin(), bytes.end()}));
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

// No header says how long these data are. A descriptor inside them counts only if it states the size of the data before
// it.
TEST(LenientZip, FindsAllOfAStreamedMemberHoweverItsDataLook) {
  const auto descriptor = [](std::uint64_t packed, std::uint64_t wide) {
    return "PK\x07\x08" + u32(0) + u32(packed) + u32(wide) + "....";
  };
  for (const std::string& fake :
       {descriptor(99, 99), descriptor(3, 0), descriptor(1, 0), descriptor(2, 1).substr(0, 8)}) {
    const std::string data = "xx" + fake;
    const std::string file = ZipFile().streamed("a", data).text().substr(0, 31 + data.size());
    EXPECT_EQ(found_in_bytes(file), Members{"a=" + data});
  }
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
  const Zip zip = read_zip(two().change([](ZipEntry& e) { e.is_listed = false; }).source(), {}, ZipReading::lenient);
  EXPECT_EQ(zip.findings.back().what, "member \"b\" is not in the directory");
  EXPECT_EQ(zip.findings.back().offset, 35u);
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
  for (const std::uint32_t nearly : {9u, 11u})
    EXPECT_EQ(read_zip(declared(nearly).source(), {}, ZipReading::lenient).findings[0].what,
              "member \"a\" inflates to 10 bytes, but " + std::to_string(nearly) + " are declared");
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

TEST(LenientZip, SaysThatSomethingLiesBehindAStream) {
  for (const std::string behind : {"x", "more"}) {
    const auto file = ZipFile().deflated("a", "data").change([&](ZipEntry& e) {
      e.data += behind;
      e.local.packed_bytes = e.central.packed_bytes = static_cast<std::uint32_t>(e.data.size());
    });
    const Zip zip = read_zip(file.source(), {}, ZipReading::lenient);
    ASSERT_EQ(zip.findings.size(), 1u);
    EXPECT_EQ(zip.findings[0].what,
              "member \"a\" has " + std::to_string(behind.size()) + " bytes behind its deflated stream");
  }
}

TEST(LenientZip, DoesNotLookForADirectoryThatCannotBeThere) {
  const auto lying = [](std::function<void(ZipEnd&)> lie) {
    return read_zip(two().change_end(std::move(lie)).source(), {}, ZipReading::lenient);
  };
  for (const Zip& zip :
       {lying([](ZipEnd& e) { e.directory_offset += 1; }), lying([](ZipEnd& e) { e.directory_bytes = 0xFFFFFFF0; })}) {
    ASSERT_EQ(zip.findings.size(), 1u);
    EXPECT_NE(zip.findings[0].what.find("does not end where the end record begins"), std::string::npos);
    EXPECT_EQ(zip.members.size(), 2u);
  }
  const auto beyond = ZipFile().stored("a", "data").prefix("MZ").change([](ZipEntry& e) {
    e.header_offset = 0xFFFFFFFF;
    e.central.extra = test::extra_record(1, u64(UINT64_MAX));
  });
  EXPECT_EQ(found_in(beyond), Members{"a=data"});
}

TEST(LenientZip, GivesUpOnABombAtTheLimit) {
  const auto bomb = ZipFile().deflated("a", std::string(100'000, '\0')).deflated("b", std::string(100'000, '\0'));
  Limits limits;
  limits.max_inflated_bytes = 150'000;
  const Zip zip = read_zip(bomb.source(), limits, ZipReading::lenient);
  ASSERT_EQ(zip.findings.size(), 1u);
  EXPECT_EQ(zip.findings[0].what,
            "member \"b\" is looked into for 50000 bytes and no further: as much has been inflated as "
            "max_inflated_bytes allows");
  EXPECT_EQ(zip.members[0].bytes, 100'000u);
  EXPECT_EQ(zip.members[1].bytes, 50'000u);
}

// Members behind the limit are not called broken.
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

TEST(LenientZip, LetsMembersOverlapUpToFourTimesTheFile) {
  const auto source = memory_source(std::vector<std::byte>(10), "file");
  const auto kept = [&](std::uint64_t last) {
    std::vector<ZipMember> members(5);
    for (ZipMember& member : members) member.packed_bytes = 10;
    members.back().packed_bytes = last;
    ZipReport report(*source, ZipReading::lenient);
    bound_overlaps(*source, members, report);
    EXPECT_EQ(report.has_findings(), members.size() != 5);
    return members.size();
  };
  EXPECT_EQ(kept(0), 5u);
  EXPECT_EQ(kept(1), 4u);
}

TEST(LenientZip, FindsAsManyMembersWithoutADirectoryAsAreAllowed) {
  const std::string whole = two().text();
  const auto bytes = std::as_bytes(std::span(whole)).first(whole.size() - 1);
  const auto source = memory_source({bytes.begin(), bytes.end()});
  Limits limits;
  limits.max_archive_members = 2;
  EXPECT_EQ(read_zip(source, limits, ZipReading::lenient).members.size(), 2u);
  limits.max_archive_members = 1;
  EXPECT_ERROR(read_zip(source, limits, ZipReading::lenient), Errc::limit, "has more members than the 1 allowed");
}

class FailingSource final : public Source {
 public:
  FailingSource(SourcePtr source, std::size_t reads) : source_(std::move(source)), left_(reads) {}
  const std::string& name() const override { return source_->name(); }
  std::uint64_t size_bytes() const override { return source_->size_bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (left_ == 0) throw Error(Errc::io, "the disk fails");
    --left_;
    source_->read(offset, out);
  }

 private:
  SourcePtr source_;
  mutable std::size_t left_;
};

TEST(LenientZip, DoesNotTakeAFailingDiskForAFinding) {
  const auto damaged = two().streamed("c", "data").suffix("x").source();
  std::size_t reads = 0;
  for (;; ++reads) {
    const auto error =
        test::error_of([&] { read_zip(std::make_shared<FailingSource>(damaged, reads), {}, ZipReading::lenient); });
    if (!error) break;
    EXPECT_EQ(error->code(), Errc::io) << reads;
  }
  EXPECT_GE(reads, 3u);
}

TEST(LenientZip, ListsNoMoreFindingsThanAnybodyReads) {
  ZipFile file;
  for (int i = 0; i < 300; ++i) file.stored("a", "");
  const Zip zip = read_zip(file.source(), {}, ZipReading::lenient);
  EXPECT_EQ(zip.members.size(), 300u);
  EXPECT_EQ(zip.findings.size(), 201u);
}

TEST(LenientZip, FindsTheMembersOfTheHostileFixtures) {
  SKIP_WITHOUT_FIXTURES("malicious");
  const auto names = [](const char* file) {
    const Zip zip =
        read_zip(file_source(test::fixture_path(std::string("malicious/") + file)), {}, ZipReading::lenient);
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
