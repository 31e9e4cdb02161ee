// Every way an archive can lie, one row each: the archive, and what must be said about it and where.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "builders/zip_file.hpp"
#include "formats/archive/zip.hpp"
#include "support/counting_source.hpp"
#include "support/expect_error.hpp"

namespace ballast::archive {
namespace {

using namespace std::string_literals;
using test::extra_record;
using test::u32;
using test::u64;
using test::Zip64End;
using test::ZipEnd;
using test::ZipEntry;
using test::ZipFile;

struct ZipCase {
  const char* name;
  ZipFile file;
  Errc code;
  std::string message;
  std::uint64_t byte;
};

void PrintTo(const ZipCase& c, std::ostream* out) { *out << c.name; }

class HostileZip : public testing::TestWithParam<ZipCase> {};

TEST_P(HostileZip, IsRefusedWithItsByte) {
  const ZipCase& c = GetParam();
  EXPECT_ERROR_AT(read_zip(c.file.source(), {}), c.code, "file: ", c.byte);
  EXPECT_ERROR_AT(read_zip(c.file.source(), {}), c.code, c.message, c.byte);
}

TEST_P(HostileZip, IsAFindingOfALenientReading) {
  const ZipCase& c = GetParam();
  const Zip zip = read_zip(c.file.source(), {}, ZipReading::lenient);
  std::string all;
  for (const ZipFinding& finding : zip.findings) {
    all += std::to_string(finding.offset) + ": " + finding.what + "\n";
    EXPECT_LE(finding.offset, c.file.text().size());
  }
  EXPECT_NE(all.find(c.message), std::string::npos) << all;
  for (const ZipMember& member : zip.members) {
    EXPECT_LE(member.data_offset + member.packed_bytes, c.file.text().size());
    if (member.method == 0 || member.method == 8) {
      EXPECT_NO_THROW(member_source(zip, member, {}));
    }
  }
}

constexpr std::uint32_t kIn64 = 0xFFFFFFFF;
using enum Errc;

// "a" with four bytes: local header at 0, data at 31, directory at 35 with a name at 81, end record at 82.
ZipFile one() { return ZipFile().stored("a", "data"); }
ZipFile with(const std::function<void(ZipEntry&)>& lie) { return one().change(lie); }
// The same with a descriptor of 16 bytes: directory at 51, end record at 98.
ZipFile streamed_with(const std::function<void(ZipEntry&)>& lie) { return ZipFile().streamed("a", "data").change(lie); }
ZipFile ending(const std::function<void(ZipEnd&)>& lie) { return one().change_end(lie); }
// A second member, whose local header is at 35.
ZipFile second_with(const std::function<void(ZipEntry&)>& lie) { return one().stored("b", "data").change(lie); }
ZipFile second_streamed_with(const std::function<void(ZipEntry&)>& lie) {
  return one().streamed("b", "data").change(lie);
}
// The zip64 end record at 82, its locator at 138, the end record at 158.
ZipFile zip64(const std::function<void(Zip64End&)>& lie) { return one().zip64(lie); }

std::vector<ZipCase> folders() {
  return {
      {"AFolderWithData", ZipFile().stored("evil/", "data"), malformed,
       "member \"evil/\" is called a folder, but has 4 bytes", 39},
      {"ADeflatedFolderWithData", ZipFile().deflated("evil/", "data"), malformed, "is called a folder, but has 4 bytes",
       41},
      {"AFolderWithAByte", ZipFile().stored("evil/", "x"), malformed, "is called a folder, but has 1 bytes", 36},
  };
}

std::vector<ZipCase> end_records() {
  return {
      {"BytesAfterTheEnd", one().suffix("x"), malformed,
       "1 bytes follow the end record, which says that its comment has 0", 102},
      {"AZeroAfterTheEnd", one().suffix("\0"s), malformed, "1 bytes follow the end record", 102},
      {"ACommentThatIsTooShort", ending([](ZipEnd& e) { e.comment_bytes = 5; }), malformed,
       "0 bytes follow the end record, which says that its comment has 5", 102},
      {"ACommentThatIsTooLong", one().comment("comment").change_end([](ZipEnd& e) { e.comment_bytes = 3; }), malformed,
       "7 bytes follow", 102},
      {"ASecondEndRecordInTheComment", one().comment(ZipFile().text()), malformed,
       "a directory of 0 bytes at byte 0 does not end where", 104},
      {"ASecondSignatureInTheComment", one().comment("--PK\x05\x06--"), malformed,
       "a second end record begins inside the first", 106},
      {"ASecondRecordBehindTheFirst", one().suffix(one().text()), malformed, "does not end where the end record begins",
       186},
      {"TheDirectoryElsewhere", ending([](ZipEnd& e) { e.directory_offset -= 1; }), malformed,
       "a directory of 47 bytes at byte 34 does not end where the end record begins, at byte 82", 82},
      {"TheDirectoryBeyondTheEnd", ending([](ZipEnd& e) { e.directory_offset = 0xFFFFFFFE; }), malformed,
       "does not end where", 82},
      {"ADirectoryThatIsTooShort", ending([](ZipEnd& e) { e.directory_bytes -= 1; }), malformed, "does not end where",
       82},
      {"BytesBehindTheDirectory", ending([](ZipEnd& e) { e.before_end = "xx"; }), malformed,
       "does not end where the end record begins, at byte 84", 84},
      {"BytesBeforeTheArchive", one().prefix("MZ"), malformed, "does not end where", 84},
      {"BytesBeforeTheFirstMember", with([](ZipEntry& e) { e.before = "MZ"; }), malformed,
       "2 bytes lie before the first member", 0},
      {"AByteBeforeTheFirstMember", with([](ZipEntry& e) { e.before = "\0"s; }), malformed,
       "1 bytes lie before the first member", 0},
      {"AnotherDisk", ending([](ZipEnd& e) { e.disk = 1; }), unsupported, "in several parts", 82},
      {"ADirectoryOnAnotherDisk", ending([](ZipEnd& e) { e.directory_disk = 1; }), unsupported, "in several parts", 82},
      {"TwoCountsOfMembers", ending([](ZipEnd& e) { e.members_on_disk = 2; }), malformed,
       "counts 2 members on this disk but 1 in all", 82},
      {"TooManyMembers", ending([](ZipEnd& e) { e.members_on_disk = e.member_count = 2; }), malformed,
       "the directory has 1 members, but the end record says 2", 35},
      {"TooFewMembers",
       ZipFile().stored("a", "").stored("b", "").change_end([](ZipEnd& e) { e.members_on_disk = e.member_count = 1; }),
       malformed, "the directory has 2 members, but the end record says 1", 62},
      {"NoMembersAtAll", ending([](ZipEnd& e) { e.members_on_disk = e.member_count = 0; }), malformed,
       "the directory has 1 members, but the end record says 0", 35},
      {"MembersWithoutRoom", ending([](ZipEnd& e) { e.members_on_disk = e.member_count = 60000; }), malformed,
       "the directory has 1 members, but the end record says 60000", 35},
      {"ADirectoryWithoutMembers", ending([](ZipEnd& e) {
         e.directory_bytes = 0;
         e.directory_offset = 82;
         e.member_count = e.members_on_disk = 0;
       }),
       malformed, "82 bytes lie before the first member", 0},
  };
}

std::vector<ZipCase> zip64_records() {
  return {
      {"Zip64CountsOtherwise", zip64([](Zip64End& e) { e.member_count = e.members_on_disk = 2; }), malformed,
       "the number of members on this disk is 1 in the end record but 2 in the zip64 end record", 158},
      {"Zip64PutsTheDirectoryElsewhere", zip64([](Zip64End& e) { e.directory_offset = 0; }), malformed,
       "the offset of the directory is 35 in the end record but 0", 158},
      {"Zip64MakesTheDirectoryShorter", zip64([](Zip64End& e) { e.directory_bytes = 46; }), malformed,
       "the size of the directory is 47 in the end record but 46", 158},
      {"Zip64OnAnotherDisk", zip64([](Zip64End& e) { e.disk = 1; }), malformed,
       "the disk number is 0 in the end record but 1", 158},
      {"ANumberThatIsNearlyTheOneForZip64",
       zip64([](Zip64End&) {}).change_end([](ZipEnd& e) { e.directory_bytes = 0xFFFFFFFE; }), malformed,
       "the size of the directory is 4294967294 in the end record but 47", 158},
      {"Zip64PutsTheDirectoryBehindAllBytes", zip64([](Zip64End& e) {
                                                e.directory_offset = UINT64_MAX;
                                              }).change_end([](ZipEnd& e) { e.directory_offset = kIn64; }),
       malformed, "a directory of 47 bytes at byte 18446744073709551615 does not end where", 82},
      {"NoRoomForALocator", ZipFile().prefix(std::string(19, 'x')), malformed,
       "a directory of 0 bytes at byte 0 does not end where the end record begins, at byte 19", 19},
      {"ALocatorWithoutRoomForItsRecord", ZipFile().prefix("PK\x06\x07" + u32(0) + u64(0) + u32(1)), malformed,
       "ends early: 56 bytes are needed here", 0},
      {"Zip64BothElsewhere",
       zip64([](Zip64End& e) { e.directory_offset = 1; }).change_end([](ZipEnd& e) { e.directory_offset = 1; }),
       malformed, "does not end where the end record begins, at byte 82", 82},
      {"ALocatorOfAnotherDisk", zip64([](Zip64End& e) { e.locator_disk = 1; }), unsupported, "in several parts", 138},
      {"ALocatorOfManyDisks", zip64([](Zip64End& e) { e.disk_count = 2; }), unsupported, "in several parts", 138},
      {"ALocatorThatPointsElsewhere", zip64([](Zip64End& e) { e.record_offset = 35; }), malformed,
       "points to byte 35, but the record before it would begin at byte 82", 146},
      {"ALocatorThatPointsBeyond", zip64([](Zip64End& e) { e.record_offset = UINT64_MAX; }), malformed,
       "points to byte 18446744073709551615", 146},
      {"BytesBetweenRecordAndLocator", zip64([](Zip64End& e) { e.between = "x"; }), malformed,
       "points to byte 82, but the record before it would begin at byte 83", 147},
      {"AnExtensionOfTheRecord", zip64([](Zip64End& e) {
         e.extension = "more";
         e.rest_bytes = 48;
       }),
       malformed, "points to byte 82, but the record before it would begin at byte 86", 150},
      {"ARecordThatIsTooLong", zip64([](Zip64End& e) { e.rest_bytes = 45; }), malformed,
       "says that it has 45 more bytes", 86},
      {"ALocatorWithoutRecord",
       ending([](ZipEnd& e) { e.before_end = std::string(56, 'x') + "PK\x06\x07" + u32(0) + u64(82) + u32(1); }),
       malformed, "no zip64 end record where its locator says", 82},
  };
}

std::vector<ZipCase> directories() {
  return {
      {"NoEntryWhereOneBegins", with([](ZipEntry& e) { e.central.signature = "PK\x01\x03"; }), malformed,
       "something else where an entry should begin", 35},
      {"ANameThatIsTooLong", with([](ZipEntry& e) { e.central.name_bytes = 2; }), malformed, "ends inside the name",
       81},
      {"AnExtraFieldThatIsTooLong", with([](ZipEntry& e) { e.central.extra_bytes = 1; }), malformed,
       "ends inside the extra field", 82},
      {"ACommentPastTheDirectory", with([](ZipEntry& e) { e.comment_bytes = 100; }), malformed,
       "ends inside the comment", 82},
      {"ANameThatIsTooShort", with([](ZipEntry& e) {
         e.central.name = "ab";
         e.central.name_bytes = 1;
       }),
       malformed, "ends inside the directory entry", 82},
      {"NoName", with([](ZipEntry& e) { e.central.name = e.local.name = ""; }), malformed, "a member has no name", 80},
      {"ANulInTheName", with([](ZipEntry& e) { e.central.name = e.local.name = "a\0b"s; }), malformed,
       "the name \"a\\x00b\" has a zero byte in it", 84},
      {"NoUtf8", with([](ZipEntry& e) {
         e.central.flags = e.local.flags = 0x800;
         e.central.name = e.local.name = "a\xff";
       }),
       malformed, "is no UTF-8, but its flags say so", 83},
      {"TheSameNameTwice", ZipFile().stored("a", "1").stored("b", "2").stored("a", "3"), malformed,
       "two members are called \"a\"", 64},
      {"TheSameMemberTwice", ZipFile().stored("a", "1").stored("b", "").change([](ZipEntry& e) {
         e.has_local = false;
         e.header_offset = 0;
       }),
       malformed, "the data of member \"a\" end at byte 32, but the next thing begins at byte 0", 0},
      {"AnEndRecordInAComment", with([](ZipEntry& e) { e.comment = "-PK\x05\x06"; }), malformed,
       "the directory entry of member \"a\" has an end record's signature in it", 83},
      {"AnEndRecordInAName", with([](ZipEntry& e) { e.central.name = e.local.name = "PK\x05\x06"; }), malformed,
       "an end record's signature in it", 84},
      {"AnotherDiskForAMember", with([](ZipEntry& e) { e.disk = 1; }), unsupported, "member \"a\" is on disk 1", 35},
      {"Encrypted", with([](ZipEntry& e) { e.central.flags = e.local.flags = 1; }), unsupported,
       "member \"a\" is encrypted (flags 0x0001)", 35},
      {"Patched", with([](ZipEntry& e) { e.central.flags = e.local.flags = 0x20; }), unsupported,
       "is a patch to another file", 35},
      {"StronglyEncrypted", with([](ZipEntry& e) { e.central.flags = e.local.flags = 0x40; }), unsupported,
       "is encrypted", 35},
      {"HeadersEncrypted", with([](ZipEntry& e) { e.central.flags = e.local.flags = 0x2000; }), unsupported,
       "has its header encrypted", 35},
      {"UndefinedFlags", with([](ZipEntry& e) { e.central.flags = e.local.flags = 0x8000; }), unsupported,
       "flags whose meaning is not defined", 35},
      {"AnotherMethod", with([](ZipEntry& e) { e.central.method = e.local.method = 12; }), unsupported,
       "packed by method 12", 35},
      {"AnotherVersion", with([](ZipEntry& e) { e.central.version = 64; }), unsupported, "needs version 6.4", 35},
      {"StoredButSmaller", with([](ZipEntry& e) { e.central.bytes = e.local.bytes = 5; }), malformed,
       "is stored, but 4 bytes are said to become 5", 35},
      {"ABomb",
       ZipFile().deflated("a", "data").change([](ZipEntry& e) { e.central.bytes = e.local.bytes = 0x7FFFFFFF; }),
       malformed, "inflate to 2147483647, more than 1032 times", 37},
      {"AHeaderInsideTheDirectory", with([](ZipEntry& e) { e.header_offset = 6; }), malformed,
       "the local header of member \"a\" would be at byte 6, but the directory begins at byte 35", 35},
      {"AHeaderBeyondTheFile", with([](ZipEntry& e) { e.header_offset = 0xFFFFFFF0; }), malformed,
       "would be at byte 4294967280", 35},
  };
}

std::vector<ZipCase> local_headers() {
  return {
      {"NoLocalHeader", with([](ZipEntry& e) { e.local.signature = "PK\x03\x05"; }), malformed,
       "no local header where the directory says", 0},
      {"AnotherName", with([](ZipEntry& e) { e.local.name = "b"; }), malformed,
       "the directory calls a member \"a\", but its local header \"b\"", 30},
      {"ALongerName", with([](ZipEntry& e) { e.local.name = "ab"; }), malformed, "its local header \"ab\"", 30},
      {"AnotherMethodInOne", with([](ZipEntry& e) { e.local.method = 8; }), malformed,
       "the method of member \"a\" is 0 in the directory but 8 in its local header", 8},
      {"OtherFlagsInOne", with([](ZipEntry& e) { e.local.flags = 0x800; }), malformed,
       "the flag word of member \"a\" is 0 in the directory but 2048", 6},
      {"EncryptedInOne", with([](ZipEntry& e) { e.local.flags = 1; }), malformed, "the flag word of member", 6},
      {"AnotherCrc", with([](ZipEntry& e) { e.local.crc32 = 1; }), malformed,
       "the CRC-32 of member \"a\" is 2918445923 in the directory but 1", 14},
      {"NoCrc", with([](ZipEntry& e) { e.local.crc32 = 0; }), malformed, "the CRC-32 of member", 14},
      {"AnotherPackedSize", with([](ZipEntry& e) { e.local.packed_bytes = 3; }), malformed,
       "the packed size of member \"a\" is 4 in the directory but 3", 18},
      {"AnotherSize", with([](ZipEntry& e) { e.local.bytes = 3; }), malformed,
       "the unpacked size of member \"a\" is 4 in the directory but 3", 22},
      {"AnotherVersionInOne", with([](ZipEntry& e) { e.local.version = 99; }), unsupported, "needs version 9.9", 0},
      {"NoDescriptor", streamed_with([](ZipEntry& e) { e.descriptor = ""; }), malformed,
       "0 bytes lie behind the data of member \"a\", where a descriptor belongs", 35},
      {"ADescriptorThatIsTooLong", streamed_with([](ZipEntry& e) { e.descriptor += "x"; }), malformed,
       "17 bytes lie behind the data", 35},
      {"ADescriptorWithoutFlag",
       with([](ZipEntry& e) { e.descriptor = "PK\x07\x08" + u32(e.local.crc32) + u32(4) + u32(4); }), malformed,
       "16 bytes lie behind the data of member \"a\", where nothing belongs", 35},
      {"ADescriptorOfAnotherCrc", streamed_with([](ZipEntry& e) { e.descriptor[4] ^= 1; }), malformed,
       "the descriptor behind member \"a\" says something else", 35},
      {"ADescriptorOfAnotherSize", streamed_with([](ZipEntry& e) { e.descriptor[12] ^= 1; }), malformed,
       "the descriptor behind member \"a\"", 35},
      {"ADescriptorOfAnotherPackedSize", streamed_with([](ZipEntry& e) { e.descriptor[8] ^= 1; }), malformed,
       "the descriptor behind member \"a\"", 35},
      {"ADescriptorOfAnotherSignature", streamed_with([](ZipEntry& e) { e.descriptor[0] = 'p'; }), malformed,
       "the descriptor behind member \"a\"", 35},
      {"AnotherSizeBeforeADescriptor", streamed_with([](ZipEntry& e) { e.local.bytes = 5; }), malformed,
       "the unpacked size of member", 22},
      {"ASizeOfOneBeforeADescriptor", streamed_with([](ZipEntry& e) { e.local.bytes = 1; }), malformed,
       "the unpacked size of member \"a\" is 4 in the directory but 1", 22},
      {"AGap", one().stored("b", "").change([](ZipEntry& e) { e.before = "hidden"; }), malformed,
       "6 bytes lie behind the data of member \"a\", where nothing belongs", 35},
      {"AGapBeforeTheDirectory", ending([](ZipEnd& e) {
         e.before_directory = "x";
         e.directory_offset += 1;
       }),
       malformed, "1 bytes lie behind", 35},
      {"DataOverTheDirectory", with([](ZipEntry& e) {
         for (auto* h : {&e.central, &e.local}) h->packed_bytes = h->bytes = 5;
       }),
       malformed, "the data of member \"a\" end at byte 36, but the next thing begins at byte 35", 0},
      {"DataBeyondTheFile", with([](ZipEntry& e) {
         for (auto* h : {&e.central, &e.local}) h->packed_bytes = h->bytes = 0x7FFFFFFF;
       }),
       malformed, "end at byte 2147483678, but the next thing begins at byte 35", 0},
      {"DataOverTheNextMember", with([](ZipEntry& e) {
                                  for (auto* h : {&e.central, &e.local}) h->packed_bytes = h->bytes = 8;
                                }).stored("b", "data"),
       malformed, "the data of member \"a\" end at byte 39, but the next thing begins at byte 35", 0},
      {"AMemberInsideAnother", ZipFile().stored("outer", one().text()).stored("a", "data").change([](ZipEntry& e) {
         e.has_local = false;
         e.header_offset = 35;
       }),
       malformed, "the data of member \"outer\" end at byte 139, but the next thing begins at byte 35", 0},
      {"AMemberThatIsNotListed", one().stored("b", "").change([](ZipEntry& e) { e.is_listed = false; }), malformed,
       "31 bytes lie behind the data of member \"a\"", 35},
  };
}

std::vector<ZipCase> extra_fields() {
  return {
      {"HalfARecord", with([](ZipEntry& e) { e.central.extra = "\x55\x54\x05"s; }), malformed,
       "ends inside the extra field", 84},
      {"ARecordThatIsTooLong", with([](ZipEntry& e) { e.central.extra = "\x55\x54\x05\0abcd"s; }), malformed,
       "ends inside the extra field", 86},
      {"ALocalRecordThatIsTooLong", with([](ZipEntry& e) { e.local.extra = "\x55\x54\x05\0abcd"s; }), malformed,
       "ends inside the extra field", 35},
      {"TwoZip64Fields", with([](ZipEntry& e) { e.central.extra = extra_record(1, "") + extra_record(1, ""); }),
       malformed, "two records of the kind 0x0001", 86},
      {"ASecondName",
       with([](ZipEntry& e) { e.central.extra = extra_record(0x7075, "\1" + u32(test::crc32_of("a")) + "b"); }),
       malformed, "member \"a\" has a second name, \"b\"", 86},
      {"ASecondLocalName",
       with([](ZipEntry& e) { e.local.extra = extra_record(0x7075, "\1" + u32(test::crc32_of("a")) + "b"); }),
       malformed, "member \"a\" has a second name, \"b\"", 35},
      {"NoZip64Field", with([](ZipEntry& e) { e.central.bytes = kIn64; }), malformed,
       "the unpacked size is in a zip64 field that is not there", 35},
      {"NoLocalZip64Field", with([](ZipEntry& e) { e.local.packed_bytes = kIn64; }), malformed,
       "the packed size is in a zip64 field that is not there", 0},
      {"AShortZip64Field", with([](ZipEntry& e) {
         e.central.bytes = kIn64;
         e.central.extra = extra_record(1, u32(4));
       }),
       malformed, "ends inside the unpacked size", 86},
      {"ALongZip64Field",
       with([](ZipEntry& e) { e.central.extra = extra_record(1, u64(4) + u64(4) + u64(0) + u32(0) + "x"); }), malformed,
       "longer than any known one", 110},
      {"AZip64FieldThatSaysOtherwise", with([](ZipEntry& e) { e.central.extra = extra_record(1, u64(5) + u64(4)); }),
       malformed, "the zip64 field of member \"a\" holds 5", 82},
      {"ALocalZip64FieldThatSaysOtherwise", with([](ZipEntry& e) { e.local.extra = extra_record(1, u64(4) + u64(5)); }),
       malformed, "the zip64 field in the local header of member \"a\" holds 5", 0},
      {"AZip64FieldThatSaysAnotherPlace",
       with([](ZipEntry& e) { e.central.extra = extra_record(1, u64(4) + u64(4) + u64(1)); }), malformed,
       "the zip64 field of member \"a\" holds 1", 82},
      {"AZip64FieldThatSaysAnotherDisk",
       with([](ZipEntry& e) { e.central.extra = extra_record(1, u64(4) + u64(4) + u64(0) + u32(1)); }), malformed,
       "the zip64 field has another disk number than the header", 110},
      {"ALocalZip64FieldThatSaysAnotherPlace",
       with([](ZipEntry& e) { e.local.extra = extra_record(1, u64(4) + u64(4) + u64(1)); }), malformed,
       "in the local header of member \"a\" holds 1", 0},
      {"ALocalZip64FieldThatSaysNothing", second_with([](ZipEntry& e) { e.local.extra = extra_record(1, u64(0)); }),
       malformed, "in the local header of member \"b\" holds 0", 35},
      {"ALocalZip64FieldThatSaysOneBeforeADescriptor",
       second_streamed_with([](ZipEntry& e) { e.local.extra = extra_record(1, u64(1)); }), malformed,
       "in the local header of member \"b\" holds 1", 35},
      {"ALocalZip64FieldThatSaysMuchBeforeADescriptor",
       second_streamed_with([](ZipEntry& e) { e.local.extra = extra_record(1, u64(77)); }), malformed,
       "in the local header of member \"b\" holds 77", 35},
      {"AZip64SizeThatIsHuge", with([](ZipEntry& e) {
         e.central.bytes = e.central.packed_bytes = kIn64;
         e.central.extra = extra_record(1, u64(UINT64_MAX) + u64(UINT64_MAX));
       }),
       malformed, "the packed size of member \"a\" is 18446744073709551615 in the directory but 4", 18},
      {"AZip64OffsetThatIsHuge", with([](ZipEntry& e) {
         e.header_offset = kIn64;
         e.central.extra = extra_record(1, u64(UINT64_MAX - 3));
       }),
       malformed, "would be at byte 18446744073709551612", 35},
      {"AZip64DiskThatIsNotZero", with([](ZipEntry& e) {
         e.disk = 0xFFFF;
         e.central.extra = extra_record(1, u32(1));
       }),
       unsupported, "is on disk 1", 35},
      {"AZip64FieldInAnotherOrder", with([](ZipEntry& e) {
         e.header_offset = kIn64;
         e.central.extra = extra_record(1, u64(4) + u64(4) + u64(0));
       }),
       malformed, "the zip64 field has more numbers than the header refers to", 94},
  };
}

const auto kNames = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Folders, HostileZip, testing::ValuesIn(folders()), kNames);
INSTANTIATE_TEST_SUITE_P(End, HostileZip, testing::ValuesIn(end_records()), kNames);
INSTANTIATE_TEST_SUITE_P(Zip64, HostileZip, testing::ValuesIn(zip64_records()), kNames);
INSTANTIATE_TEST_SUITE_P(Directory, HostileZip, testing::ValuesIn(directories()), kNames);
INSTANTIATE_TEST_SUITE_P(Local, HostileZip, testing::ValuesIn(local_headers()), kNames);
INSTANTIATE_TEST_SUITE_P(Extra, HostileZip, testing::ValuesIn(extra_fields()), kNames);

TEST(HostileZip, IsRefusedForAGapOfAnySize) {
  for (std::size_t size = 1; size <= 64; ++size) {
    const auto gap = [&](ZipEntry& e) { e.before = std::string(size, '\0'); };
    const std::string message = std::to_string(size) + " bytes lie behind the data of member \"a\", where ";
    EXPECT_ERROR_AT(read_zip(one().stored("b", "").change(gap).source(), {}), malformed, message + "nothing", 35);
    const ZipFile after_descriptor = ZipFile().streamed("a", "data").stored("b", "").change(gap);
    EXPECT_ERROR_AT(read_zip(after_descriptor.source(), {}), malformed, "behind", 35);
  }
}

TEST(HostileZip, HasDescriptorsOfFourLengthsAndNoOther) {
  for (std::size_t size = 0; size <= 40; ++size) {
    const auto cut = [&](ZipEntry& e) { e.descriptor.resize(size); };
    const bool is_length = size == 12 || size == 16 || size == 20 || size == 24;
    const std::string other = std::to_string(size) + " bytes lie behind the data of member \"a\", where a descriptor";
    if (size == 16) continue;  // the right one
    EXPECT_ERROR_AT(read_zip(streamed_with(cut).source(), {}), malformed, is_length ? "says something else" : other,
                    35);
  }
}

TEST(HostileZip, InflatesToAThousandAndThirtyTwoTimesItsBytesAtMost) {
  const auto saying = [](std::uint32_t ratio, std::uint32_t more) {
    return ZipFile().deflated("a", "data").change([=](ZipEntry& e) {
      e.local.bytes = e.central.bytes = ratio * e.central.packed_bytes + more;
    });
  };
  EXPECT_NO_THROW(read_zip(saying(1032, 0).source(), {}));
  EXPECT_ERROR(read_zip(saying(1032, 1).source(), {}), malformed, "more than 1032 times as many");
}

TEST(HostileZip, HasAsManyMembersAsAreAllowedAndNoMore) {
  const ZipFile two = ZipFile().stored("a", "").stored("b", "");
  Limits limits;
  limits.max_archive_members = 2;
  EXPECT_NO_THROW(read_zip(two.source(), limits));
  EXPECT_NO_THROW(read_zip(ZipFile(two).suffix("x").source(), limits, ZipReading::lenient));
  EXPECT_ERROR(read_zip(ZipFile(two).stored("c", "").stored("d", "").source(), limits), limit,
               "has 4 members, more than the 2 allowed");
  // The members in the directory are counted, however few the end record states.
  const auto lie = [](ZipEnd& e) { e.members_on_disk = e.member_count = 1; };
  for (const ZipReading reading : {ZipReading::strict, ZipReading::lenient})
    EXPECT_ERROR(read_zip(ZipFile(two).stored("c", "").change_end(lie).source(), limits, reading), limit,
                 "has 3 members, more than the 2 allowed");
}

TEST(HostileZip, TruncatedAnywhereIsRefused) {
  const std::string whole = ZipFile().streamed("a", "data").deflated("b", "more").zip64().comment("c").text();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto bytes = std::as_bytes(std::span(whole)).first(size);
    EXPECT_ERROR(read_zip(memory_source({bytes.begin(), bytes.end()}), {}), malformed, "");
  }
}

