#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "builders/sentencepiece_file.hpp"
#include "llamacpp/tokenizer/sentencepiece.hpp"
#include "support/expect_error.hpp"

namespace ballast::test {
namespace {

using llamacpp::parse_sentencepiece;
using llamacpp::PieceModel;
using llamacpp::TokenType;
using File = SentencePieceFile;

TEST(SentencePiece, ReadsPiecesWithScoresAndTypes) {
  const auto model = parse_sentencepiece(File().piece("<unk>", 0, 2).piece("▁a", -1.5F).piece("<0x0A>", 0, 6).span());
  ASSERT_EQ(model.pieces.size(), 3u);
  EXPECT_EQ(model.pieces[0].type, TokenType::unknown);
  EXPECT_EQ(model.pieces[1].text, "▁a");
  EXPECT_EQ(model.pieces[1].score, -1.5F);
  EXPECT_EQ(model.pieces[2].type, TokenType::byte);
}

TEST(SentencePiece, TakesWhatTheUserDefinedForNormal) {
  EXPECT_EQ(parse_sentencepiece(File().piece("a", 0, 4).span()).pieces[0].type, TokenType::normal);
}

TEST(SentencePiece, HasTheDefaultsOfItsFormat) {
  const auto model = parse_sentencepiece(File().raw(File::bytes(1, "")).span());
  EXPECT_EQ(model.pieces[0].type, TokenType::normal);
  EXPECT_EQ(model.kind, PieceModel::unigram);
  EXPECT_TRUE(model.add_dummy_prefix && model.remove_extra_whitespaces);
}

TEST(SentencePiece, ReadsTheTrainerAndTheNormalizer) {
  const auto model = parse_sentencepiece(File().piece("a").trainer(2).normalizer("map", false, false).span());
  EXPECT_EQ(model.kind, PieceModel::bpe);
  EXPECT_FALSE(model.add_dummy_prefix || model.remove_extra_whitespaces);
  EXPECT_EQ(model.charsmap, (std::vector<std::uint8_t>{'m', 'a', 'p'}));
}

TEST(SentencePiece, SkipsFieldsThatItDoesNotKnow) {
  File file;
  file.raw(File::number(9, 5)).raw(File::bytes(10, "x")).raw(File::real(11, 1)).raw("\x61" + std::string(8, 'x'));
  file.raw(File::number(1, 5)).raw(File::bytes(1, File::bytes(1, "a") + File::number(3, 77) + File::number(200, 1)));
  const auto model = parse_sentencepiece(file.span());
  ASSERT_EQ(model.pieces.size(), 1u);
  EXPECT_EQ(model.pieces[0].type, TokenType::normal);
}

struct HostileFile {
  const char* what;
  std::string bytes;
  const char* message;
};

TEST(SentencePiece, RefusesBytesThatBreakTheFormat) {
  const std::string long_varint = std::string(10, '\xFF') + '\x01';
  const HostileFile files[] = {
      {"nothing at all", "", "it has no pieces"},
      {"no pieces", File().trainer(1).text(), "it has no pieces"},
      {"a text", "IQ== 0\nIg== 1\n", "not a SentencePiece model"},
      {"a key that does not end", "\x80", "ends inside the key of a field"},
      {"a key of eleven bytes", long_varint, "the key of a field has more than ten bytes"},
      {"a length of eleven bytes", "\x0a" + long_varint, "the length of a field has more than ten bytes"},
      {"a value of eleven bytes", "\x08" + long_varint, "the value of a field has more than ten bytes"},
      {"field 0", std::string("\x02\x00", 2), "a field has the number 0"},
      {"a group", "\x0b\x0c", "field 1 has wire type 3"},
      {"wire type 6", "\x0e", "field 1 has wire type 6"},
      {"a length past the end",
       "\x0a\x05"
       "a",
       "ends inside the bytes of a field"},
      {"a length of 2^64 - 1", "\x0a" + File::varint(UINT64_MAX), "ends inside the bytes of a field"},
      {"half a number", "\x0d\x01\x02", "ends inside the value of a field"},
      {"a piece that ends early", File::bytes(1, "\x0a\x05"), "ends inside the bytes of a field"},
      {"a piece that is not UTF-8", File().piece("\xFF").text(), "a piece is not UTF-8"},
      {"a broken trainer", File().piece("a").raw(File::bytes(2, "\x18")).text(), "ends inside the value of a field"},
      {"a broken normalizer", File().piece("a").raw(File::bytes(3, "\x12\x7f")).text(), "ends inside the bytes"},
  };
  for (const HostileFile& file : files) {
    SCOPED_TRACE(file.what);
    EXPECT_ERROR(parse_sentencepiece(std::as_bytes(std::span(file.bytes))), Errc::malformed, file.message);
  }
}

TEST(SentencePiece, NamesTheByteInTheFile) {
  const File file = File().piece("a").raw(File::bytes(1, "\x0a\x05"));
  EXPECT_ERROR_AT(parse_sentencepiece(file.span()), Errc::malformed, "ends inside", file.text().size());
}

TEST(SentencePiece, SurvivesEveryFileThatIsCutOrHasAByteChanged) {
  const std::string whole = File().piece("<unk>", 0, 2).piece("▁a", -1).trainer(1).normalizer("m", true, true).text();
  for (std::size_t size = 0; size < whole.size(); ++size)
    error_of([&] { parse_sentencepiece(std::as_bytes(std::span(whole).first(size))); });
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      error_of([&] { parse_sentencepiece(std::as_bytes(std::span(changed))); });
    }
  }
}

}  // namespace
}  // namespace ballast::test
