// Vocabulary: the tokens of a tokenizer as transformers' AutoTokenizer has them: those of the model, those that were
// added to it, and the special ones that are missing in the files.
//
// It views the texts of the files that it was read from.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/name_hash.hpp"
#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

class Vocabulary {
 public:
  struct Added {
    std::string text;
    bool special = false, normalized = true;
    bool is_invented = false;  // the class of the tokenizer has it, and no file
  };

  // From tokenizer.json, or else from vocab.json or vocab.txt; and from tokenizer_config.json, added_tokens.json and
  // special_tokens_map.json.
  explicit Vocabulary(const TokenizerFiles& files);

  std::uint64_t base_size() const noexcept { return base_.size(); }  // how many tokens the model has
  const std::map<std::uint64_t, Added>& added() const noexcept { return added_; }
  const std::vector<std::string>& special_texts() const noexcept { return special_; }

  std::optional<std::uint64_t> id(std::string_view text) const;
  std::optional<std::uint64_t> added_id(std::string_view text) const;
  bool has(std::string_view text) const { return id(text).has_value(); }

  // One more than the greatest id of a token that is not invented.
  std::uint64_t end() const noexcept;
  std::uint64_t distinct_count() const;  // all texts

  // The texts of the ids below `size`; an id without a token has no data. Ids from `size` on are left out.
  std::vector<std::string_view> by_id(std::uint64_t size) const;

 private:
  void read_base(const TokenizerFiles& files);
  void read_text_lines(std::string text);
  void index_texts();
  std::optional<std::uint64_t> base_id(std::string_view text) const;
  void read_added(const TokenizerFiles& files);
  void add(const TokenizerFiles& files, Added token);

  std::deque<std::string> kept_;  // texts that no document keeps
  std::optional<TokenizerJson> vocab_json_;
  TokenizerFiles::TokenIds base_;       // by id
  std::vector<std::uint32_t> by_text_;  // positions in base_; of equal texts, the later one comes later
  std::map<std::uint64_t, Added> added_;
  NameMap<std::uint64_t> added_ids_;
  std::vector<std::string> special_;
};

}  // namespace ballast::llamacpp
