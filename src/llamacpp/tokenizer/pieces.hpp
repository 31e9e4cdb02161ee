// PieceList: the pieces of a SentencePiece model, and the tokens that other files put over them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "llamacpp/tokenizer/sentencepiece.hpp"
#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

// What happens to a token whose id is not below the size of the list.
enum class Beyond : std::uint8_t { leaves_out, refuses };

class PieceList {
 public:
  // `size` tokens; those that the model does not have are unused.
  PieceList(const TokenizerFiles& files, const SentencePieceModel& model, std::uint64_t size, Beyond beyond);

  TokenList& tokens() noexcept { return tokens_; }

  using Put = std::function<void(std::uint64_t id, std::string_view text, const Json& token)>;

  void put(std::uint64_t id, std::string_view text, float score, TokenType type);
  void put_added_tokens_json();
  // Every token of added_tokens_decoder in tokenizer_config.json, and of added_tokens in tokenizer.json.
  void each_in_settings(const Put& put) const;
  void each_in_tokenizer(const Put& put) const;
  // A special one is a control token; all others are the user's, as they are.
  Put put_as_is();

 private:
  const TokenizerFiles& files_;
  Beyond beyond_;
  TokenList tokens_;
};

}  // namespace ballast::llamacpp
