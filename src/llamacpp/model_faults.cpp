#include "llamacpp/model_faults.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <ballast/duplicates.hpp>
#include <ballast/error.hpp>
#include <ballast/remote.hpp>

#include "checkpoint/quantization/find_packed.hpp"
#include "checkpoint/quantization/scheme_table.hpp"
#include "core/shard_name.hpp"
#include "core/text.hpp"
#include "llamacpp/config/model_config.hpp"
#include "llamacpp/model_promise.hpp"
#include "llamacpp/names/match.hpp"
#include "llamacpp/names/numbers.hpp"
#include "llamacpp/needed_tensors.hpp"
#include "llamacpp/promised_shapes.hpp"

namespace ballast::llamacpp {
namespace {

using Kind = ModelFault::Kind;
using Roles = std::set<std::string, std::less<>>;

class FaultFinder {
 public:
  FaultFinder(const Checkpoint& checkpoint, ModelPromise promise)
      : checkpoint_(checkpoint),
        promise_(std::move(promise)),
        architecture_(*promise_.architecture),
        needed_(needed_tensors(architecture_.gguf)),
        sized_(with_sizes(promise_)),
        numbers_(sized_, architecture_, options_),
        shapes_(architecture_, numbers_, promise_.tokens) {}

  std::vector<ModelFault> run() {
    take_all();
    check_blocks();
    check_needed();
    check_alike();
    check_experts();
    check_head();
    say_left_over();
    return std::move(faults_);
  }

  bool knows_a_tensor() const noexcept { return !blocks_.empty() || !outside_.empty(); }
  // Whether weights that are kept in parts were found by their parts, or all tensors are known without that.
  bool knows_the_parts() const noexcept { return has_packed_ || left_over_ == 0; }

 private:
  static Checkpoint with_sizes(const ModelPromise& promise) {
    Checkpoint checkpoint;
    checkpoint.typed_metadata = promise.sizes;
    return checkpoint;
  }

  void fault(Kind kind, std::string tensor, std::string what) {
    faults_.push_back({kind, std::move(tensor), std::move(what)});
  }

  void missing(const std::string& tensor, std::string_view what) {
    if (said_missing_.insert(tensor).second) fault(Kind::missing, tensor, std::string(what));
  }

  std::uint64_t main_blocks() const {
    return architecture_.extra_blocks == names::ExtraBlocks::mtp ? numbers_.main_blocks() : 0;
  }

  void take_all() {
    if (promise_.style == NameStyle::gguf) {
      for (const auto& [name, tensor] : checkpoint_) take_role(name, name, &tensor);
      return;
    }
    std::optional<PackedWeights> packed;
    if (checkpoint_.quantization) packed.emplace(checkpoint_);
    std::set<std::string_view> of_composites;
    for (const Composite& composite : checkpoint_.composites) {
      of_composites.insert(composite.parts.begin(), composite.parts.end());
      take(composite.name, nullptr);
    }
    has_packed_ = (packed && !packed->all().empty()) || !of_composites.empty();
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      const auto& [name, tensor] = checkpoint_.tensors[i];
      if (of_composites.contains(name) || (packed && (packed->has_part(i) || packed->has_of_activations(i)))) continue;
      const std::string orphan = packed ? packed->orphan_of(i) : std::string();
      const bool is_alone = !orphan.empty() || (packed && holds_codes(name, tensor));
      const std::string weight = orphan.empty() ? std::string(name) : orphan;
      if (is_alone) missing(weight, "holds codes of a quantized weight, whose other parts are not there");
      take(weight, is_alone ? nullptr : &tensor);
    }
    if (!packed) return;
    for (const PackedWeight& weight : packed->all()) {
      const bool is_module = weight.row->of == PackingScheme::Of::module;
      take(std::string(weight.base) + (is_module ? ".weight" : ""), nullptr);
    }
  }

  // In a checkpoint with quantized weights.
  static bool holds_codes(std::string_view name, const Tensor& tensor) {
    const bool is_number = is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
    return name.ends_with(".weight") && tensor.rank() >= 2 && !is_number;
  }

