#include "llamacpp/tokenizer/tokenizer.hpp"

#include "llamacpp/tokenizer/job.hpp"
#include "llamacpp/tokenizer/pre_tokenizer.hpp"
#include "llamacpp/tokenizer/recipes.hpp"
#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

void add_tokenizer(const ModelFolder& folder, const Json& config, std::string_view class_name,
                   std::string_view architecture, const TokenizerOptions& options, TypedMetadata& out,
                   std::vector<Note>& notes) {
  if (!options.pre_tokenizer.empty()) require_pre_tokenizer(options.pre_tokenizer);
  const TokenizerFiles files(folder);
  TokenizerJob job{files, config, class_name, architecture, options, out, notes};
  tokenizer_recipe(class_name)(job);
  const auto pre = out.find_string("tokenizer.ggml.pre");
  if (!options.pre_tokenizer.empty() && pre != options.pre_tokenizer)
    notes.push_back({folder.path("tokenizer.json"),
                     "the tokenizer is not byte-level BPE, so the name of a pre-tokenizer changes nothing",
                     Note::Kind::remark});
}

}  // namespace ballast::llamacpp
