#include "llamacpp/model_faults.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/remote.hpp>

#include "core/text.hpp"
#include "llamacpp/config/model_config.hpp"
#include "llamacpp/keys/hyperparameters.hpp"
#include "llamacpp/names/match.hpp"
#include "llamacpp/names/numbers.hpp"

namespace ballast::llamacpp {
namespace {

using Kind = ModelFault::Kind;
using Roles = std::set<std::string, std::less<>>;

constexpr std::uint64_t kMostBlocks = 1 << 16;

// What a dimension of a tensor is as long as.
enum class Extent { embedding, feed_forward, tokens, queries, keys, values, heads_of_values };

struct ShapeRow {
  std::string_view role;  // behind "blk.N.", or the whole name
  std::vector<Extent> extents;
};

// Architectures whose attention and feed-forward parts have the shapes of llama's.
constexpr std::string_view kPlain[] = {"llama",    "qwen2",     "qwen3",   "gemma",      "gemma2",  "gemma3",
                                       "olmo",     "olmo2",     "granite", "smollm3",    "cohere2", "command-r",
                                       "stablelm", "internlm2", "minicpm", "starcoder2", "mistral3"};

const std::vector<ShapeRow>& shape_rows() {
  using enum Extent;
  static const std::vector<ShapeRow> rows = {
      {"token_embd.weight", {tokens, embedding}},
      {"output.weight", {tokens, embedding}},
      {"output_norm.weight", {embedding}},
      {"attn_norm.weight", {embedding}},
      {"ffn_norm.weight", {embedding}},
      {"ffn_gate.weight", {feed_forward, embedding}},
      {"ffn_up.weight", {feed_forward, embedding}},
      {"ffn_down.weight", {embedding, feed_forward}},
      {"attn_q.weight", {queries, embedding}},
      {"attn_k.weight", {keys, embedding}},
      {"attn_v.weight", {values, embedding}},
      {"attn_output.weight", {embedding, heads_of_values}},
  };
  return rows;
}

class FaultFinder {
 public:
  FaultFinder(const Checkpoint& checkpoint, const ModelConfig& config, const TypedMetadata& sizes)
      : checkpoint_(checkpoint), config_(config), architecture_(*names::find_architecture(config.architecture)) {
    sized_.typed_metadata = sizes;
    numbers_.emplace(sized_, architecture_, options_);
  }

  std::vector<ModelFault> run() {
    for (const auto& [name, tensor] : checkpoint_) take(name, tensor);
    check_blocks();
    check_experts();
    check_embedding_and_head();
    say_left_over();
    return std::move(faults_);
  }

 private:
  void fault(Kind kind, std::string tensor, std::string what) {
    faults_.push_back({kind, std::move(tensor), std::move(what)});
  }

  std::uint64_t main_blocks() const {
    return architecture_.extra_blocks == names::ExtraBlocks::mtp ? numbers_->main_blocks() : 0;
  }

  void take(std::string_view name, const Tensor& tensor) {
    const auto found = names::match(architecture_, NameStyle::gguf, name, {numbers_->main_blocks(), false});
    if (found && found->is_left_out) return;
    if (!found) {
      if (names::is_of_tower(name)) return;
      if (left_over_++ == 0) first_left_over_ = name;
      return;
    }
    const std::string& gguf = found->name;
    if (!gguf.starts_with("blk.")) {
      outside_.insert(gguf);
      return check_shape(name, gguf, tensor, *found);
    }
    const std::size_t dot = gguf.find('.', 4);
    if (dot == gguf.npos || found->block >= kMostBlocks) return;
    blocks_[found->block].insert(gguf.substr(dot + 1));
    if (found->change == names::Change::stack) ++stacks_[gguf];
    check_shape(name, gguf.substr(dot + 1), tensor, *found);
  }

  std::optional<std::uint64_t> extent(Extent what, std::uint64_t block) const {
    const auto times = [](std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
      return a && b && *a < kMostBlocks && *b < kMostBlocks ? std::optional(*a * *b) : std::nullopt;
    };
    const auto heads = numbers_->find_heads(block);
    const auto width = numbers_->find("embedding_length");
    const auto usual = heads && *heads != 0 && width ? std::optional(*width / *heads) : std::nullopt;
    const auto or_usual = [&](std::string_view key) {
      const auto said = numbers_->find(key);
      return said ? said : usual;
    };
    const auto heads_of_keys = heads ? std::optional(numbers_->heads_of_keys(block)) : std::nullopt;
    switch (what) {
      case Extent::embedding: return width;
      case Extent::feed_forward: return numbers_->find("feed_forward_length");
      case Extent::tokens: {
        const Json* words = config_.find("vocab_size");
        return words != nullptr && words->is_integer() && words->number() > 0 ? std::optional(words->count())
                                                                              : std::nullopt;
      }
      case Extent::queries: return times(heads, or_usual("attention.key_length"));
      case Extent::keys: return times(heads_of_keys, or_usual("attention.key_length"));
      case Extent::values: return times(heads_of_keys, or_usual("attention.value_length"));
      case Extent::heads_of_values: return times(heads, or_usual("attention.value_length"));
    }
    return std::nullopt;
  }

