// GGUF, as llama.cpp's convert_lora_to_gguf.py writes it: general.type "adapter", adapter.type "lora", one
// adapter.lora.alpha for all; "blk.0.attn_q.weight.lora_a", [rank, in], and ".lora_b", [out, rank], whose rows are in
// the order of the base's rows. A of embeddings is [words, rank].
#include <ballast/error.hpp>

#include <algorithm>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "llamacpp/names/match.hpp"
#include "peft/computed.hpp"
#include "peft/files/dialects.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

constexpr std::string_view kAlpha = "adapter.lora.alpha", kEmbedding = "token_embd.weight";

using names::Change;

// Which of the two matrices changes as the weight does. Rows of the weight are rows of B, its columns are those of A. A
// weight that is transposed leaves both as they are: A and B say which side is which.
enum class Side : std::uint8_t { none, rows, columns };

Side side_of(Change change, std::string_view module) {
  switch (change) {
    case Change::none:
    case Change::transpose: return Side::none;
    case Change::permute_queries:
    case Change::permute_keys:
    case Change::qkv_of_heads:
    case Change::qkv_of_groups:
    case Change::split_groups:
    case Change::split_qkvz:
    case Change::split_halves:
    case Change::tile_values:
    case Change::tile_values_of_qkv: return Side::rows;
    case Change::tile_value_columns: return Side::columns;
    default:
      throw Error(Errc::unsupported, "the weight of module " + quote(module) +
                                         " is made of several, or changed, in a way that a LoRA cannot follow")
          .hint("merge the adapter into its base");
  }
}

Checkpoint renamed(const Checkpoint& weights, NameStyle style, const NameOptions& options) {
  Checkpoint result = to_names(weights, style, options);
  const names::Architecture* architecture = names::find_architecture(result, options);
  if (architecture == nullptr) return result;
  for (const auto& [name, tensor] : weights) {
    const auto match = names::match(*architecture, style, name);
    if (match && match->change == Change::transpose) result.tensors.replace(match->name, tensor);
  }
  return result;
}

// An adapter that is only looked at may keep names that nobody knows: find_problems() says which, and so nothing else
// is done with them.
Checkpoint renamed_to_peft(const Checkpoint& weights, NameOptions options) {
  options.allow_unknown_heads = true;
  const bool is_known = names::find_architecture(weights, options) != nullptr || !options.architecture.empty();
  return is_known ? renamed(weights, NameStyle::huggingface, options) : weights;
}

Checkpoint renamed_to_gguf(const Checkpoint& weights, const NameOptions& options) {
  Checkpoint result = renamed(weights, NameStyle::gguf, options);
  const names::Architecture* architecture = names::find_architecture(result, options);
  for (const auto& [name, tensor] : weights) {
    const auto match = architecture == nullptr ? std::nullopt : names::match(*architecture, NameStyle::gguf, name);
    if (match && !match->is_left_out) continue;
    throw Error(Errc::unsupported, "module " + quote(module_of(name)) + " has no name in GGUF for the architecture " +
                                       std::string(architecture == nullptr ? "of the file" : architecture->name))
        .hint("is " + mention(Remedy::architecture) + " right?");
  }
  return result;
}

}  // namespace

namespace {

// A module that is cut into several in GGUF has a LoRA for each of them there, and they need not be parts of one.
Side side_read(const names::Architecture* architecture, std::string_view weight) {
  const auto match =
      architecture == nullptr ? std::nullopt : names::match(*architecture, NameStyle::huggingface, weight);
  if (!match) return Side::none;
  if (match->names_in(NameStyle::gguf).size() > 1) {
    throw Error(Errc::unsupported,
                "the LoRA of " + quote(weight) + " is one of several that change one weight of PEFT's")
        .hint("merge the adapter into a base in GGUF");
  }
  return side_of(match->change, weight);
}

}  // namespace

