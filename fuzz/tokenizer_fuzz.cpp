// Tokenizers: whatever the bytes of tokenizer.model, tokenizer.json or tokenizer_config.json are, they give as many
// types as tokens, with the ids of special tokens among them, or an Error.
//
// The first byte says which of the files the rest is; the others are small and right.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/source.hpp>

#include "builders/sentencepiece_file.hpp"
#include "llamacpp/tokenizer/tokenizer.hpp"

namespace {

using namespace ballast;

constexpr std::uint64_t kVocabSize = 40;

void require(bool condition, const char* what, const std::string& why = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

// One file has the input; three others lie beside it.
class FewFiles final : public Files {
 public:
  FewFiles(std::string name, std::string_view text) : name_(std::move(name)), text_(text) {}

  SourcePtr open(const std::string& name) const override {
    const std::string text = content(name);
    const auto bytes = std::as_bytes(std::span(text));
    return memory_source({bytes.begin(), bytes.end()}, name);
  }
  bool exists(const std::string& name) const override { return !content(name).empty(); }
  std::optional<std::vector<std::string>> list(const std::string& name) const override {
    return name == "m" ? std::optional(std::vector<std::string>{name_}) : std::nullopt;
  }

 private:
  std::string content(const std::string& name) const {
    if (name == "m/" + name_) return std::string(text_);
    if (name == "m/config.json") return R"({"vocab_size":40,"eos_token_id":2,"pad_token_id":-1})";
    if (name == "m/tokenizer.json" && name_ == "tokenizer_config.json")
      return R"({"model":{"vocab":{"a":0,"b":1},"merges":["a b"]},"pre_tokenizer":{"type":"ByteLevel"},"added_tokens":[{"id":2,"content":"</s>"}]})";
    return {};
  }

  std::string name_;
  std::string_view text_;
};

std::uint64_t count_of(const TypedMetadata& metadata, std::string_view key) {
  const MetadataEntry* entry = metadata.find(key);
  return entry ? entry->count : 0;
}

void check_metadata(const TypedMetadata& metadata) {
  const std::uint64_t count = count_of(metadata, "tokenizer.ggml.tokens");
  require(count == count_of(metadata, "tokenizer.ggml.token_type"), "more or fewer types than tokens");
  const std::uint64_t scores = count_of(metadata, "tokenizer.ggml.scores");
  require(scores == 0 || scores == count, "more or fewer scores than tokens");
  for (const MetadataEntry& entry : metadata) require(entry.key.starts_with("tokenizer."), "a key of something else");
}

void read(const FilesPtr& files, const char* class_name, const char* architecture) {
  OpenOptions open;
  open.files = files;
  const llamacpp::ModelFolder folder("m", open);
  Json config;
  config.set("vocab_size", kVocabSize);
  TypedMetadata metadata;
  std::vector<Note> notes;
  try {
    llamacpp::add_tokenizer(folder, config, class_name, architecture, {}, metadata, notes);
    check_metadata(metadata);
  } catch (const Error& error) {
    require(error.code() == Errc::malformed || error.code() == Errc::unsupported || error.code() == Errc::mismatch ||
                error.code() == Errc::not_found || error.code() == Errc::limit,
            "an odd kind of error", error.what());
    require(!error.message().empty() && !error.where().empty(), "an error that names no file", error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto file = [&](const char* name) { return std::make_shared<FewFiles>(name, text); };
  switch (data[0] % 3) {
    case 0:
      read(file("tokenizer.model"), "LlamaForCausalLM", "llama");
      read(file("tokenizer.model"), "InternLM2ForCausalLM", "internlm2");
      read(file("spiece.model"), "T5ForConditionalGeneration", "t5");
      read(file("sentencepiece.bpe.model"), "XLMRobertaModel", "bert");
      break;
    case 1:
      read(file("tokenizer.json"), "LlamaForCausalLM", "llama");
      read(file("tokenizer.json"), "Qwen2MoeForCausalLM", "qwen2moe");
      read(file("tokenizer.json"), "BertModel", "bert");
      read(file("tokenizer.json"), "XLMRobertaModel", "bert");
      read(file("tokenizer.json"), "Gemma4ForCausalLM", "gemma4");
      break;
    default:
      read(file("tokenizer_config.json"), "GPT2LMHeadModel", "gpt2");
      read(file("tokenizer_config.json"), "ModernBertModel", "modern-bert");
      break;
  }
  return 0;
}