  // `tensor` is null for a weight that is kept in parts.
  void take(std::string_view name, const Tensor* tensor) {
    const auto found = names::match(architecture_, NameStyle::gguf, name, {numbers_.main_blocks(), false});
    if (found && found->is_left_out) return;
    if (!found) {
      if (names::is_of_tower(name)) return;
      if (left_over_++ == 0) first_left_over_ = name;
      return;
    }
    const auto names = found->names_in(NameStyle::gguf, main_blocks());
    for (const std::string& gguf : names) take_role(name, gguf, names.size() == 1 ? tensor : nullptr);
    if (found->change == names::Change::stack) ++stacks_[names.front()];
    if (names.front() == "output.weight") head_ = name;
    if (names.front() == "token_embd.weight") embedding_ = name;
  }

  // A tensor under llama.cpp's name.
  void take_role(std::string_view name, std::string_view gguf, const Tensor* tensor) {
    constexpr std::string_view kBlocks = "blk.";
    std::uint64_t block = 0;
    std::string_view role = gguf;
    if (gguf.starts_with(kBlocks)) {
      const char* end = gguf.data() + gguf.size();
      const auto number = std::from_chars(gguf.data() + kBlocks.size(), end, block);
      if (number.ec != std::errc() || number.ptr == end || *number.ptr != '.') return;
      role.remove_prefix(static_cast<std::size_t>(number.ptr - gguf.data()) + 1);
      blocks_[block].insert(std::string(role));
    } else {
      outside_.insert(std::string(gguf));
    }
    if (tensor == nullptr) return;
    check_shape(name, role, block, *tensor);
    check_stack(name, role, *tensor);
  }

  void check_shape(std::string_view name, std::string_view role, std::uint64_t block, const Tensor& tensor) {
    const bool is_weight = is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
    const auto promised = is_weight ? shapes_.of(role, block) : std::nullopt;
    if (!promised || *promised == tensor.shape()) return;
    fault(Kind::contradiction, std::string(name),
          fmt::format("has the shape {}, and by {} it would have {}", to_string(tensor.shape()), promise_.where,
                      to_string(*promised)));
  }

  void check_stack(std::string_view name, std::string_view role, const Tensor& tensor) {
    const bool is_stack = role.find("_exps.weight") != role.npos && tensor.rank() == 3;
    const auto experts = numbers_.find("expert_count");
    const bool is_whole = promise_.style == NameStyle::gguf;  // at Hugging Face's the dimensions have many orders
    if (!is_stack || !is_whole || !experts || tensor.shape()[0] == *experts) return;
    fault(Kind::contradiction, std::string(name),
          fmt::format("has {} experts, and by {} there are {}", tensor.shape()[0], promise_.where, *experts));
  }

  // The name that the checkpoint would have for a tensor.
  std::string own_name(const std::string& gguf) const {
    if (promise_.style == NameStyle::gguf) return gguf;
    const auto found = names::match(architecture_, NameStyle::huggingface, gguf, {numbers_.main_blocks(), false});
    return found ? names::with_number(found->names_in(NameStyle::huggingface, main_blocks()).front(), 0) : gguf;
  }

  // How many blocks the tensors must have, without those that predict further tokens, and how many they may have.
  std::optional<std::uint64_t> needed_blocks() const {
    return numbers_.main_blocks() != 0 ? std::optional(numbers_.main_blocks()) : numbers_.find("block_count");
  }

  void check_blocks() {
    const auto needed = needed_blocks();
    if (!needed) {
      if (needed_ != nullptr) fault(Kind::missing, {}, fmt::format("{} says no number of layers", promise_.where));
      return;
    }
    if (needed_ == nullptr && blocks_.empty()) return;
    const auto behind = blocks_.lower_bound(*needed);
    const auto found = static_cast<std::uint64_t>(std::distance(blocks_.begin(), behind));
    if (found < *needed) {
      std::uint64_t first = 0;
      for (auto block = blocks_.begin(); block != behind && block->first == first; ++block) ++first;
      fault(Kind::missing, {},
            found == 0 ? fmt::format("none of the {} layers that {} says is there", *needed, promise_.where)
                       : fmt::format("{} of {} layers are not there, the first of them is {}", *needed - found, *needed,
                                     first));
    }
    const std::uint64_t all = numbers_.find("block_count").value_or(*needed);
    if (!blocks_.empty() && blocks_.rbegin()->first >= all)
      fault(Kind::contradiction, {},
            fmt::format("there is a layer {}, and by {} there are {}", blocks_.rbegin()->first, promise_.where, all));
  }