LoraModules read_gguf(const Checkpoint& file, const NameOptions& options) {
  const MetadataEntry* field = file.typed_metadata.find(kAlpha);
  const std::optional<double> alpha = field == nullptr ? std::nullopt : field->as_double();
  const names::Architecture* architecture = names::find_architecture(file, options);
  // What stands for the weight: A if its columns change, else B.
  Checkpoint weights;
  weights.typed_metadata = file.typed_metadata;
  std::vector<Side> sides;
  for (const auto& [name, tensor] : file) {
    if (name.ends_with(".lora_b")) {
      const std::string_view weight = module_of(name);
      sides.push_back(side_read(architecture, weight));
      const Tensor* a = file.find(std::string(weight) + ".lora_a");
      weights.tensors.insert(weight, sides.back() == Side::columns && a != nullptr ? *a : tensor);
    } else if (!name.ends_with(".lora_a"))
      throw Error(Errc::unsupported, "tensor " + quote(name) + " is not a part of a LoRA");
  }
  const Checkpoint in_peft = renamed_to_peft(weights, options);
  LoraModules modules;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string_view name = weights.tensors[i].name;
    const Tensor* a = file.find(std::string(name) + ".lora_a");
    if (a == nullptr) throw Error(Errc::malformed, "tensor " + quote(name) + " has a .lora_b without its .lora_a");
    LoraModule& module = modules[std::string(module_of(in_peft.tensors[i].name))];
    module.is_embedding = name == kEmbedding;
    module.a = module.is_embedding ? a->transpose() : *a;
    module.b = in_peft.tensors[i].tensor;
    if (sides[i] == Side::columns) {
      module.a = in_peft.tensors[i].tensor;
      module.b = file.at(std::string(name) + ".lora_b");
    }
    module.alpha = alpha;
  }
  return modules;
}

Checkpoint write_gguf(const LoraModules& modules, const Adapter& adapter, const NameOptions& options) {
  // The one alpha is that of most modules. The others have the difference multiplied into B.
  std::map<double, std::uint64_t> alphas;
  const auto alpha_of = [](const LoraModule& module) {
    return *module.scaling * static_cast<double>(module.a->shape()[0]);
  };
  Checkpoint weights;
  for (const auto& [name, module] : modules) {
    ++alphas[alpha_of(module)];
    if (module.bias || module.magnitude || module.a->rank() != 2) {
      throw Error(Errc::unsupported, "the LoRA of module " + quote(name) + " is more than two matrices")
          .hint("GGUF has no place for DoRA, biases and convolutions: merge the adapter into its base");
    }
  }
  const double most = std::ranges::max_element(alphas, {}, [](const auto& entry) { return entry.second; })->first;
  const double alpha = most != 0 ? most : 1;  // llama.cpp takes 0 as none
  NameOptions known = options;
  if (known.architecture.empty() && adapter.metadata.contains("general.architecture"))
    known.architecture = adapter.metadata.at("general.architecture");
  const names::Architecture* architecture = names::find_architecture(known.architecture);
  const auto match_of = [&](const std::string& name) {
    return architecture == nullptr ? std::nullopt : names::match(*architecture, NameStyle::gguf, name + ".weight");
  };
  // What stands for the weight: A if its columns change, else B.
  for (const auto& [name, module] : modules) {
    const auto match = match_of(name);
    const bool is_columns = match && side_of(match->change, name) == Side::columns;
    weights.tensors.insert(name + ".weight", is_columns ? *module.a : scaled(*module.b, alpha_of(module) / alpha));
  }
  const Checkpoint in_gguf = renamed_to_gguf(weights, known);

  Checkpoint file;
  file.typed_metadata.set(
      MetadataEntry::of("general.architecture", *in_gguf.typed_metadata.find_string("general.architecture")));
  for (const MetadataEntry& field : in_gguf.typed_metadata) file.typed_metadata.set(field);
  file.typed_metadata.set(MetadataEntry::of("general.type", "adapter"));
  file.typed_metadata.set(MetadataEntry::of("adapter.type", "lora"));
  file.typed_metadata.set(MetadataEntry::of(kAlpha, static_cast<float>(alpha)));
  // A module that GGUF cuts into several has several B, one after the other, and each of them has the whole of A.
  std::size_t i = 0;
  for (const auto& [name, module] : modules) {
    const auto match = match_of(name);
    const std::size_t end = i + (match ? match->names_in(NameStyle::gguf).size() : 1);
    const bool is_columns = match && side_of(match->change, name) == Side::columns;
    for (; i < end; ++i) {
      const std::string weight(in_gguf.tensors[i].name);
      const Tensor& changed = in_gguf.tensors[i].tensor;
      const Tensor& a = is_columns ? changed : *module.a;
      file.tensors.insert(weight + ".lora_a", weight == kEmbedding ? a.transpose() : a);
      file.tensors.insert(weight + ".lora_b", is_columns ? scaled(*module.b, alpha_of(module) / alpha) : changed);
    }
  }
  return file;
}

}  // namespace ballast::peft
