#include <ballast/recipe.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "checkpoint/quantization/packed_parts.hpp"
#include "checkpoint/quantization/without_packing.hpp"
#include "core/checked.hpp"
#include "core/name_list.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "llamacpp/recipe/choose_types.hpp"
#include "llamacpp/recipe/tensor_roles.hpp"
#include "tensor/encoded_storage.hpp"

namespace ballast {
namespace {

using llamacpp::Choice;
using llamacpp::FileType;
using llamacpp::PlainTensor;

constexpr std::string_view kFileTypeKey = "general.file_type", kVersionKey = "general.quantization_version";
constexpr std::uint32_t kQuantizationVersion = 2;

// The types that llama.cpp's converter makes by itself, besides "auto".
constexpr std::array kConverterTypes = {DType::f32, DType::f16, DType::bf16, DType::q8_0};

// Architectures for which the converter says no file type.
constexpr std::array<std::string_view, 2> kWithoutFileType = {"gptneox", "mpt"};

bool is_blocks(DType type) { return info(type).kind == DTypeKind::ggml; }

bool can_be_weight(DType type) { return info(type).ggml_id >= 0 && (is_floating(type) || is_blocks(type)); }

// The one place where tensors change. The encoders that there are do not weigh columns yet.
Tensor made(const Tensor& tensor, DType type, const std::shared_ptr<const std::vector<float>>& weights) {
  if (tensor.dtype() == type) return tensor;
  return weights == nullptr ? tensor.to(type) : encoded(tensor, type, weights);
}

bool shapes_types(const RecipeOptions& options) {
  return options.leave_output_tensor || options.output_tensor_type || options.token_embedding_type ||
         !options.tensor_types.empty();
}

class Recipe {
 public:
  Recipe(Checkpoint checkpoint, const RecipeOptions& options)
      : checkpoint_(std::move(checkpoint)),
        options_(options),
        facts_(llamacpp::model_facts(checkpoint_.typed_metadata)),
        is_gguf_(checkpoint_.format == Format::gguf),
        packed_(checkpoint_) {
    check_type(options.output_tensor_type);
    check_type(options.token_embedding_type);
    for (const TensorTypeRule& rule : options.tensor_types) check_type(rule.type);
  }

  Checkpoint convert(DType wanted, std::uint32_t number) {
    StateDict tensors;
    tensors.reserve(checkpoint_.size());
    for (const auto& [name, tensor] : checkpoint_) {
      const PlainTensor plain{name, tensor.shape(), tensor.dtype()};
      const Choice choice = llamacpp::converter_type(plain, wanted, facts_.architecture);
      number = number_with(number, choice.type);
      tensors.insert(name, change(name, tensor, choice));
    }
    checkpoint_.tensors = std::move(tensors);
    checkpoint_.typed_metadata.set(MetadataEntry::of(kVersionKey, kQuantizationVersion));
    if (std::ranges::find(kWithoutFileType, facts_.architecture) == kWithoutFileType.end())
      checkpoint_.typed_metadata.set(MetadataEntry::of(kFileTypeKey, number));
    return finish();
  }

  Checkpoint quantize(const FileType& file_type) {
    const auto plain = sorted_tensors();
    const std::vector<Choice> choices = llamacpp::choose_types(plain, facts_, file_type, options_);
    put(plain, choices);
    say_unused_rules(choices);
    set_last(kVersionKey, kQuantizationVersion);
    set_last(kFileTypeKey, file_type.number);
    return finish();
  }

  Checkpoint copy() {
    const auto plain = sorted_tensors();
    std::vector<Choice> choices;
    for (const PlainTensor& tensor : plain) choices.push_back({tensor.type, tensor.type, false});
    put(plain, choices);
    set_last(kVersionKey, kQuantizationVersion);
    if (const auto number = checkpoint_.typed_metadata.find_uint(kFileTypeKey))
      set_last(kFileTypeKey, static_cast<std::uint32_t>(*number));
    if (!is_gguf_) set_plain_file_type(checkpoint_);
    return finish();
  }

  // What "auto" means for this checkpoint.
  DType automatic() const {
    if (options_.automatic) return *options_.automatic;
    for (const auto& [name, tensor] : checkpoint_) {
      const bool has_16_bits = tensor.dtype() == DType::bf16 || tensor.dtype() == DType::f16;
      if (tensor.rank() >= 2 && has_16_bits) return tensor.dtype();
    }
    return DType::f16;
  }

  bool is_gguf() const { return is_gguf_; }
  Checkpoint finish() {
    say_fallbacks();
    say_importance();
    for (const char* key : {"split.no", "split.count", "split.tensors.count"}) checkpoint_.typed_metadata.remove(key);
    return std::move(checkpoint_);
  }