  void check_shape(std::string_view name, std::string_view role, const Tensor& tensor, const names::Match& found) {
    if (std::ranges::find(kPlain, architecture_.gguf) == std::end(kPlain)) return;
    if (found.row == nullptr || found.names_in(NameStyle::gguf, main_blocks()).size() != 1) return;
    const auto& rows = shape_rows();
    const auto row = std::ranges::find(rows, role, &ShapeRow::role);
    const bool is_weight = is_floating(tensor.dtype());  // packed parts have other shapes
    if (row == rows.end() || !is_weight || checkpoint_.quantization) return;
    std::vector<std::uint64_t> wanted;
    for (const Extent what : row->extents) {
      const auto size = extent(what, found.block);
      if (!size) return;
      wanted.push_back(*size);
    }
    if (Shape(wanted) == tensor.shape()) return;
    fault(Kind::contradiction, std::string(name),
          fmt::format("has the shape {}, and by config.json it would have {}", to_string(tensor.shape()),
                      to_string(Shape(wanted))));
  }

  // The name that Hugging Face has for what a block lacks.
  std::string own_name(std::uint64_t block, std::string_view role) const {
    const std::string gguf = fmt::format("blk.{}.{}", block, role);
    const auto found = names::match(architecture_, NameStyle::huggingface, gguf, {numbers_->main_blocks(), false});
    return found ? found->names_in(NameStyle::huggingface, main_blocks()).front() : gguf;
  }

  void check_blocks() {
    const std::uint64_t needed =
        numbers_->main_blocks() != 0 ? numbers_->main_blocks() : numbers_->find("block_count").value_or(0);
    if (blocks_.empty() || needed == 0 || needed > kMostBlocks) return;
    std::uint64_t missing = 0, first = 0;
    for (std::uint64_t block = 0; block < needed; ++block) {
      if (!blocks_.contains(block) && missing++ == 0) first = block;
    }
    if (missing != 0)
      fault(Kind::missing, {},
            fmt::format("{} of {} layers are not there, the first of them is {}", missing, needed, first));
    const std::uint64_t all = numbers_->find("block_count").value_or(needed);
    if (blocks_.rbegin()->first >= all)
      fault(Kind::contradiction, {},
            fmt::format("there is a layer {}, and by config.json there are {}", blocks_.rbegin()->first, all));
    check_alike();
  }

  void check_experts() {
    const auto experts = numbers_->find("expert_count");
    for (const auto& [stack, count] : stacks_) {
      if (experts && count < *experts)
        fault(Kind::missing, {}, fmt::format("{} has {} of {} experts", quote(stack), count, *experts));
      if (experts && count > *experts)
        fault(Kind::contradiction, {},
              fmt::format("{} has {} experts, and by config.json there are {}", quote(stack), count, *experts));
    }
  }

  // A block that has less than what at least three others have, and nothing else, lacks it. Blocks of another kind,
  // such as a dense one before those with experts, have something that the others do not have.
  void check_alike() {
    std::map<Roles, std::uint64_t> kinds;
    for (const auto& [block, roles] : blocks_) ++kinds[roles];
    for (const auto& [block, roles] : blocks_) {
      for (const auto& [kind, count] : kinds) {
        const bool lacks =
            count >= 3 && count > kinds[roles] && kind.size() > roles.size() && std::ranges::includes(kind, roles);
        if (!lacks) continue;
        for (const std::string& role : kind) {
          if (!roles.contains(role))
            fault(Kind::missing, own_name(block, role), "is not there, though other layers have it");
        }
        break;
      }
    }
  }

  void check_embedding_and_head() {
    if (blocks_.empty()) return;
    if (!outside_.contains("token_embd.weight")) fault(Kind::missing, {}, "there is no embedding of tokens");
    const Json* tied = config_.find("tie_word_embeddings");
    const bool is_untied = tied != nullptr && tied->is_bool() && !tied->boolean();
    const bool speaks = config_.class_name.ends_with("ForCausalLM") || config_.class_name.ends_with("LMHeadModel");
    if (is_untied && speaks && !outside_.contains("output.weight"))
      fault(Kind::missing, {}, "config.json says that the head is not the embedding, and there is no head");
  }

  void say_left_over() {
    if (left_over_ == 0) return;
    fault(Kind::left_over, first_left_over_,
          left_over_ == 1 ? fmt::format("is no tensor of {}", architecture_.name)
                          : fmt::format("and {} others are no tensors of {}", left_over_ - 1, architecture_.name));
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const names::Architecture& architecture_;
  const NameOptions options_{};
  Checkpoint sized_;  // for the numbers alone
  std::optional<names::Numbers> numbers_;
  std::map<std::uint64_t, Roles> blocks_;
  Roles outside_;
  std::map<std::string, std::uint64_t> stacks_;  // how many experts are there, by llama.cpp's name of all
  std::uint64_t left_over_ = 0;
  std::string first_left_over_;
  std::vector<ModelFault> faults_;
};

}  // namespace

std::vector<ModelFault> find_model_faults(const Checkpoint& checkpoint, const OpenOptions& options) {
  const ModelFolder folder(checkpoint.target, options_for(checkpoint.target, options));
  if (!folder.has("config.json")) return {};
  std::optional<ModelConfig> config;
  try {
    const auto json = folder.json("config.json");
    try {
      config = make_model_config(*json, folder.name());
    } catch (const Error&) {
      return {};  // of something else than a language model
    }
    if (names::find_architecture(config->architecture) == nullptr) return {};
    std::vector<std::string_view> names;
    for (const auto& [name, tensor] : checkpoint) names.push_back(name);
    count_guessing_blocks(*config, names);
    TypedMetadata sizes;
    std::vector<Note> ignored;
    add_hyperparameters(folder, *config, 0, sizes, ignored);
    return FaultFinder(checkpoint, *config, sizes).run();
  } catch (const Error& error) {
    return {{Kind::unreadable, {}, "config.json: " + error.message()}};
  }
}

}  // namespace ballast::llamacpp
