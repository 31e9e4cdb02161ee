// Which modules of a model turn words into vectors, and vectors into words: told by their names, as the architectures
// of transformers and others call theirs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <ballast/state_dict.hpp>

namespace ballast::peft {

// By the last segment of a module's name:
bool is_embedding(std::string_view module);        // what PEFT takes as one: embed_tokens or lm_head
bool is_word_embedding(std::string_view module);   // vectors of words
bool is_lookup_table(std::string_view module);     // vectors of words or of positions: an nn.Embedding
bool may_be_output_head(std::string_view module);  // vectors to words, if it has the shape of word embeddings

// The embeddings and heads of a PeftModel's state dict.
class Embeddings {
 public:
  explicit Embeddings(const StateDict& state);

  bool empty() const { return words_.empty() && heads_.empty(); }
  bool have_rows(std::uint64_t count) const;
  bool contain(std::string_view name) const;

 private:
  std::map<std::string, Shape, std::less<>> words_, heads_;  // modules, with the shapes of their weights
};

}  // namespace ballast::peft
