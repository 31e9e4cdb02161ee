#include "llamacpp/tokenizer/sentencepiece.hpp"

#include <bit>
#include <cmath>

#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/tokenizer/protobuf.hpp"

namespace ballast::llamacpp {
namespace {

// SentencePiece { 1 piece: string, 2 score: float, 3 type: enum, with GGUF's numbers }
SentencePieceModel::Piece read_piece(const ProtoField& message) {
  SentencePieceModel::Piece piece;
  ProtoMessage in(message);
  for (ProtoField field; in.next(field);) {
    if (field.is(1, WireType::bytes)) {
      piece.text = field.text();
      if (valid_utf8_prefix(piece.text) != piece.text.size())
        throw Error(Errc::malformed, "a piece is not UTF-8").at_byte(field.offset);
    } else if (field.is(2, WireType::fixed32)) {
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
      if (std::isnan(piece.score))
        throw Error(Errc::malformed, "the score of a piece is no number").at_byte(message.offset);
    } else if (field.is(3, WireType::varint) && field.value >= 1 && field.value <= 6) {
      piece.type = static_cast<TokenType>(field.value);
    }
  }
  if (piece.type == TokenType::user_defined) piece.type = TokenType::normal;
  return piece;
}

// TrainerSpec { 3 model_type: enum, … }
void read_trainer(const ProtoField& message, SentencePieceModel& model) {
  ProtoMessage in(message);
  for (ProtoField field; in.next(field);)
    if (field.is(3, WireType::varint) && field.value >= 1 && field.value <= 4)
      model.kind = static_cast<PieceModel>(field.value);
}

// NormalizerSpec { 2 precompiled_charsmap: bytes, 3 add_dummy_prefix: bool, 4 remove_extra_whitespaces: bool, … }
void read_normalizer(const ProtoField& message, SentencePieceModel& model) {
  ProtoMessage in(message);
  for (ProtoField field; in.next(field);) {
    if (field.is(2, WireType::bytes)) {
      const auto* begin = reinterpret_cast<const std::uint8_t*>(field.bytes.data());
      model.charsmap.assign(begin, begin + field.bytes.size());
    } else if (field.is(3, WireType::varint)) {
      model.add_dummy_prefix = field.value != 0;
    } else if (field.is(4, WireType::varint)) {
      model.remove_extra_whitespaces = field.value != 0;
    }
  }
}

}  // namespace

// ModelProto { 1 pieces: repeated SentencePiece, 2 trainer_spec, 3 normalizer_spec, … }
SentencePieceModel parse_sentencepiece(std::span<const std::byte> bytes) {
  SentencePieceModel model;
  ProtoMessage in(bytes);
  for (ProtoField field; in.next(field);) {
    if (field.is(1, WireType::bytes)) model.pieces.push_back(read_piece(field));
    if (field.is(2, WireType::bytes)) read_trainer(field, model);
    if (field.is(3, WireType::bytes)) read_normalizer(field, model);
  }
  if (model.pieces.empty()) throw Error(Errc::malformed, "not a SentencePiece model: it has no pieces");
  return model;
}

}  // namespace ballast::llamacpp