 private:
  static void check_type(std::optional<DType> type) {
    if (!type || can_be_weight(*type)) return;
    throw Error(Errc::invalid_argument, fmt::format("a weight in GGUF cannot be {}", name(*type)));
  }

  // Whole experts in blocks give the file their name, unless it is a type of blocks itself.
  static std::uint32_t number_with(std::uint32_t number, DType type) {
    if (number == llamacpp::file_type("Q8_0").number || number == llamacpp::kNvfp4) return number;
    return type == DType::nvfp4 ? llamacpp::kNvfp4 : type == DType::mxfp4 ? llamacpp::kMxfp4Moe : number;
  }

  // With the types that tensors have before they are quantized.
  std::vector<PlainTensor> sorted_tensors() const {
    const DType automatic_type = automatic();
    std::vector<PlainTensor> tensors;
    tensors.reserve(checkpoint_.size());
    for (const auto& [name, tensor] : checkpoint_) {
      PlainTensor plain{name, tensor.shape(), tensor.dtype()};
      if (!is_gguf_) plain.type = llamacpp::converter_type(plain, automatic_type, facts_.architecture).type;
      tensors.push_back(std::move(plain));
    }
    std::ranges::sort(tensors, llamacpp::is_written_before, &PlainTensor::name);
    return tensors;
  }

  void put(std::span<const PlainTensor> plain, std::span<const Choice> choices) {
    StateDict tensors;
    tensors.reserve(plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i)
      tensors.insert(plain[i].name, change(plain[i].name, checkpoint_.at(plain[i].name), choices[i]));
    checkpoint_.tensors = std::move(tensors);
  }

  Tensor change(std::string_view name, const Tensor& tensor, const Choice& choice) {
    if (choice.type == tensor.dtype()) return tensor;
    packed_.refuse(name, tensor, "encoded as " + std::string(ballast::name(choice.type)));
    if (is_blocks(tensor.dtype()) && is_blocks(choice.type) && !options_.allow_requantize) {
      throw Error(Errc::invalid_argument,
                  fmt::format("tensor {} is {} already, and would be encoded again as {}", quote(name),
                              ballast::name(tensor.dtype()), ballast::name(choice.type)))
          .hint("convert the model that it was made of; or allow the loss with " + mention(Remedy::allow_requantize));
    }
    if (choice.type != choice.wanted)
      fallbacks_[{choice.wanted, choice.type, llamacpp::columns_of(tensor.shape())}].add(name);
    return made(tensor, choice.type, weights_for(name, tensor.shape(), choice.type));
  }

  std::shared_ptr<const std::vector<float>> weights_for(std::string_view name, const Shape& shape, DType type) {
    if (options_.importance == nullptr || !llamacpp::uses_importance(type)) return nullptr;
    const ImportanceEntry* const entry = options_.importance->find(name);
    if (entry == nullptr) {
      without_importance_.add(name);
      return nullptr;
    }
    const auto wanted = checked_mul(llamacpp::columns_of(shape), llamacpp::matrices_of(shape));
    if (wanted && *wanted == entry->weights->size()) return entry->weights;
    // Embeddings are looked up, not multiplied: nobody measures them.
    if (llamacpp::role_of(name) == llamacpp::Role::embedding) return nullptr;
    throw Error(Errc::invalid_argument,
                fmt::format("the importance of tensor {} has {} values, and the tensor has the shape {}", quote(name),
                            entry->weights->size(), to_string(shape)))
        .in(options_.importance->file())
        .hint("an importance matrix serves the model that it was made with, and no other");
  }

  void set_last(std::string_view key, std::uint32_t value) {
    checkpoint_.typed_metadata.remove(key);
    checkpoint_.typed_metadata.set(MetadataEntry::of(key, value));
  }

  void set_last(std::string_view key, std::string_view text) {
    constexpr std::size_t kMostBytes = 127;
    const std::string_view start = text.substr(0, kMostBytes);
    checkpoint_.typed_metadata.remove(key);
    checkpoint_.typed_metadata.set(MetadataEntry::of(key, start.substr(0, valid_utf8_prefix(start))));
  }

  // A matrix of another model would change nothing, and the file would say that it did.
  void check_importance() const {
    const auto is_measured = [&](const auto& entry) { return options_.importance->find(entry.name) != nullptr; };
    if (!without_importance_.empty() && std::ranges::none_of(checkpoint_, is_measured)) {
      throw Error(Errc::invalid_argument, fmt::format("no tensor of the model is in the importance matrix, not even {}",
                                                      without_importance_.text()))
          .in(options_.importance->file())
          .hint("an importance matrix serves the model that it was made with, and no other");
    }
  }

