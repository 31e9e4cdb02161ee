// Detecting formats: what is said about files that are not what their name promises.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "builders/zip_file.hpp"
#include "checkpoint/recognize/detect.hpp"
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

// Little-endian numbers of 32 bits.
std::string ints(std::initializer_list<std::int32_t> numbers) {
  std::string bytes;
  for (const std::int32_t number : numbers) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(static_cast<std::uint32_t>(number) >> (8 * i));
  }
  return bytes;
}

// Make a field of a protobuf: one that holds bytes, and one that holds a small number.
std::string field(unsigned number, const std::string& bytes) {
  std::string key;
  for (unsigned rest = number * 8 + 2; true; rest >>= 7) {
    key += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    if (rest <= 0x7f) break;
  }
  return key + static_cast<char>(bytes.size()) + bytes;
}
std::string field(unsigned number, char value) { return {static_cast<char>(number * 8), value}; }

// clang-format off
const Stranger kStrangers[] = {
    {"AnEmptyFile", "", Errc::malformed, "the file is empty", "interrupted download"},
    {"Zeros", std::string(4096, '\0'), Errc::malformed, "begins with zeros only", "interrupted download"},
    {"OneZero", std::string(1, '\0'), Errc::malformed, "begins with zeros only", "interrupted download"},
    {"ALfsPointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", Errc::unsupported, "a Git LFS pointer", "git lfs pull"},
    {"AWebPage", "<!DOCTYPE html>\n<html><head><title>Sign in</title>", Errc::unsupported, "a web page", "login page"},
    {"AWebPageInSmallLetters", "\r\n  <!doctype HTML>", Errc::unsupported, "a web page", "login page"},
    {"AWebPageWithoutADoctype", "<HTML lang=en>", Errc::unsupported, "a web page", "login page"},
    {"AWebPageBehindAComment", "<!-- saved -->\n<html>", Errc::unsupported, "a web page", "login page"},
    {"AWebPageAsXml", "<?xml version=\"1.0\"?>\n<!DOCTYPE html>\n<html xmlns=\"x\">", Errc::unsupported, "a web page", "login page"},
    {"AnErrorAsXml", "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", Errc::unsupported, "an XML file", "got an error"},
    {"AnXml", "<?xml version=\"1.0\"?><net name=\"model\" version=\"11\">", Errc::unsupported, "an XML file", "holds the weights"},
    {"AnErrorAsJson", R"({"error":"Repository not found"})", Errc::unsupported, "this is JSON", ""},
    {"AJsonArray", R"([{"a": 1}, 2])", Errc::unsupported, "this is JSON", "holds the weights"},
    {"AReadme", "# TinyLlama\n\nA model.\n", Errc::unsupported, "a text file, not a checkpoint: it begins with \"# TinyLlama\"", "holds the weights"},
    {"AModelCard", "---\nlicense: mit\n---\n# Model\n", Errc::unsupported, "begins with \"---\"", ""},
    {"ATextOfUmlauts", std::string(511, 'x') + "\xc3\xa4\xc3\xa4\xc3\xa4", Errc::unsupported, "a text file", ""},
    {"ATextWithAByteOrderMark", "\xef\xbb\xbf""epoch,loss\n1,2\n", Errc::unsupported, "begins with \"epoch,loss\"", ""},
    {"ATemplate", "{{ bos_token }}{% for m in messages %}", Errc::unsupported, "a text file", ""},
    {"AWord", "hello world", Errc::unsupported, "begins with \"hello world\"", ""},
    {"ALatexSection", "\\section{\"Introduction\"}", Errc::unsupported, "a text file", ""},
    {"AZip", "PK\x03\x04\0\0\x08\x08\0\0archive/data.pkl"s, Errc::malformed, "a zip archive without its end record", "downloaded completely"},
    {"AnEmptyZip", "PK\x05\x06"s + std::string(18, '\0'), Errc::unsupported, "without a checkpoint in it", "data.pkl"},
    {"AProgramThatEndsAsAZip", "\x7f""ELF and more"s + test::ZipFile().stored("a", "data").text(), Errc::malformed, "ends as a zip archive, but does not begin as one", "two programs"},
    {"AGguf", "GGUF\x03\0\0\0\0\0\0\0\0\0\0\0"s, Errc::malformed, "ends inside the key count", ""},
    {"ASwappedGguf", "FUGG\0\0\0\x03"s, Errc::unsupported, "a GGUF whose bytes are swapped", "converters"},
    {"AGgml", "lmgg\0\x7d\0\0"s, Errc::unsupported, "a ggml file, older than GGUF", "converters"},
    {"AGgmf", "fmgg\x01\0\0\0"s, Errc::unsupported, "ggmf", "converters"},
    {"AGgjt", "tjgg\x03\0\0\0"s, Errc::unsupported, "ggjt", "converters"},
    {"AGgla", "algg\x01\0\0\0"s, Errc::unsupported, "a LoRA of ggml", "converters"},
    {"ALegacyCheckpoint", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."s, Errc::malformed, "ends", ""},
    {"ATar", tar_of("weights"), Errc::unsupported, "a tar archive, and not one of PyTorch's", "unpack"},
    {"AGzip", "\x1f\x8b\x08\0\0\0\0\0\0\x03"s, Errc::unsupported, "a gzip file", "unpack"},
    {"ABzip2", "BZh91AY&SY"s, Errc::unsupported, "a bzip2 file", "unpack"},
    {"AnXz", "\xfd""7zXZ\0\0\x04"s, Errc::unsupported, "an xz file", "unpack"},
    {"AZstd", "\x28\xb5\x2f\xfd\x04\x58"s, Errc::unsupported, "a zstd file", "unpack"},
    {"AnLz4", "\x04\x22\x4d\x18\x64\x40"s, Errc::unsupported, "an lz4 file", "unpack"},
    {"A7z", "7z\xbc\xaf\x27\x1c\0\x04"s, Errc::unsupported, "a 7z archive", "unpack"},
    {"ARar", "Rar!\x1a\x07\x01\0"s, Errc::unsupported, "a RAR archive", "unpack"},
    {"ANumPyFileCutShort", "\x93NUMPY\x01\0v\0{'descr'"s, Errc::malformed, "ends early", ""},
    {"AnHdf5File", "\x89HDF\r\n\x1a\n\0\0"s, Errc::unsupported, "an HDF5 file", "convert it"},
    {"ATfLite", "\x1c\0\0\0TFL3\x14\0\x20\0"s, Errc::unsupported, "a TensorFlow Lite model", "export"},
    {"AnOnnx", field(1, '\x08') + field(2, "pytorch") + field(3, "2.1.0") + field(7, "\x0a\x02xy") + field(8, "\x10\x11"), Errc::unsupported, "an ONNX model", "export"},
    {"AnOnnxCutShort", field(1, '\x08') + field(2, "pytorch") + field(3, "2.1.0") + "\x3a\xff\xff\x7f\x0a"s, Errc::unsupported, "an ONNX model", "export"},
    {"ACoreMl", field(1, '\x04') + field(2, "\x0a\x02\x0a\x01") + field(500, "\x0a\x01x"), Errc::unsupported, "a CoreML model", "export"},
    {"ASavedModel", field(1, '\x01') + field(2, "\x0a\x02\x1a\x00"s), Errc::unsupported, "a TensorFlow SavedModel", "export"},
    {"AGraph", field(1, field(1, "input") + field(2, "Placeholder")) + field(1, field(1, "w") + field(2, "Const")), Errc::unsupported, "a TensorFlow graph", "export"},
    {"ASentencePiece", field(1, field(1, "<unk>") + "\x15\0\0\0\0\x18\x02"s) + field(1, field(1, "<s>") + "\x15\0\0\0\0"s), Errc::unsupported, "a SentencePiece tokenizer", "weights"},
    {"ACaffe", field(1, "VGG") + field(100, field(1, "conv")), Errc::unsupported, "a Caffe model", "export"},
    {"ATensorFlowIndex", std::string(40, '\x05') + "\x57\xfb\x80\x8b\x24\x75\x47\xdb", Errc::unsupported, "a TensorFlow checkpoint", "convert it"},
    {"AMessagePack", "\x81\xa6params\x82\xa1""a\xc7\x10\x01"s + std::string(16, '\x93'), Errc::unsupported, "a MessagePack file", "export"},
    {"ALlama2C", ints({288, 768, 6, 6, 6, 32000, 256}) + std::string(64, '\x3f'), Errc::unsupported, "a model of llama2.c", "export"},
    {"ALlama2CWithoutTies", ints({512, 1376, 8, 8, 4, -32000, 1024}) + std::string(64, '\x3f'), Errc::unsupported, "a model of llama2.c", "export"},
    {"ALlama2COfVersion1", "24ka" + ints({1, 288}), Errc::unsupported, "a model of llama2.c", "export"},
    {"ADarknet", ints({0, 2, 5, 32013312, 0}) + std::string(64, '\x3f'), Errc::unsupported, "weights of Darknet", "convert it"},
    {"ALuaTensor", ints({4, 1, 3}) + "V 1" + ints({17}) + "torch.FloatTensor", Errc::unsupported, "a file of Lua Torch", "convert it"},
    {"ALuaTable", ints({3, 1, 2, 2, 5}) + "model", Errc::unsupported, "a file of Lua Torch", "convert it"},
    {"ACTranslate2", ints({6}) + "\x10\0TransformerSpec\0\x03\0\0\0"s, Errc::unsupported, "a model of CTranslate2", "convert it"},
    {"AnElf", "\x7f""ELF\x02\x01\x01\0"s, Errc::unsupported, "a program or a library (ELF)", "weights"},
    {"APng", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"s, Errc::unsupported, "a PNG image", ""},
    {"AJpeg", "\xff\xd8\xff\xe0\0\x10JFIF"s, Errc::unsupported, "a JPEG image", ""},
    {"APdf", "%PDF-1.5\n%\xd0\xd4\xc5\xd8\n", Errc::unsupported, "a PDF document", ""},
    {"AnSqliteDatabase", "SQLite format 3\0\x10"s, Errc::unsupported, "an SQLite database", ""},
    {"AStranger", "\xde\xad\xbe\xef\x01\x02\x03\x04\x05\x06\x07\x7f\x09 abcdef", Errc::unsupported, R"(not a format that Ballast knows: it begins with "\xde\xad\xbe\xef\x01\x02\x03\x04\x05\x06\x07\x7f\x09 ab")", "Ballast reads safetensors"},
    {"AFewLetters", "abc", Errc::unsupported, "a text file, not a checkpoint: it begins with \"abc\"", ""},
    {"AFewBytes", "\x01\x02", Errc::malformed, "a file of 2 bytes is too short", "interrupted download"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Strangers, Detect, testing::ValuesIn(kStrangers),
                         [](const auto& info) { return std::string(info.param.name); });

// The first bytes of a safetensors file are a length, and lengths can be any number: the bytes of 640 are the beginning
// of a pickle, those of 35615 that of a gzip.
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

// A damaged safetensors file must not be called an unknown format: the safetensors reader says what is wrong with it.
TEST(Detect, KnowsADamagedSafetensorsFile) {
  const std::string good = SafetensorsFile().tensor("w", "F32", {2}).text();
  // The ninth byte is the first of a header, whatever the length says.
  for (const std::size_t byte : {4u, 5u, 6u, 7u}) {
    std::string bad = good;
    bad[byte] = '\x81';
    EXPECT_ERROR(open_text(bad), Errc::limit, "the header is said to have");
  }
  // The length is right, and the bytes that it counts end as a header ends.
  std::string bad = good;
  bad[8] = '[';
  EXPECT_ERROR(open_text(bad), Errc::malformed, "a header must begin with '{'");
  // The file is cut short.
  for (const std::size_t size : {4u, 5u, 6u, 7u})
    EXPECT_ERROR(open_text(good.substr(0, size)), Errc::malformed, "too short");
  for (std::size_t size = 8; size < good.size(); ++size) {
    const auto error = test::error_of([&] { open_text(good.substr(0, size)); });
    ASSERT_TRUE(error.has_value()) << size;
    EXPECT_EQ(error->code(), Errc::malformed) << size;
    EXPECT_TRUE(test::has_hint(error, "interrupted download")) << size;
  }
}

TEST(Detect, TakesNoUnknownFormatForADamagedSafetensorsFile) {
  EXPECT_ERROR(open_text("\xff\xff\xff\xff\xff\xff\xff\xff|nothing"), Errc::unsupported,
               "not a format that Ballast knows");
  EXPECT_ERROR(open_text("\xff\xff\xff\xff\xff\xff\xff\xff{nothing"), Errc::unsupported,
               "not a format that Ballast knows");
  EXPECT_ERROR(open_text("a text.\n{\"and\": 1}"), Errc::unsupported, "a text file");
  EXPECT_ERROR(open_text("\x08\0\0\0\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\x09"s), Errc::unsupported, "not a format");
  EXPECT_ERROR(open_text("\x01\x02\x03\x04\x05\x06\x07\x08"), Errc::unsupported, "not a format that Ballast knows");
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

TEST(Detect, SaysThatAJsonIsNotAnIndex) {
  const TempDir folder;
  const std::string path = folder.write("config.json", R"({"model_type": "llama"})");
  EXPECT_ERROR(open(path), Errc::unsupported, "config.json: this JSON has no \"weight_map\"");
  EXPECT_HINT(open(path), "folder");
}

TEST(Detect, RefusesAtOnceWhatIsNotAFile) {
  const TempDir folder;
  ASSERT_EQ(mkfifo((folder / "pipe.safetensors").c_str(), 0600), 0);
  EXPECT_ERROR(open(folder / "pipe.safetensors"), Errc::invalid_argument, "is a");
  EXPECT_ERROR(open("/dev/zero"), Errc::invalid_argument, "not a file");
  EXPECT_ERROR(open(folder / "missing.safetensors"), Errc::not_found, "missing.safetensors");
}

TEST(Detect, TakesForAContainerOnlyWhatCanHoldFiles) {
  const auto is_container = [](const std::string& text) {
    return begins_like_a_container(std::as_bytes(std::span(text)));
  };
  const std::string empty_zip = test::ZipFile().text(), zip = test::ZipFile().stored("a", "data").text();
  ASSERT_EQ(empty_zip.size(), 22u);
  EXPECT_TRUE(is_container(empty_zip));
  EXPECT_TRUE(is_container(zip.substr(0, 23)));
  EXPECT_FALSE(is_container(zip.substr(0, 21)));
  EXPECT_TRUE(is_container(tar_of("a")));
  EXPECT_FALSE(is_container(std::string(600, 'x')));
  EXPECT_FALSE(is_container(SafetensorsFile().tensor("w", "F32", {2}).text()));
}

TEST(Detect, TakesForAnOldPickleOnlyWhatBeginsAsPythonWritesOne) {
  EXPECT_EQ(open_text("(I1\nt.").size(), 0u);
  EXPECT_FALSE(open_text("(I1\nt.").values.empty());
  for (const std::string& other : {"\x8c\x01x."s, "C\x01x."s, "Pid\n."s})
    EXPECT_TRUE(test::error_of([&] { open_text(other); })) << testing::PrintToString(other);
}

TEST(Detect, SaysThatAnOldPickleIsTooLargeForTheLimitsThatWereSet) {
  OpenOptions options;
  options.limits.max_pickle_nodes = 100;
  const std::string text = "(" + std::string(200, 'N') + "t.";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_ERROR(open_bytes({bytes.begin(), bytes.end()}, "file", options), Errc::limit, "more than 100 objects");
}

}  // namespace
}  // namespace ballast
