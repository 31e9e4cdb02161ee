// What is said about files that are not what their name promises.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using test::TempDir;
using namespace std::string_literals;

Checkpoint open_text(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return open_bytes({bytes.begin(), bytes.end()}, "model.safetensors");
}

std::string tar_of(const std::string& name) {
  std::string tar(512, '\0');
  tar.replace(0, name.size(), name);
  tar.replace(124, 12, "00000000000\0"s);
  tar[156] = '0';
  tar.replace(257, 8, "ustar  \0"s);
  tar.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : tar) sum += static_cast<unsigned char>(c);
  tar.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  return tar + std::string(1024, '\0');
}

struct Stranger {
  const char* name;
  std::string bytes;
  Errc code;
  const char* sentence;
  const char* hint;
};

void PrintTo(const Stranger& s, std::ostream* out) { *out << s.name; }

class Detect : public testing::TestWithParam<Stranger> {};

TEST_P(Detect, SaysWhatAFileReallyIs) {
  const Stranger& s = GetParam();
  const auto error = test::error_of([&] { open_text(s.bytes); });
  EXPECT_TRUE(test::is_error(error, s.code, s.sentence));
  EXPECT_TRUE(test::has_hint(error, s.hint));
  EXPECT_EQ(error->where(), "model.safetensors");
}

const Stranger kStrangers[] = {
    {"AnEmptyFile", "", Errc::malformed, "the file is empty", "interrupted download"},
    {"Zeros", std::string(4096, '\0'), Errc::malformed, "begins with zeros only", "interrupted download"},
    {"OneZero", std::string(1, '\0'), Errc::malformed, "begins with zeros only", "interrupted download"},
    {"ALfsPointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", Errc::malformed,
     "a Git LFS pointer", "git lfs pull"},
    {"AWebPage", "<!DOCTYPE html>\n<html><head><title>Sign in</title>", Errc::malformed, "a web page", "login page"},
    {"AWebPageInSmallLetters", "\r\n  <!doctype HTML>", Errc::malformed, "a web page", "login page"},
    {"AWebPageWithoutADoctype", "<HTML lang=en>", Errc::malformed, "a web page", "login page"},
    {"AnErrorAsXml", "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", Errc::malformed, "a web page",
     "login page"},
    {"AnErrorAsJson", R"({"error":"Repository not found"})", Errc::unsupported, "this is JSON", ""},
    {"AZip", "PK\x03\x04\0\0\x08\x08\0\0archive/data.pkl"s, Errc::malformed, "a zip archive without its end record",
     "downloaded whole"},
    {"AnEmptyZip", "PK\x05\x06"s + std::string(18, '\0'), Errc::unsupported, "without a checkpoint in it", "data.pkl"},
    {"AGguf", "GGUF\x03\0\0\0\0\0\0\0\0\0\0\0"s, Errc::malformed, "ends inside the key count", ""},
    {"ALegacyCheckpoint", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."s, Errc::malformed, "ends",
     ""},
    {"ATar", tar_of("weights"), Errc::unsupported, "a tar archive, and not one of PyTorch's", "unpack"},
    {"AGzip", "\x1f\x8b\x08\0\0\0\0\0\0\x03"s, Errc::unsupported, "a gzip file", "unpack"},
    {"ABzip2", "BZh91AY&SY"s, Errc::unsupported, "a bzip2 file", "unpack"},
    {"AnXz",
     "\xfd"
     "7zXZ\0\0\x04"s,
     Errc::unsupported, "an xz file", "unpack"},
    {"AZstd", "\x28\xb5\x2f\xfd\x04\x58"s, Errc::unsupported, "a zstd file", "unpack"},
    {"A7z", "7z\xbc\xaf\x27\x1c\0\x04"s, Errc::unsupported, "a 7z archive", "unpack"},
    {"ANumPyFileCutShort", "\x93NUMPY\x01\0v\0{'descr'"s, Errc::malformed, "ends early", ""},
    {"AnHdf5File", "\x89HDF\r\n\x1a\n\0\0"s, Errc::unsupported, "an HDF5 file", "convert it"},
};

INSTANTIATE_TEST_SUITE_P(Strangers, Detect, testing::ValuesIn(kStrangers),
                         [](const auto& info) { return std::string(info.param.name); });

// The first bytes of a safetensors file are a length, and lengths can be any number: 640 spells the beginning of a
// pickle, 35615 that of a gzip.
TEST(Detect, TakesNoLengthForAnotherFormat) {
  const std::vector<std::size_t> lengths = {0x0280, 0x0380, 0x0480, 0x0580, 0x8b1f, 0x685A42, 0x10280};
  for (const std::size_t length : lengths) {
    const auto file = SafetensorsFile().tensor("w", "F32", {2}).pad_header_to(length);
    const auto open = [&] { return file.open(); };
    ASSERT_NO_THROW(open()) << length;
    EXPECT_EQ(open().size(), 1u);
  }
}

TEST(Detect, TakesNoNameForATar) {
  const std::string padding(300, 'x');
  for (std::size_t cut = 0; cut < 300; ++cut) {
    const auto file = SafetensorsFile().tensor(padding.substr(cut) + "ustar", "U8", {1});
    if (file.text().substr(257, 5) != "ustar") continue;
    EXPECT_NO_THROW(file.open());
    return;
  }
  FAIL() << "no name reached byte 257";
}

// An index can have a brace where a header would begin.
TEST(Detect, TakesNoIndexForAHeader) {
  const TempDir folder;
  SafetensorsFile().tensor("w", "U8", {1}).write(folder, "a.safetensors");
  const std::string index = folder.write("x.json", R"({"abcd":{},"weight_map":{"w":"a.safetensors"}})");
  EXPECT_EQ(open(index).size(), 1u);
}

TEST(Detect, GoesByContentAndNotByName) {
  const TempDir folder;
  const auto file = SafetensorsFile().tensor("w", "U8", {1});
  for (const char* name : {"model.bin", "model.gguf", "model.json", "model", "index.html"})
    EXPECT_EQ(open(file.write(folder, name)).size(), 1u);
  EXPECT_ERROR(open(folder.write("model.safetensors", "GGUF\x03")), Errc::malformed,
               "model.safetensors: the file ends inside the version");
}

TEST(Detect, SaysThatAJsonIsNoIndex) {
  const TempDir folder;
  const std::string path = folder.write("config.json", R"({"model_type": "llama"})");
  EXPECT_ERROR(open(path), Errc::malformed, "config.json: this JSON has no \"weight_map\"");
  EXPECT_HINT(open(path), "folder");
}

TEST(Detect, RefusesWhatIsNoFileAtOnce) {
  const TempDir folder;
  ASSERT_EQ(mkfifo((folder / "pipe.safetensors").c_str(), 0600), 0);
  EXPECT_ERROR(open(folder / "pipe.safetensors"), Errc::invalid_argument, "is a");
  EXPECT_ERROR(open("/dev/zero"), Errc::invalid_argument, "not a file");
  EXPECT_ERROR(open(folder / "missing.safetensors"), Errc::not_found, "missing.safetensors");
}

}  // namespace
}  // namespace ballast