  // Of the names that will do, the one that this model would have.
  std::string_view likely(std::string_view alternatives) const {
    std::string_view likely;
    const bool has_experts = numbers_.find("expert_count").value_or(0) != 0;
    for_each_name(alternatives, '|', [&](std::string_view name) {
      if (likely.empty() || (has_experts && name.ends_with("_exps"))) likely = name;
    });
    return likely;
  }

  static bool has_one_of(const Roles& roles, std::string_view alternatives) {
    bool has = false;
    for_each_name(alternatives, '|',
                  [&](std::string_view name) { has = has || roles.contains(std::string(name) + ".weight"); });
    return has;
  }

  void check_needed() {
    if (needed_ == nullptr) return;
    for_each_name(needed_->outside, ' ', [&](std::string_view names) {
      if (!has_one_of(outside_, names)) missing(own_name(std::string(likely(names)) + ".weight"), "is not there");
    });
    for (const std::string_view roles : needed_->of_block)
      for_each_name(roles, ' ', [&](std::string_view names) { check_needed_in_blocks(names); });
    for (const auto& [block, roles] : blocks_) {
      const bool has_experts = std::ranges::any_of(
          roles, [](const std::string& role) { return role.starts_with("ffn_") && role.ends_with("_exps.weight"); });
      if (has_experts && is_main(block) && !roles.contains("ffn_gate_inp.weight"))
        missing(own_name(fmt::format("blk.{}.ffn_gate_inp.weight", block)), "is not there, which chooses the experts");
    }
  }

  bool is_main(std::uint64_t block) const { return block < needed_blocks().value_or(UINT64_MAX); }

  void check_needed_in_blocks(std::string_view names) {
    std::vector<std::uint64_t> lacking;
    std::uint64_t all = 0;
    for (const auto& [block, roles] : blocks_) {
      if (!is_main(block)) continue;
      ++all;
      if (!has_one_of(roles, names)) lacking.push_back(block);
    }
    const auto name = [&](std::uint64_t block) {
      return own_name(fmt::format("blk.{}.{}.weight", block, likely(names)));
    };
    if (lacking.size() > 1 && lacking.size() == all)
      return missing(name(lacking.front()), "is not there, nor in any other layer");
    for (const std::uint64_t block : lacking) missing(name(block), "is not there");
  }

  void check_experts() {
    const auto experts = numbers_.find("expert_count");
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
            missing(own_name(fmt::format("blk.{}.{}", block, role)), "is not there, though other layers have it");
        }
        break;
      }
    }
  }

  // Without a head, the embedding is taken for it; what config.json says then counts.
  void check_head() {
    if (promise_.style == NameStyle::gguf || !promise_.speaks || !promise_.is_tied || blocks_.empty()) return;
    const bool has_head = outside_.contains("output.weight");
    if (!*promise_.is_tied && !has_head)
      fault(Kind::missing, {}, "config.json says that the head is not the embedding, and there is no head");
    if (*promise_.is_tied && !head_.empty() && !embedding_.empty() && !are_alike(head_, embedding_))
      fault(Kind::contradiction, head_,
            fmt::format("differs from {}; config.json says that they are one, and transformers then drops it",
                        quote(embedding_)));
  }

  bool are_alike(const std::string& a, const std::string& b) const {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      if (checkpoint_.tensors[i].name == a || checkpoint_.tensors[i].name == b) numbers.push_back(i);
    }
    return numbers.size() < 2 || !find_duplicates(checkpoint_, numbers, {}).empty();
  }

  void say_left_over() {
    if (left_over_ == 0) return;
    fault(Kind::left_over, first_left_over_,
          left_over_ == 1   ? fmt::format("is no tensor of {}", architecture_.name)
          : left_over_ == 2 ? fmt::format("and another one are no tensors of {}", architecture_.name)
                            : fmt::format("and {} others are no tensors of {}", left_over_ - 1, architecture_.name));
  }

  const Checkpoint& checkpoint_;
  const ModelPromise promise_;
  const names::Architecture& architecture_;
  const NeededTensors* needed_;
  const NameOptions options_{};
  const Checkpoint sized_;  // for the numbers alone
  const names::Numbers numbers_;
  const PromisedShapes shapes_;
  std::map<std::uint64_t, Roles> blocks_;
  Roles outside_;
  std::map<std::string, std::uint64_t> stacks_;  // how many experts are there, by llama.cpp's name of all
  std::set<std::string> said_missing_;
  std::string head_, embedding_;
  bool has_packed_ = false;
  std::uint64_t left_over_ = 0;
  std::string first_left_over_;
  std::vector<ModelFault> faults_;
};

