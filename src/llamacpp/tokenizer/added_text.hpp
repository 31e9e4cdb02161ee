// AddedTokenDecoder: the text of an added token as it comes out of its own tokenizer, encoded and decoded again.
// llama.cpp takes this text for the token.
//
// It views the texts of the files that it was made from. One thread at a time: it counts what it has done.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

struct DecoderStep {
  enum class Kind : std::uint8_t { byte_level, byte_fallback, strip, replace, clean_up };
  Kind kind;
  std::string_view from{}, to{};      // what is stripped, or replaced by what
  std::uint64_t start = 0, stop = 0;  // how often it is stripped
};

class AddedTokenDecoder {
 public:
  // The decoder of tokenizer.json, if it has one, and clean_up_tokenization_spaces. Errc::limit if there are more steps
  // than any tokenizer has.
  explicit AddedTokenDecoder(const TokenizerFiles& files);

  // Almost every token is its own text. Errc::limit if a text grows to more than 64 KiB, or if all texts together take
  // more work than those of any real tokenizer.
  std::string decoded(std::string_view token);

 private:
  void add_steps(const Json& decoder);
  void add_step(DecoderStep step);
  void charge(std::uint64_t work);
  std::string after(const DecoderStep& step, std::string token);

  const TokenizerFiles& files_;
  std::vector<DecoderStep> steps_;
  std::uint64_t work_ = 0;
};

}  // namespace ballast::llamacpp
