// Tars that are right, and every way they can lie, one row each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "builders/tar_file.hpp"
#include "formats/archive/tar.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/fixtures.hpp"

namespace ballast::archive {
namespace {

using namespace std::string_literals;
using test::TarFile;

std::string all_of(const Tar& tar) {
  std::string text;
  for (const TarMember& member : tar.members) {
    const auto source = member_source(tar, member);
    std::string content(source->size_bytes(), '\0');
    source->read(0, std::as_writable_bytes(std::span(content)));
    text += member.name + "=" + content + ";";
  }
  return text;
}
std::string read_all(const TarFile& file) { return all_of(read_tar(file.source(), {})); }

TarFile one_file() { return TarFile().file("a", "data"); }
TarFile with(const std::function<void(std::string&)>& lie) { return one_file().change(lie); }
std::function<void(std::string&)> put(std::size_t offset, const std::string& text) {
  return [=](std::string& header) { TarFile::put(header, offset, text); };
}

TEST(Tar, ReadsPlainFiles) {
  const Tar tar = read_tar(TarFile().file("a", "data").file("b/c", std::string(600, 'x')).file("e", "").source(), {});
  EXPECT_EQ(all_of(tar), "a=data;b/c=" + std::string(600, 'x') + ";e=;");
  EXPECT_EQ(tar.find("b/c"), &tar.members[1]);
  EXPECT_EQ(tar.find("b"), nullptr);
  EXPECT_EQ(member_source(tar, tar.members[0])->name(), "file!/a");
}

TEST(Tar, ReadsEveryKindOfHeader) {
  EXPECT_EQ(read_all(with(put(257, "ustar  \0"s))), "a=data;");          // GNU
  EXPECT_EQ(read_all(with(put(257, std::string(8, '\0')))), "a=data;");  // from before the magic
  EXPECT_EQ(read_all(with(put(156, "\0"s))), "a=data;");                 // from before the types
  EXPECT_EQ(read_all(with(put(345, "folder/of"))), "folder/of/a=data;");
  EXPECT_EQ(read_all(with(put(0, std::string(100, 'n')))), std::string(100, 'n') + "=data;");
}

TEST(Tar, ReadsLongNames) {
  const std::string name(300, 'n');
  EXPECT_EQ(read_all(TarFile().long_name(name).file("short", "data")), name + "=data;");
  const std::string longest((1 << 20) - 1, 'n');  // 1 MiB with the zero byte that ends the name
  EXPECT_EQ(read_all(TarFile().long_name(longest).file("short", "data")), longest + "=data;");
  EXPECT_EQ(read_all(TarFile().pax("path", name).file("short", "data")), name + "=data;");
  EXPECT_EQ(read_all(TarFile().pax("mtime", "1.5").file("a", "data").file("b", "")), "a=data;b=;");
  EXPECT_EQ(read_all(TarFile().member("g", 'g', TarFile::pax_record("comment", "x")).file("a", "data")), "a=data;");
}

TEST(Tar, ReadsSizesInEveryForm) {
  EXPECT_EQ(read_all(with(put(124, "          4 "))), "a=data;");
  EXPECT_EQ(read_all(with(put(124, "\x80\0\0\0\0\0\0\0\0\0\0\4"s))), "a=data;");
  EXPECT_EQ(read_all(TarFile().pax("size", "4").file("a", "data")), "a=data;");
}

TEST(Tar, SkipsFoldersAndLeadingDots) {
  EXPECT_EQ(read_all(TarFile().member("./", '5').file("./a", "data").member("b/", '5').file("././b/c", "1")),
            "a=data;b/c=1;");
}

TEST(Tar, IsReadWithoutItsEnd) {
  EXPECT_EQ(read_all(one_file().ending("")), "a=data;");
  EXPECT_EQ(read_all(one_file().ending(std::string(512, '\0'))), "a=data;");
  EXPECT_EQ(read_all(one_file().ending(std::string(9728, '\0'))), "a=data;");
  EXPECT_EQ(read_all(one_file().ending(std::string(1 << 20, '\0'))), "a=data;");
  const std::string unpadded = one_file().text().substr(0, 516);
  const auto bytes = std::as_bytes(std::span(unpadded));
  EXPECT_EQ(all_of(read_tar(memory_source({bytes.begin(), bytes.end()}), {})), "a=data;");
}

TEST(Tar, AcceptsChecksumsOfSignedBytes) {
  const auto file = TarFile().file("\xE9", "data").change_unsealed([](std::string& header) {
    TarFile::put(header, 148, "        ");
    int sum = 0;
    for (const char c : header) sum += static_cast<signed char>(c);
    TarFile::put(header, 148, TarFile::octal(static_cast<std::uint64_t>(sum), 6) + '\0');
  });
  EXPECT_EQ(read_all(file), "\xE9=data;");
}

TEST(Tar, IsRecognisedByItsChecksum) {
  const auto looks = [](const std::string& text) { return looks_like_tar(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(looks(one_file().text()));
  EXPECT_TRUE(looks(with(put(257, std::string(8, '\0'))).text()));
  EXPECT_FALSE(looks(one_file().text().substr(0, 511)));
  EXPECT_FALSE(looks(one_file().change_unsealed(put(0, "b")).text()));
  EXPECT_FALSE(looks(std::string(512, '\0')));
  EXPECT_FALSE(looks(std::string(512, ' ')));
  EXPECT_FALSE(looks(""));
}

struct TarCase {
  const char* name;
  TarFile file;
  Errc code;
  std::string message;
  std::uint64_t byte;
};

void PrintTo(const TarCase& c, std::ostream* out) { *out << c.name; }

class HostileTar : public testing::TestWithParam<TarCase> {};

TEST_P(HostileTar, IsRefusedWithItsByte) {
  const TarCase& c = GetParam();
  EXPECT_ERROR_AT(read_tar(c.file.source(), {}), c.code, c.message, c.byte);
}

using enum Errc;

INSTANTIATE_TEST_SUITE_P(
    All, HostileTar,
    testing::ValuesIn(std::vector<TarCase>{
        {"AWrongChecksum", one_file().change_unsealed(put(0, "b")), malformed, "the checksum of a tar header is wrong",
         148},
        {"NoChecksum", one_file().change_unsealed(put(148, "        ")), malformed, "checksum", 148},
        {"ASymbolicLink", TarFile().member("a", '2'), unsupported, "member \"a\" is a symbolic link", 0},
        {"AHardLink", TarFile().member("a", '1'), unsupported, "a hard link", 0},
        {"ADevice", TarFile().member("a", '3'), unsupported, "a device", 0},
        {"APipe", TarFile().member("a", '6'), unsupported, "a named pipe", 0},
        {"ASparseFile", TarFile().member("a", 'S', "data"), unsupported, "a sparse file", 0},
        {"ALongLink", TarFile().member("a", 'K', "data"), unsupported, "a link", 0},
        {"AnUnknownType", TarFile().member("a", 'Z'), unsupported, "member \"a\" is of type \"Z\"", 0},
        {"APaxSparseFile", TarFile().pax("GNU.sparse.major", "1").file("a", "data"), unsupported, "GNU.sparse.major",
         512},
        {"APaxLink", TarFile().pax("linkpath", "/etc/passwd").file("a", ""), unsupported, "linkpath", 512},
        {"AFolderWithData", TarFile().member("a/", '5', "data"), malformed, "the folder \"a/\" has data", 0},
        {"AFolderWithAByte", TarFile().member("a/", '5', "x"), malformed, "the folder \"a/\" has data", 0},
        {"TheSameNameTwice", one_file().file("a", "2"), malformed, "two members are called \"a\"", 1024},
        {"TheSameNameInOtherWords", one_file().file("./a", "2"), malformed, "two members are called \"a\"", 1024},
        {"NoName", TarFile().file("", "x"), malformed, "a file is called \"\"", 0},
        {"AFolderThatIsAFile", TarFile().file("a/", "x"), malformed, "a file is called \"a/\"", 0},
        {"ANulInALongName", TarFile().long_name("a\0b"s).file("c", ""), malformed, "a file is called \"a\\x00b\"",
         1024},
        {"DataBeyondTheFile", with(put(124, "00000010000")), malformed,
         "member \"a\" has 4096 bytes, but only 1536 follow", 0},
        {"AHugeSize", with(put(124, "77777777777")), malformed, "has 8589934591 bytes", 0},
        {"AHugeBinarySize", with(put(124, "\x80\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s)), malformed,
         "has 18446744073709551615 bytes", 0},
        {"ABinarySizeOfMoreThan64Bits", with(put(124, "\x80\0\0\1\0\0\0\0\0\0\0\4"s)), malformed,
         "which is no octal number", 124},
        {"ANegativeBinarySize", with(put(124, std::string(11, '\xFF') + '\xFC')), malformed, "which is no octal number",
         124},
        {"ANegativeSize", with(put(124, "-0000000004")), malformed,
         "the size of a tar header is \"-0000000004\\x00\", which is no octal number", 124},
        {"ASizeThatIsNotOctal", with(put(124, "00000000008")), malformed, "no octal number", 124},
        {"ASizeWithALetter", with(put(124, "4\0x\0\0\0\0\0\0\0\0\0"s)), malformed, "no octal number", 124},
        {"NoSize", with(put(124, std::string(12, ' '))), malformed, "no octal number", 124},
        {"ASizeOfZeroBytes", with(put(124, std::string(12, '\0'))), malformed, "no octal number", 124},
        {"APrefixOfAnOldHeader", TarFile().file("a", "data").change(put(257, "ustar  \0"s)).change(put(345, "x")),
         malformed, "a prefix that its kind has not", 345},
        {"APaxSizeThatSaysOtherwise", TarFile().pax("size", "3").file("a", "data"), malformed,
         "4 bytes in its header but 3 in a pax record", 1024},
        {"AHugePaxSize", TarFile().pax("size", "99999999999").file("a", "data"), malformed,
         "member \"a\" has 99999999999 bytes", 1024},
        {"TheLargestOctalSizeInAPaxRecord", TarFile().pax("size", "8589934591").file("a", "data"), malformed,
         "4 bytes in its header but 8589934591 in a pax record", 1024},
        {"OneMoreThanAnOctalSizeInAPaxRecord", TarFile().pax("size", "8589934592").file("a", "data"), malformed,
         "member \"a\" has 8589934592 bytes", 1024},
        {"APaxSizeThatIsNoNumber", TarFile().pax("size", "-4").file("a", "data"), malformed,
         "the size of a pax record is \"-4\"", 512},
        {"APaxSizeOfMoreThan64Bits", TarFile().pax("size", "18446744073709551616").file("a", ""), malformed,
         "the size of a pax record", 512},
        {"TwoPaxPaths",
         TarFile().member("x", 'x', TarFile::pax_record("path", "a") + TarFile::pax_record("path", "b")).file("c", ""),
         malformed, "two pax records \"path\"", 521},
        {"APaxRecordThatIsTooLong", TarFile().member("x", 'x', "99 path=a\n").file("c", ""), malformed,
         "says that it has 99 bytes", 512},
        {"APaxRecordThatIsOneByteTooLong", TarFile().member("x", 'x', "11 path=a\n").file("c", ""), malformed,
         "says that it has 11 bytes", 512},
        {"APaxRecordThatEndsInsideALine", TarFile().member("x", 'x', "9 path=abc\n").file("c", ""), malformed,
         "says that it has 9 bytes", 512},
        {"APaxRecordOfNothing", TarFile().member("x", 'x', "3 \n").file("c", ""), malformed,
         "a pax record without a key: \"\"", 512},
        {"APaxRecordOfAValue", TarFile().member("x", 'x', "5 =a\n").file("c", ""), malformed,
         "a pax record without a key: \"=a\"", 512},
        {"TwoPaxSizes",
         TarFile().member("x", 'x', TarFile::pax_record("size", "4") + TarFile::pax_record("size", "4")).file("c", ""),
         malformed, "two pax records \"size\"", 521},
        {"APaxRecordOfNoLength", TarFile().member("x", 'x', "0 path=a\n").file("c", ""), malformed,
         "says that it has 0 bytes", 512},
        {"APaxRecordWithoutKey", TarFile().member("x", 'x', "6 abc\n").file("c", ""), malformed,
         "a pax record without a key", 512},
        {"APaxRecordWithoutLength", TarFile().member("x", 'x', "path=a\n").file("c", ""), malformed,
         "the length of a pax record is \"path=a\\x0a\"", 512},
        {"AGlobalPath", TarFile().member("g", 'g', TarFile::pax_record("path", "a")).file("c", ""), malformed,
         "gives all members one name", 0},
        {"AGlobalSize", TarFile().member("g", 'g', TarFile::pax_record("size", "0")).file("c", ""), malformed,
         "gives all members one name or size", 0},
        {"TwoPaxHeaders", TarFile().pax("path", "a").pax("mtime", "1").file("c", ""), malformed, "described twice",
         1024},
        {"TwoLongNames", TarFile().long_name("a").long_name("b").file("c", ""), malformed, "described twice", 1024},
        {"ALongNameAndAPath", TarFile().long_name("a").pax("path", "b").file("c", ""), malformed, "two long names",
         2048},
        {"ADescriptionWithoutMember", TarFile().long_name("a"), malformed, "ends after the description of a member",
         1024},
        {"APaxHeaderWithoutMember", TarFile().pax("path", "a"), malformed, "ends after the description of a member",
         1024},
        {"ADescriptionThatIsTooLong", TarFile().long_name(std::string(1 << 20, 'a')).file("c", ""), Errc::limit,
         "the description of a member has 1048577 bytes", 0},
        {"SomethingBehindTheEnd", one_file().ending(std::string(1024, '\0') + one_file().text()), malformed,
         "something follows its end", 2048},
        {"MuchBehindTheEnd", one_file().ending(std::string((1 << 20) + 1, '\0')), malformed,
         "1048577 bytes follow its end", 1024},
        {"HalfAHeader", one_file().ending("x"), malformed, "ends inside a tar header", 1024},
        {"NearlyAHeader", one_file().ending(std::string(511, 'x')), malformed, "ends inside a tar header", 1024},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(HostileTar, IsRefusedOverTheLimit) {
  Limits limits;
  limits.max_archive_members = 1;
  EXPECT_ERROR(read_tar(one_file().file("b", "").source(), limits), Errc::limit, "more members than the 1 allowed");
  limits.max_archive_members = 2;
  EXPECT_EQ(read_tar(one_file().file("b", "").source(), limits).members.size(), 2u);
}

TEST(Tar, ReadsTheCheckpointOf2017) {
  SKIP_WITHOUT_FIXTURES("benign");
  const auto file =
      file_source(test::fixture_path("benign/practical-pytorch__char-rnn-classification__char-rnn-classification.pt"));
  const Tar tar = read_tar(file, {});
  std::vector<std::string> names;
  for (const TarMember& member : tar.members) names.push_back(member.name);
  EXPECT_EQ(names, (std::vector<std::string>{"sys_info", "pickle", "tensors", "storages"}));
  EXPECT_EQ(tar.find("storages")->bytes, 211843u);
}

TEST(Tar, ReadsEveryRealTar) {
  SKIP_WITHOUT_FIXTURES("benign");
  int count = 0;
  for (const auto& path : test::fixture_files("benign", ".tar")) {
    const std::string text = test::read_whole_file(path);
    if (!looks_like_tar(std::as_bytes(std::span(text)))) continue;
    EXPECT_NE(read_tar(file_source(path), {}).find("storages"), nullptr) << path;
    ++count;
  }
  EXPECT_GE(count, 3);
}

// Whatever one byte is changed to, the result is a tar or an Error, nothing else.
TEST(Tar, SurvivesEveryChangeOfAByte) {
  const std::string whole = TarFile().long_name("name").file("a", "data").pax("path", "b").file("c", "more").text();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char flip : {'\x01', '\x80', '\xFF'}) {
      std::string text = whole;
      text[i] = static_cast<char>(text[i] ^ flip);
      const auto bytes = std::as_bytes(std::span(text));
      static_cast<void>(test::error_of([&] { read_tar(memory_source({bytes.begin(), bytes.end()}), {}); }));
    }
  }
}

}  // namespace
}  // namespace ballast::archive