// Of what is far away, local headers are read later: what the directory alone says is checked at once.
TEST(HostileZip, FarAwayIsRefusedByItsDirectory) {
  const auto far = [](const ZipFile& file) {
    return read_zip(std::make_shared<test::CountingSource>(file.source(), 1 << 20), {});
  };
  const auto data_of = [](std::uint32_t size) {
    return with([=](ZipEntry& e) { e.central.packed_bytes = e.central.bytes = size; });
  };
  EXPECT_EQ(far(one()).members.size(), 1u);
  EXPECT_EQ(far(ZipFile()).members.size(), 0u);
  EXPECT_ERROR_AT(far(data_of(5)), malformed, "has 5 bytes of data, but the next thing begins at byte 35", 0);
  const std::string huge = extra_record(1, u64(UINT64_MAX) + u64(UINT64_MAX));
  EXPECT_ERROR_AT(far(with([&](ZipEntry& e) {
                    e.central.packed_bytes = e.central.bytes = kIn64;
                    e.central.extra = huge;
                  })),
                  malformed, "has 18446744073709551615 bytes of data, but the next thing begins at byte 35", 0);
  for (const std::string before : {"x", "xx"})
    EXPECT_ERROR_AT(far(with([&](ZipEntry& e) { e.before = before; })), malformed,
                    std::to_string(before.size()) + " bytes lie before the first member", 0);
}

// One read of many fails, as on a disk that is damaged in one place.
class DamagedSource final : public Source {
 public:
  DamagedSource(SourcePtr whole, std::size_t fails_at) : whole_(std::move(whole)), left_(fails_at) {}
  const std::string& name() const override { return whole_->name(); }
  std::uint64_t size_bytes() const override { return whole_->size_bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (left_-- == 0) throw Error(Errc::io, "cannot be read");
    whole_->read(offset, out);
  }

 private:
  SourcePtr whole_;
  mutable std::size_t left_;
};

TEST(LenientZip, IsNotReadPastAReadThatFails) {
  const std::string text = one().stored("b", "more").text();
  const SourcePtr cut = test::source_named("file", text.substr(0, text.find("PK\x01\x02")));
  std::size_t reads = 0;
  while (const auto error =
             test::error_of([&] { read_zip(std::make_shared<DamagedSource>(cut, reads), {}, ZipReading::lenient); })) {
    EXPECT_EQ(error->code(), Errc::io) << error->what();
    ++reads;
  }
  EXPECT_GE(reads, 3u);
}

}  // namespace
}  // namespace ballast::archive
