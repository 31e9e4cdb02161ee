#include "llamacpp/prepare.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "layout/dimension_range.hpp"
#include "llamacpp/tokenizer/tokenizer_json.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

void say(Checkpoint& checkpoint, std::string text) {
  checkpoint.notes.push_back({checkpoint.target, std::move(text), Note::Kind::remark});
}

void remove_all(Checkpoint& checkpoint, const std::set<std::string, std::less<>>& names) {
  checkpoint = rename_names(std::move(checkpoint), [&](std::string_view name) {
    return names.contains(name) ? std::nullopt : std::optional(std::string(name));
  });
}

void leave_out(Checkpoint& checkpoint, const std::string& name, std::string_view why) {
  say(checkpoint, fmt::format("left out {}: {}", quote(name), why));
  remove_all(checkpoint, {name});
}

// The name of the first tensor that ends so; empty if there is none.
std::string find_ending(const Checkpoint& checkpoint, std::string_view ending) {
  for (const auto& [name, tensor] : checkpoint) {
    if (name.ends_with(ending)) return std::string(name);
  }
  return {};
}

void keep_rows(Checkpoint& checkpoint, const std::string& name, std::uint64_t first, std::uint64_t end,
               std::string_view what) {
  const Tensor tensor = checkpoint.at(name);
  if (tensor.rank() == 0 || first >= end || end > tensor.shape()[0]) return;
  const std::uint64_t rows = tensor.shape()[0] - (end - first);
  if (rows == 0) return;
  say(checkpoint, fmt::format("left out {} rows of {}, which no {} has", rows, quote(name), what));
  checkpoint.tensors.replace(name, dimension_range(tensor, 0, first, end - first));
}

// gemma 3 has more rows than words.
void cut_vocabulary(Checkpoint& checkpoint, const ModelFolder& folder, const TypedMetadata& tokenizer) {
  const std::string name = find_ending(checkpoint, "embed_tokens.weight");
  if (name.empty()) return;
  std::uint64_t words = 0;
  if (folder.has("tokenizer.model")) {
    const MetadataEntry* tokens = tokenizer.find("tokenizer.ggml.tokens");
    words = tokens == nullptr ? 0 : tokens->count;
  } else if (const auto json = TokenizerJson::read(folder)) {
    const auto vocabulary = json->vocabulary();
    const Json* added = json->root().find("added_tokens");
    if (vocabulary && vocabulary->is_object()) words += vocabulary->count();
    if (added != nullptr && added->is_list()) words += added->list().size();
  }
  keep_rows(checkpoint, name, 0, words, "token");
}

// The positions of RoBERTa begin behind its padding.
void cut_positions(Checkpoint& checkpoint, const Json& config) {
  const std::string name = find_ending(checkpoint, "embeddings.position_embeddings.weight");
  const Json* padding = config.find("pad_token_id");
  if (name.empty() || padding == nullptr || !padding->is_integer()) return;
  const Tensor& tensor = checkpoint.at(name);
  if (tensor.rank() != 0) keep_rows(checkpoint, name, padding->count() + 1, tensor.shape()[0], "position");
}

// A classifier that is one matrix is the last step of one that has two.
void name_classifier(Checkpoint& checkpoint, const Json& config) {
  const Json* labels = config.find("id2label");
  if (labels == nullptr || !labels->is_object() || labels->members().empty()) return;
  const bool are_dummies = labels->members().size() == 2 && labels->members().front().second == Json("LABEL_0");
  if (are_dummies) return;
  checkpoint = rename_names(std::move(checkpoint), [](std::string_view name) -> std::optional<std::string> {
    if (name == "classifier.weight") return "classifier.out_proj.weight";
    if (name == "classifier.bias") return "classifier.out_proj.bias";
    return std::string(name);
  });
}

// Calls look(offset, bytes) with all of the tensor's bytes, piece by piece; stops at false.
template <class Look>
bool all_pieces(const Tensor& tensor, Look look) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(kPieceBytes, tensor.nbytes()));
  for (std::uint64_t at = 0; at < tensor.nbytes(); at += piece.size()) {
    const std::span some(piece.data(),
                         static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), tensor.nbytes() - at)));
    tensor.read(at, some);
    if (!look(at, some)) return false;
  }
  return true;
}

bool is_zero(const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f32);
  return all_pieces(values, [](std::uint64_t, std::span<const std::byte> bytes) {
    const std::span numbers(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
    return std::ranges::all_of(numbers, [](float number) { return number == 0; });
  });
}

bool are_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  std::vector<std::byte> other(kPieceBytes);
  return all_pieces(a, [&](std::uint64_t at, std::span<const std::byte> bytes) {
    const std::span there(other.data(), bytes.size());
    b.read(at, there);
    return std::ranges::equal(bytes, there);
  });
}