  void say_importance() {
    if (options_.importance == nullptr) return;
    check_importance();
    const ImportanceMatrix& importance = *options_.importance;
    if (!without_importance_.empty()) {
      checkpoint_.notes.push_back({checkpoint_.target,
                                   fmt::format("encoded without importance, since the matrix does not have them: {}",
                                               without_importance_.text()),
                                   Note::Kind::remark});
    }
    if (importance.entries().empty()) return;
    set_last("quantize.imatrix.file", importance.file());
    if (!importance.datasets().empty()) set_last("quantize.imatrix.dataset", importance.datasets().front());
    set_last("quantize.imatrix.entries_count", static_cast<std::uint32_t>(importance.entries().size()));
    if (importance.chunks() > 0)
      set_last("quantize.imatrix.chunks_count", static_cast<std::uint32_t>(importance.chunks()));
  }

  void say_fallbacks() {
    for (const auto& [what, names] : fallbacks_) {
      const auto [wanted, type, columns] = what;
      checkpoint_.notes.push_back({checkpoint_.target,
                                   fmt::format("rows of {} are no whole blocks of {}: written as {}: {}", columns,
                                               name(wanted), name(type), names.text()),
                                   Note::Kind::remark});
    }
  }

  void say_unused_rules(std::span<const Choice> choices) {
    for (const TensorTypeRule& rule : options_.tensor_types) {
      if (std::ranges::find(choices, &rule, &Choice::rule) == choices.end())
        checkpoint_.notes.push_back({checkpoint_.target,
                                     fmt::format("no tensor gets its type from {}", quote(rule.pattern)),
                                     Note::Kind::remark});
    }
  }

  Checkpoint checkpoint_;
  const RecipeOptions& options_;
  llamacpp::ModelFacts facts_;
  bool is_gguf_;
  PackedParts packed_;
  std::map<std::tuple<DType, DType, std::uint64_t>, NameList> fallbacks_;
  NameList without_importance_;
};

}  // namespace

TensorTypeRule parse_tensor_type(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == text.npos || equals == 0) {
    throw Error(Errc::invalid_argument, quote(text) + " has no '=' between an expression and a type")
        .hint("write REGEX=TYPE, such as attn_v=q8_0");
  }
  const std::string_view type = text.substr(equals + 1);
  const auto dtype = parse_dtype(type);
  if (!dtype || !can_be_weight(*dtype))
    throw Error(Errc::invalid_argument, "a weight in GGUF cannot be " + quote(type));
  return {std::string(text.substr(0, equals)), *dtype};
}

namespace {

// Options that change what a recipe does say nothing beside one that changes nothing.
void check_options(const RecipeOptions& options) {
  const bool is_plain = lower_case(options.type) == "auto" || lower_case(options.type) == "copy";
  if (!is_plain || !(shapes_types(options) || options.pure || options.importance)) return;
  throw Error(Errc::invalid_argument,
              fmt::format("{} quantizes nothing, so the other options have no effect", options.type))
      .hint("name a type that quantizes, such as Q4_K_M");
}

}  // namespace

void set_plain_file_type(Checkpoint& checkpoint) {
  if (!checkpoint.typed_metadata.contains(kFileTypeKey)) return;
  std::set<DType> types;
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.rank() >= 2 && name.ends_with(".weight")) types.insert(tensor.dtype());
  }
  types.erase(types.size() > 1 ? DType::f32 : DType::u8);  // some matrices are F32 in every file
  const bool is_plain =
      types.size() == 1 && std::ranges::find(kConverterTypes, *types.begin()) != kConverterTypes.end();
  if (is_plain)
    checkpoint.typed_metadata.set(MetadataEntry::of(kFileTypeKey, llamacpp::file_type(name(*types.begin())).number));
}

Checkpoint apply_recipe(Checkpoint checkpoint, const RecipeOptions& options) {
  check_options(options);
  Recipe recipe(without_packing(std::move(checkpoint)), options);
  if (lower_case(options.type) == "auto") {
    if (recipe.is_gguf()) return recipe.finish();
    const DType type = recipe.automatic();
    return recipe.convert(type, llamacpp::file_type(name(type)).number);
  }
  if (lower_case(options.type) == "copy") return recipe.copy();
  const FileType& file_type = llamacpp::file_type(options.type);
  const bool is_converter_type = std::ranges::find(kConverterTypes, file_type.type) != kConverterTypes.end();
  if (is_converter_type && !recipe.is_gguf() && !shapes_types(options))
    return recipe.convert(file_type.type, file_type.number);
  return recipe.quantize(file_type);
}

}  // namespace ballast