std::vector<ModelFault> not_compared(std::string_view promise, std::string_view why) {
  return {{Kind::not_compared, {}, fmt::format("{} was not compared with the tensors: {}", promise, why)}};
}

std::vector<ModelFault> find_faults_of_gguf(const Checkpoint& checkpoint, std::string_view architecture) {
  constexpr std::string_view kMetadata = "what the metadata says";
  const auto kind = checkpoint.typed_metadata.find_string("general.type");
  if (kind && *kind == "adapter") return {};
  const auto parts = checkpoint.typed_metadata.find_uint("split.count");
  if (parts && *parts > checkpoint.files.size()) return not_compared(kMetadata, "this is one part of several");
  auto promise = promise_of(checkpoint.typed_metadata, architecture);
  if (!promise) return not_compared(kMetadata, no_table_of(architecture));
  return FaultFinder(checkpoint, *std::move(promise)).run();
}

// The file of an adapter stands beside the config.json of what it was made for.
bool is_of_adapter(const Checkpoint& checkpoint) {
  if (checkpoint.files.empty()) return false;
  const std::string& path = checkpoint.files.front().path;
  return std::string_view(path).substr(path.rfind('/') + 1).starts_with("adapter_model.");
}

}  // namespace

std::vector<ModelFault> find_model_faults(const Checkpoint& checkpoint, const OpenOptions& given) {
  if (checkpoint.size() == 0) return {};
  if (const auto architecture = checkpoint.typed_metadata.find_string("general.architecture"))
    return find_faults_of_gguf(checkpoint, *architecture);
  const OpenOptions options = options_for(checkpoint.target, given);
  const ModelFolder folder(checkpoint.target, options);
  if (!folder.has("config.json") || is_of_adapter(checkpoint)) return {};
  const bool is_folder = options.files->list(checkpoint.target).has_value();
  if (!is_folder && checkpoint.files.size() == 1 && parse_usual_shard_name(checkpoint.target))
    return not_compared("config.json", "this is one shard of several");
  std::optional<ModelConfig> config;
  try {
    const auto json = folder.json("config.json");
    try {
      config = make_model_config(*json, folder.name());
    } catch (const Error&) {
      return not_compared("config.json", why_unknown(*json));
    }
    if (names::find_architecture(config->architecture) == nullptr)
      return not_compared("config.json", why_unknown(*json));
    std::vector<std::string_view> names;
    for (const auto& [name, tensor] : checkpoint) names.push_back(name);
    count_guessing_blocks(*config, names);
    FaultFinder finder(checkpoint, promise_of(folder, *config));
    auto faults = finder.run();
    // An optimizer's file, or one with other names: only the folder as a whole is the model.
    if (!is_folder && !finder.knows_a_tensor())
      return not_compared("config.json", fmt::format("no tensor is one of {}", config->architecture));
    const Json* scheme = config->raw.find("quantization_config");
    if (scheme != nullptr && scheme->is_object() && checkpoint.dequantized.empty() && !finder.knows_the_parts())
      return not_compared("config.json", "the weights are quantized in a way that Ballast does not decode");
    return faults;
  } catch (const Error& error) {
    return {{Kind::unreadable, {}, "config.json: " + error.message()}};
  }
}

}  // namespace ballast::llamacpp
