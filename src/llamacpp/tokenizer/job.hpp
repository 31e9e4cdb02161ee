// TokenizerJob: what every recipe for a tokenizer works with: the files and config.json, and the metadata that it
// writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llamacpp/tokenizer/special_tokens.hpp"
#include "llamacpp/tokenizer/token_list.hpp"
#include "llamacpp/tokenizer/tokenizer.hpp"
#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

struct TokenizerJob {
  const TokenizerFiles& files;
  const Json& config;  // as the converter sees it
  std::string_view class_name, architecture;
  const TokenizerOptions& options;
  TypedMetadata& out;
  std::vector<Note>& notes;
  std::uint64_t vocab_multiple = 1;  // vocab_size is rounded up to a multiple of this

  // An integer of config.json, or nothing.
  std::optional<std::uint64_t> number(std::string_view key) const;
  // vocab_size, rounded up. Errc::limit if no vocabulary is so large.
  std::optional<std::uint64_t> vocab_size() const;
  // `size`, if a vocabulary may be so large.
  std::uint64_t checked_size(std::uint64_t size) const;

  template <class T>
  void set(std::string_view key, const T& value) {
    out.set(MetadataEntry::of(std::string("tokenizer.ggml.").append(key), value));
  }
  // The model, the pre-tokenizer, the tokens, their scores (if wanted) and their types. An empty `pre` is not written.
  void write_tokens(std::string_view model, std::string_view pre, const TokenList& tokens, bool with_scores = true);
  void write_special(SpecialOptions how) { read_special_tokens(files, std::move(how), notes).write(out); }
  void write_type_count();    // type_vocab_size
  void write_prefix_space();  // add_prefix_space of tokenizer_config.json, if it says so
};

}  // namespace ballast::llamacpp
