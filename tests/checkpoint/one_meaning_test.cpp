// One file, one meaning: a file that two programs would read as two things is refused, and scan looks at both.
#include <gtest/gtest.h>

#include <ballast/open.hpp>
#include <ballast/scan.hpp>

#include <algorithm>
#include <random>
#include <string>

#include <fmt/format.h>

#include "builders/gguf_file.hpp"
#include "builders/safetensors_file.hpp"
#include "builders/torch_file.hpp"
#include "builders/zip_file.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using namespace std::string_literals;
using test::SafetensorsFile;
using test::TempDir;
using test::ZipFile;

Checkpoint open_whole(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return open_bytes({bytes.begin(), bytes.end()}, "file");
}

std::string evil_pickle() {
  return "\x80\x02"
         "cos\nsystem\n(X\x04\0\0\0truetR."s;
}

std::string evil_zip() {
  return ZipFile().stored("archive/data.pkl", evil_pickle()).stored("archive/version", "3\n").text();
}

// Makes the first 512 bytes the header of a tar whose first member has no bytes, and uses only bytes that a JSON string
// can have. The first 100 bytes, the name, stay as they are.
std::string as_tar_too(std::string text) {
  constexpr std::size_t kBegin = 100, kChecksum = 148, kType = 156, kEnd = 512;
  EXPECT_GE(text.size(), kEnd);
  text.replace(kBegin, kEnd - kBegin, std::string(kEnd - kBegin, ' '));
  for (const std::size_t number : {100u, 108u, 116u}) text.replace(number, 7, "0000000");
  text.replace(124, 11, "00000000000");
  text.replace(136, 11, "00000000000");
  text[kType] = '0';
  unsigned sum = 0;
  for (const char c : text.substr(0, kEnd)) sum += static_cast<unsigned char>(c);
  return text.replace(kChecksum, 7, fmt::format("{:06o} ", sum));
}

// A header with a text of 600 spaces from byte 60 or so on.
std::string safetensors_with_room() {
  return SafetensorsFile(R"({"__metadata__":{"room":")" + std::string(600, ' ') + R"("}})").text();
}

struct Ambiguous {
  const char* name;
  std::string text;
  const char* sentence;
};

void PrintTo(const Ambiguous& a, std::ostream* out) { *out << a.name; }

class TwoMeanings : public testing::TestWithParam<Ambiguous> {};

TEST_P(TwoMeanings, AreRefusedByOpen) {
  EXPECT_ERROR(open_whole(GetParam().text), Errc::malformed, GetParam().sentence);
}

TEST_P(TwoMeanings, AreAFindingOfScan) {
  const TempDir dir;
  const ScanReport report = scan(dir.write("file", GetParam().text));
  EXPECT_TRUE(std::ranges::any_of(report.findings, [](const ScanFinding& finding) {
    return finding.what.find(GetParam().sentence) != std::string::npos;
  }));
}

INSTANTIATE_TEST_SUITE_P(
    OneMeaning, TwoMeanings,
    testing::Values(
        Ambiguous{"ATarInAPickle",
                  as_tar_too("\x80\x03"
                             "B\xf9\x02\0\0"s +
                             std::string(1024, ' ') + "."),
                  "begins as a pickle and begins as a tar archive"},
        Ambiguous{"ATarInSafetensors", as_tar_too(safetensors_with_room()),
                  "begins as a safetensors file and begins as a tar archive"},
        Ambiguous{"ATarInAGguf", as_tar_too(test::GgufBuilder().kv("room", std::string(600, ' ')).text()),
                  "begins as a GGUF file and begins as a tar archive"},
        Ambiguous{"AZipBehindSafetensors", SafetensorsFile().tensor("w", "U8", {16}).text() + evil_zip(),
                  "begins as a safetensors file and ends as a zip archive"},
        Ambiguous{"AZipWithACommentInSafetensors",
                  SafetensorsFile().tensor("w", "U8", {evil_zip().size() + 1}, 0, evil_zip().size() + 1).text() +
                      evil_zip() + "!",
                  "begins as a safetensors file and ends as a zip archive"},
        Ambiguous{"AZipBehindAPickle", "\x80\x02N."s + evil_zip(), "begins as a pickle and ends as a zip archive"},
        Ambiguous{"AZipBehindAGguf", test::GgufBuilder().kv("a", "b").text() + evil_zip(),
                  "begins as a GGUF file and ends as a zip archive"},
        Ambiguous{"AZipBehindNothingKnown", "#!/bin/sh\nexit\n" + evil_zip(),
                  "ends as a zip archive, but does not begin as one"},
        Ambiguous{"ALengthThatSpellsAZip", "PK\x03\x04\0\0\0\0{}"s,
                  "begins as a safetensors file and begins as a zip"}),
    [](const auto& info) { return info.param.name; });

TEST(OneMeaning, ScanLooksIntoEachReading) {
  const TempDir dir;
  for (const std::string& text : {SafetensorsFile().tensor("w", "U8", {16}).text() + evil_zip(),
                                  "#!/bin/sh\nexit\n" + evil_zip(), "\x80\x02N."s + evil_zip()}) {
    const ScanReport report = scan(dir.write("file", text));
    EXPECT_TRUE(std::ranges::any_of(
        report.globals, [](const Global& global) { return global.module == "os" && global.name == "system"; }));
  }
}

// A signature may lie in the data of a tensor by chance: alone it says nothing.
TEST(OneMeaning, ASignatureAloneInWeightsIsNotASecondMeaning) {
  const std::string signatures[] = {"PK\x01\x02"s,   "PK\x03\x04"s,        "PK\x05\x06"s,    "PK\x06\x06"s,
                                    "PK\x06\x07"s,   "ustar\0"s,           "GGUF"s,          "\x93NUMPY"s,
                                    "\x80\x02."s,    "\x80\x04."s,         "cos\nsystem\n"s, "BZh9"s,
                                    "\x1f\x8b\x08"s, "7z\xbc\xaf\x27\x1c"s};
  const TempDir dir;
  std::mt19937 random(17);
  std::string weights(4096, '\0');
  for (char& c : weights) c = static_cast<char>(random());
  for (const std::string& background : {weights, std::string(4096, '\0')}) {
    for (const std::string& signature : signatures) {
      for (const std::size_t place :
           {std::size_t{0}, std::size_t{257}, background.size() - 22, background.size() - signature.size()}) {
        std::string data = background;
        data.replace(place, std::min(signature.size(), data.size() - place), signature.substr(0, data.size() - place));
        const std::string text =
            SafetensorsFile(R"({"w":{"dtype":"U8","shape":[4096],"data_offsets":[0,4096]}})").text() + data;
        EXPECT_EQ(open_whole(text).size(), 1u);
        EXPECT_TRUE(scan(dir.write("file", text)).findings.empty()) << place;
      }
    }
  }
}

TEST(OneMeaning, RealFilesWithTwoMeaningsAreRefused) {
  for (const char* name : {"poly_pickle_tar.pt", "poly_safetensors_zip_comment.safetensors"})
    EXPECT_ERROR(open(test::vector_path("found/"s + name)), Errc::malformed, "the file begins as");
  EXPECT_ERROR(open(test::vector_path("found/case_only.pt")), Errc::malformed, "takes member");
  EXPECT_ERROR(open(test::vector_path("found/folder_member.npz")), Errc::malformed, "is called a folder");
}

}  // namespace
}  // namespace ballast
