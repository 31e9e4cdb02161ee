// Archives that are right, however they were written, and what is read from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "builders/temp_dir.hpp"
#include "builders/zip_file.hpp"
#include "formats/archive/zip.hpp"
#include "formats/archive/zip_writer.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/fixtures.hpp"
#include "support/vectors.hpp"

namespace ballast::archive {
namespace {

using test::extra_record;
using test::TempDir;
using test::u32;
using test::u64;
using test::ZipEntry;
using test::ZipFile;

std::string content_of(const Zip& zip, const ZipMember& member) {
  const StoragePtr storage = member_storage(zip, member);
  std::string content(storage->size_bytes(), '\0');
  storage->read(0, std::as_writable_bytes(std::span(content)));
  return content;
}

// "name=content" of every member, in order.
std::string all_of(const Zip& zip) {
  std::string text;
  for (const ZipMember& member : zip.members) text += member.name + "=" + content_of(zip, member) + ";";
  return text;
}

std::string read_all(const ZipFile& file) { return all_of(read_zip(file.source(), {})); }

TEST(Zip, ReadsStoredAndDeflatedMembers) {
  const Zip zip = read_zip(ZipFile().stored("a", "one").deflated("b/c", std::string(1000, 'x')).source(), {});
  EXPECT_EQ(all_of(zip), "a=one;b/c=" + std::string(1000, 'x') + ";");
  EXPECT_EQ(zip.members[0].data_offset, 31u);
  EXPECT_EQ(member_storage(zip, zip.members[0])->declared_crc32(), test::crc32_of("one"));
  EXPECT_EQ(member_storage(zip, zip.members[1])->declared_crc32(), test::crc32_of(std::string(1000, 'x')));
  EXPECT_FALSE(member_storage(zip, zip.members[0])->is_sequential());
  EXPECT_TRUE(member_storage(zip, zip.members[1])->is_sequential());
  EXPECT_EQ(zip.find("b/c"), &zip.members[1]);
  EXPECT_EQ(zip.find("b"), nullptr);
}

TEST(Zip, ReadsWhatTorchWrites) {
  const ZipFile file = ZipFile()
                           .streamed("m/data.pkl", "pickle")
                           .aligned()
                           .streamed("m/data/0", std::string(100, 'w'))
                           .aligned()
                           .stored("m/data/1", "")
                           .aligned()
                           .streamed("m/version", "3\n", true)
                           .aligned()
                           .zip64();
  const Zip zip = read_zip(file.source(), {});
  for (const ZipMember& member : zip.members) EXPECT_EQ(member.data_offset % 64, 0u) << member.name;
  EXPECT_EQ(all_of(zip), "m/data.pkl=pickle;m/data/0=" + std::string(100, 'w') + ";m/data/1=;m/version=3\n;");
}

TEST(Zip, ReadsAnEmptyArchive) {
  EXPECT_EQ(read_all(ZipFile()), "");
  EXPECT_EQ(read_all(ZipFile().zip64()), "");
}

TEST(Zip, ReadsCommentsAndExtraFields) {
  EXPECT_EQ(read_all(ZipFile().stored("a", "1").comment("PK\x01\x02 and so on")), "a=1;");
  EXPECT_EQ(read_all(ZipFile().stored("a", "1").comment(std::string(65535, 'c'))), "a=1;");
  EXPECT_EQ(read_all(ZipFile().stored("a", "1").change([](ZipEntry& e) {
              e.comment = "of a member";
              e.local.extra = extra_record(0x5455, "time!") + extra_record(0x7875, "owners");
              e.central.extra = extra_record(0x5455, "t") + std::string(3, '\0');  // padding that aligns data
            })),
            "a=1;");
}

TEST(Zip, ReadsMembersInAnotherOrderThanTheDirectory) {
  EXPECT_EQ(read_all(ZipFile().stored("a", "1").streamed("b", "2").stored("c", "3").list_in_order({2, 0, 1})),
            "c=3;a=1;b=2;");
}

TEST(Zip, ReadsDescriptorsOfEveryLength) {
  const auto with = [](bool has_signature, bool is_wide) {
    return ZipFile().streamed("a", "data").change([=](ZipEntry& e) {
      const auto size = [&](std::uint32_t v) { return is_wide ? u64(v) : u32(v); };
      e.descriptor = (has_signature ? "PK\x07\x08" : "") + u32(e.central.crc32) + size(4) + size(4);
    });
  };
  for (const bool has_signature : {false, true})
    for (const bool is_wide : {false, true})
      EXPECT_EQ(read_all(with(has_signature, is_wide).stored("b", "2")), "a=data;b=2;");
}

TEST(Zip, ReadsAStreamedMemberWhoseHeaderHasTheSizesToo) {
  EXPECT_EQ(read_all(ZipFile().streamed("a", "data").change([](ZipEntry& e) {
              e.local.packed_bytes = e.local.bytes = 4;
              e.local.crc32 = e.central.crc32;
            })),
            "a=data;");
}

// numpy writes every local header like this, and Python every streamed one.
TEST(Zip, ReadsZip64FieldsThatAreNotNeeded) {
  EXPECT_EQ(read_all(ZipFile().stored("a", "data").change([](ZipEntry& e) {
              e.local.extra = extra_record(1, u64(4) + u64(4));
            })),
            "a=data;");
  EXPECT_EQ(read_all(ZipFile().stored("a", "data").change([](ZipEntry& e) {
              e.local.packed_bytes = e.local.bytes = 0xFFFFFFFF;
              e.local.extra = extra_record(1, u64(4) + u64(4));
              e.central.packed_bytes = e.central.bytes = 0xFFFFFFFF;
              e.header_offset = 0xFFFFFFFF;
              e.central.extra = extra_record(1, u64(4) + u64(4) + u64(0));
            })),
            "a=data;");
  EXPECT_EQ(read_all(ZipFile().streamed("a", "data").change([](ZipEntry& e) {
              e.local.packed_bytes = e.local.bytes = 0xFFFFFFFF;
              e.local.extra = extra_record(1, u64(0) + u64(0));
              e.descriptor = "PK\x07\x08" + u32(e.central.crc32) + u64(4) + u64(4);
            })),
            "a=data;");
}

// torch writes this beyond 4 GiB: the size, a zero, and the offset, for a header whose fields are zero and not
// 0xFFFFFFFF.
TEST(Zip, ReadsTheZip64FieldThatTorchWritesIntoLocalHeaders) {
  EXPECT_EQ(read_all(ZipFile().stored("first", "1").streamed("a", "data").change([](ZipEntry& e) {
              e.local.extra = extra_record(1, u64(4) + u64(0) + u64(36));
              e.descriptor = "PK\x07\x08" + u32(e.central.crc32) + u64(4) + u64(4);
            })),
            "first=1;a=data;");
  EXPECT_EQ(read_all(ZipFile().stored("first", "1").stored("empty", "").change([](ZipEntry& e) {
              e.local.extra = e.central.extra = extra_record(1, u64(36));
              e.header_offset = 0xFFFFFFFF;
            })),
            "first=1;empty=;");
}

TEST(Zip, KeepsArchivesInsideOfArchivesApart) {
  const std::string inner = ZipFile().stored("inner", "1").comment("of the inner one").text();
  const ZipFile outer = ZipFile().stored("a.zip", inner);
  const Zip zip = read_zip(outer.source(), {});
  EXPECT_EQ(all_of(zip), "a.zip=" + inner + ";");
  EXPECT_EQ(all_of(read_zip(member_source(zip, zip.members[0], {}), {})), "inner=1;");
}

TEST(Zip, NamesTheSourceOfAMemberAfterTheArchiveAndTheMember) {
  const Zip zip = read_zip(ZipFile().stored("s", "stored").deflated("d", "deflated").source(), {});
  const auto stored = member_source(zip, zip.members[0], {});
  const auto deflated = member_source(zip, zip.members[1], {});
  EXPECT_EQ(stored->name(), "file!/s");
  EXPECT_EQ(deflated->name(), "file!/d");
  EXPECT_EQ(stored->size_bytes(), 6u);
  EXPECT_EQ(deflated->size_bytes(), 8u);
}

TEST(Zip, HoldsDeflatedMembersWithinTheLimit) {
  const Zip zip = read_zip(ZipFile().deflated("d", std::string(1000, 'x')).source(), {});
  Limits limits;
  limits.max_inflated_bytes = 999;
  EXPECT_ERROR(member_source(zip, zip.members[0], limits), Errc::limit, "inflates to 1000 bytes, more than the 999");
  limits.max_inflated_bytes = 1000;
  EXPECT_EQ(member_source(zip, zip.members[0], limits)->size_bytes(), 1000u);
}

TEST(Zip, ReadsTheNewestVersionOfTheFormat) {
  EXPECT_EQ(
      read_all(ZipFile().stored("a", "data").change([](ZipEntry& e) { e.local.version = e.central.version = 63; })),
      "a=data;");
}

TEST(Zip, KnowsWhereAStoredMemberLies) {
  const TempDir folder;
  const std::string path = folder.write("a.zip", ZipFile().stored("a", "data").deflated("b", "data").text());
  const Zip zip = read_zip(file_source(path), {});
  const auto location = member_storage(zip, zip.members[0])->location();
  ASSERT_TRUE(location.has_value());
  EXPECT_EQ(location->file, path);
  EXPECT_EQ(location->offset, 31u);
  EXPECT_EQ(member_storage(zip, zip.members[0])->mapped().size(), 4u);
  EXPECT_EQ(member_storage(zip, zip.members[1])->location(), std::nullopt);
}

TEST(Zip, RefusesMoreMembersThanAllowed) {
  Limits limits;
  limits.max_archive_members = 1;
  EXPECT_ERROR(read_zip(ZipFile().stored("a", "").stored("b", "").source(), limits), Errc::limit, "has 2 members");
  EXPECT_ERROR(read_zip(ZipFile().stored("a", "").stored("b", "").source(), limits, ZipReading::lenient), Errc::limit,
               "has 2 members");
}

bool is_zip(const std::filesystem::path& path) { return test::read_whole_file(path).starts_with("PK\x03\x04"); }

// Expects that what real programs wrote is read strictly, and leniently without a finding.
void expect_all_zips_read(const std::vector<std::filesystem::path>& files, const std::vector<std::string>& but) {
  std::size_t count = 0;
  for (const auto& path : files) {
    if (!is_zip(path) || std::find(but.begin(), but.end(), path.filename()) != but.end()) continue;
    SCOPED_TRACE(path);
    const auto source = file_source(path);
    const Zip strict = read_zip(source, {});
    const Zip lenient = read_zip(source, {}, ZipReading::lenient);
    for (const ZipFinding& finding : lenient.findings) ADD_FAILURE() << finding.offset << ": " << finding.what;
    EXPECT_EQ(all_of(strict), all_of(lenient));
    ++count;
  }
  EXPECT_GT(count, 0u);
}

TEST(Zip, ReadsEveryRealFile) {
  SKIP_WITHOUT_FIXTURES("benign");
  expect_all_zips_read(test::fixture_files("benign", ""), {});
  expect_all_zips_read(test::fixture_files("malicious/control-benign", ""), {});
}

TEST(Zip, ReadsEveryFileOfTorch2) {
  expect_all_zips_read(test::vector_files("torch2", ""), {"bad_truncated_zip.pt"});
  EXPECT_ERROR_AT(read_zip(file_source(test::vector_path("torch2/bad_truncated_zip.pt")), {}), Errc::malformed,
                  "without its end record", 5496);
}

TEST(ZipWriter, MakesNoFileThatIsLargerThanAnyCanBe) {
  const auto place_of = [](std::uint64_t size) { return ZipWriter(ZipStyle::plain).add("a", size).data_offset; };
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const std::uint64_t before = place_of(kMost / 2);
  EXPECT_EQ(place_of(kMost - before), before);
  EXPECT_ERROR(place_of(kMost - before + 1), Errc::limit, "larger than any file can be");
  EXPECT_ERROR(place_of(UINT64_MAX), Errc::limit, "larger than any file can be");
}

}  // namespace
}  // namespace ballast::archive