// llama.cpp has no biases for cohere 2, and published models have only zeros in them.
void leave_out_zero_biases(Checkpoint& checkpoint) {
  std::set<std::string, std::less<>> biases;
  for (const auto& [name, tensor] : checkpoint) {
    if (!name.ends_with(".bias")) continue;
    if (!is_zero(tensor))
      throw Error(Errc::unsupported,
                  fmt::format("tensor {} is not zero, and llama.cpp has no place for it", quote(name)));
    biases.emplace(name);
  }
  if (biases.empty()) return;
  say(checkpoint,
      fmt::format("left out {} biases, since all of them are zero, such as {}", biases.size(), quote(*biases.begin())));
  remove_all(checkpoint, biases);
}

void leave_out_equal_head(Checkpoint& checkpoint) {
  const std::string head = "lm_head.weight", embedding = find_ending(checkpoint, "backbone.embeddings.weight");
  if (embedding.empty() || !checkpoint.contains(head)) return;
  if (are_equal(checkpoint.at(head), checkpoint.at(embedding))) leave_out(checkpoint, head, "it is the embedding");
}

void leave_out_tied_head(Checkpoint& checkpoint, const Json& config) {
  const Json* tied = config.find("tie_word_embeddings");
  if (tied == nullptr || !tied->is_bool() || !tied->boolean()) return;
  for (const std::string name : {"lm_head.weight", "model.lm_head.weight"}) {
    if (checkpoint.contains(name)) leave_out(checkpoint, name, "config.json ties it to the embedding");
  }
}

// Models whose head is always their embedding: a head of its own would be lost.
void check_equal_head(const Checkpoint& checkpoint) {
  const std::string head = find_ending(checkpoint, "lm_head.weight");
  const std::string embedding = find_ending(checkpoint, "embed_tokens.weight");
  if (head.empty() || embedding.empty() || are_equal(checkpoint.at(head), checkpoint.at(embedding))) return;
  throw Error(Errc::unsupported,
              fmt::format("{} is not the embedding, and llama.cpp has no other head for such a model", quote(head)));
}

// T5 keeps one embedding under up to three names.
void keep_first_embedding(Checkpoint& checkpoint) {
  constexpr std::string_view kNames[] = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  std::vector<std::string> found;
  for (const auto& [name, tensor] : checkpoint) {
    if (std::ranges::find(kNames, name) != std::end(kNames)) found.emplace_back(name);
  }
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (!are_equal(checkpoint.at(found[0]), checkpoint.at(found[i])))
      throw Error(Errc::unsupported,
                  fmt::format("{} and {} differ, and llama.cpp has one embedding", quote(found[0]), quote(found[i])));
    leave_out(checkpoint, found[i], "it is the embedding, once more");
  }
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

Checkpoint prepare(Checkpoint checkpoint, const ModelFolder& folder, const Json& config, std::string_view class_name,
                   std::string_view architecture, const TypedMetadata& tokenizer) {
  if (is_one_of(architecture, {"gemma3", "gemma-embedding"})) cut_vocabulary(checkpoint, folder, tokenizer);
  if (class_name.starts_with("Roberta") || class_name.starts_with("XLMRoberta")) cut_positions(checkpoint, config);
  if (is_one_of(architecture, {"bert", "jina-bert-v2", "modern-bert"})) name_classifier(checkpoint, config);
  if (architecture == "cohere2") leave_out_zero_biases(checkpoint);
  if (is_one_of(architecture, {"gemma", "gemma2", "command-r", "cohere2"})) check_equal_head(checkpoint);
  if (architecture == "mamba") leave_out_equal_head(checkpoint);
  if (architecture == "deepseek2") leave_out_tied_head(checkpoint, config);
  if (is_one_of(architecture, {"t5", "t5encoder"})) keep_first_embedding(checkpoint);
  return checkpoint;
}

void add_answers(Checkpoint& checkpoint, const TypedMetadata& tokenizer) {
  const MetadataEntry* tokens = tokenizer.find("tokenizer.ggml.tokens");
  const bool is_tied = !checkpoint.contains("output.weight");
  const std::string name = is_tied ? "token_embd.weight" : "output.weight";
  if (tokens == nullptr || !checkpoint.contains(name)) return;
  std::optional<std::uint64_t> yes, no;
  std::uint64_t index = 0;
  for (const MetadataValue token : tokens->items()) {
    if (token.as_string() == "yes") yes = index;
    if (token.as_string() == "no") no = index;
    ++index;
  }
  const Tensor head = checkpoint.at(name);
  const std::uint64_t rows = head.rank() == 2 ? head.shape()[0] : 0;
  if (!yes || !no || *yes >= rows || *no >= rows)
    throw Error(Errc::unsupported, "this reranker has no rows for \"yes\" and \"no\"");
  say(checkpoint, "the model's card, name or class says that it is a reranker: it answers with \"yes\" or \"no\" only");
  if (!is_tied) leave_out(checkpoint, name, "a reranker has the rows of \"yes\" and \"no\" in its place");
  const Tensor answers = concatenated({dimension_range(head, 0, *yes, 1), dimension_range(head, 0, *no, 1)}, 0);
  checkpoint.tensors.insert("cls.output.weight", answers);
}

}  // namespace ballast::llamacpp
