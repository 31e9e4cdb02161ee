#include "llamacpp/check_model.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/names/numbers.hpp"

namespace ballast::llamacpp {
namespace {

class ModelCheck {
 public:
  ModelCheck(const Checkpoint& model, const ModelConfig& config, std::uint64_t tokens)
      : model_(model),
        config_(config),
        architecture_(*names::find_architecture(config.architecture)),
        numbers_(model, architecture_, options_),
        tokens_(tokens) {}

  void run() const {
    check_keys();
    check_embedding();
    check_head();
    std::map<std::string_view, std::set<std::uint64_t>> blocks;
    for (const auto& [name, tensor] : model_) {
      check_shape(name, tensor);
      note_block(name, blocks);
    }
    // Blocks that predict further tokens may be missing: nothing but speed depends on them.
    const std::uint64_t all = numbers_.find("block_count").value_or(0), main = numbers_.main_blocks();
    check_blocks(blocks["blk."], main, all);
    check_blocks(blocks["enc.blk."], main, all);
    const std::uint64_t decoder = numbers_.find("decoder_block_count").value_or(0);
    check_blocks(blocks["dec.blk."], decoder, decoder);
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw Error(Errc::malformed, text).in(model_.target).hint("does config.json belong to these weights?");
  }

  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_.gguf, name); }

  bool says(std::string_view name) const { return model_.typed_metadata.contains(key(name)); }

  // What llama.cpp looks for in every model.
  void check_keys() const {
    for (const std::string_view name : {"context_length", "embedding_length", "block_count"}) {
      if (!says(name)) fail(fmt::format("config.json does not say what becomes {}", key(name)));
    }
    if (!says("attention.layer_norm_epsilon") && !says("attention.layer_norm_rms_epsilon"))
      fail(fmt::format("config.json does not say what becomes {}", key("attention.layer_norm_epsilon")));
  }

  void check_embedding() const {
    const Tensor* embedding = model_.find("token_embd.weight");
    if (embedding == nullptr) fail("there is no embedding of tokens");
    const Shape& shape = embedding->shape();
    if (shape.rank() != 2) fail(fmt::format("the embedding of tokens has the shape {}", to_string(shape)));
    if (shape[0] != tokens_)
      fail(fmt::format("the embedding has {} rows, and the tokenizer has {} tokens", shape[0], tokens_));
    const auto width = numbers_.find("embedding_length");
    if (width != shape[1])
      fail(fmt::format("the embedding has {} columns, and {} is {}", shape[1], key("embedding_length"),
                       width.value_or(0)));
  }

  // Without a head, llama.cpp takes the embedding for it.
  void check_head() const {
    const Json* tied = config_.find("tie_word_embeddings");
    const bool is_untied = tied != nullptr && tied->is_bool() && !tied->boolean();
    const bool speaks = config_.class_name.ends_with("ForCausalLM") || config_.class_name.ends_with("LMHeadModel");
    const bool has_head = model_.contains("output.weight") || model_.contains("cls.output.weight");
    if (is_untied && speaks && !has_head)
      fail("config.json says that the head is not the embedding, and there is no head");
  }

  void check_shape(std::string_view name, const Tensor& tensor) const {
    const Shape& shape = tensor.shape();
    const bool is_whole = !shape.empty() && std::ranges::find(shape, std::uint64_t{0}) == shape.end();
    if (!is_whole || shape.rank() > 3) fail(fmt::format("tensor {} has the shape {}", quote(name), to_string(shape)));
    const bool is_real = is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
    if (!is_real)
      throw Error(Errc::unsupported, fmt::format("tensor {} is {}, which is no type of weights", quote(name),
                                                 ballast::name(tensor.dtype())));
    const auto experts = numbers_.find("expert_count");
    if (name.find("_exps.") != std::string_view::npos && experts && shape[0] != *experts)
      fail(fmt::format("tensor {} has {} experts, and {} is {}", quote(name), shape[0], key("expert_count"), *experts));
    check_keys_of_attention(name, shape);
  }

  // The rows of keys are those of their heads.
  void check_keys_of_attention(std::string_view name, const Shape& shape) const {
    const auto length = numbers_.find("attention.key_length");
    if (!name.ends_with(".attn_k.weight") || !length || architecture_.gguf == "deepseek2") return;
    const auto block = number_behind(name, "blk.");
    if (!block) return;
    const std::uint64_t heads = numbers_.heads_of_keys(*block);
    if (shape[0] / *length != heads || shape[0] % *length != 0)
      fail(fmt::format("tensor {} has {} rows, no {} heads of {}", quote(name), shape[0], heads, *length));
  }

  static std::optional<std::uint64_t> number_behind(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    std::uint64_t number = 0;
    const auto result = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
    return result.ec == std::errc() ? std::optional(number) : std::nullopt;
  }

  static void note_block(std::string_view name, std::map<std::string_view, std::set<std::uint64_t>>& blocks) {
    for (const std::string_view prefix : {"blk.", "enc.blk.", "dec.blk."}) {
      if (const auto block = number_behind(name, prefix)) blocks[prefix].insert(*block);
    }
  }

  void check_blocks(const std::set<std::uint64_t>& found, std::uint64_t needed, std::uint64_t all) const {
    if (found.empty()) return;
    std::uint64_t next = 0;
    for (const std::uint64_t block : found) {
      if (block != next) break;
      ++next;
    }
    if (next < needed) fail(fmt::format("block {} of {} is not there", next, needed));
    if (*found.rbegin() >= all) fail(fmt::format("there is a block {}, and there should be {}", *found.rbegin(), all));
  }

  const Checkpoint& model_;
  const ModelConfig& config_;
  const names::Architecture& architecture_;
  const NameOptions options_;
  names::Numbers numbers_;
  std::uint64_t tokens_;
};

}  // namespace

void check_model(const Checkpoint& model, const ModelConfig& config, std::uint64_t tokens) {
  ModelCheck(model, config, tokens).run();
}

}  // namespace ballast::llamacpp
