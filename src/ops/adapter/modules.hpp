// Which modules of a base an adapter's configuration means.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>

namespace re2 {
class RE2;
}

namespace ballast::adapter {

// The words of a field that is a list of strings, or one string. Errc::malformed for anything else.
std::vector<std::string> words_of(const AdapterConfig& config, std::string_view field);

// What PEFT takes as embeddings that an adapter targets.
bool is_embedding(std::string_view module);  // its last segment is embed_tokens or lm_head

// What a module is, told by the last segment of its name, as the architectures of transformers and others call theirs.
bool is_word_embedding(std::string_view module);   // vectors of words
bool is_lookup_table(std::string_view module);     // those, and of positions: an nn.Embedding
bool may_be_output_head(std::string_view module);  // vectors to words, if it has the shape of word embeddings

// target_modules, exclude_modules, layers_to_transform and layers_pattern, over names without "base_model.model.". A
// list means modules by the ends of their names, a string is an expression over whole names.
class TargetModules {
 public:
  explicit TargetModules(const AdapterConfig& config);
  ~TargetModules();

  bool is_known() const { return is_known_; }  // false for "all-linear", which only a model can tell
  bool contains(std::string_view module) const;

 private:
  struct Pattern {
    std::vector<std::string> ends;
    std::unique_ptr<re2::RE2> expression;
    bool matches(std::string_view module) const;
  };
  static Pattern pattern_of(const AdapterConfig& config, std::string_view field);
  bool is_transformed(std::string_view module) const;

  Pattern targets_, excluded_;
  std::vector<std::string> layers_, layer_patterns_;
  bool is_known_ = true;
};

// modules_to_save: whether the module is one of those, by the end of its name, as PEFT has it.
bool is_saved_whole(const std::vector<std::string>& modules_to_save, std::string_view module);

}  // namespace ballast::adapter
