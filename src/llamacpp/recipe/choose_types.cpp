#include "llamacpp/recipe/choose_types.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "llamacpp/recipe/mixtures.hpp"
#include "llamacpp/recipe/tensor_roles.hpp"

namespace ballast::llamacpp {
namespace {

struct Fallback {
  DType type, instead;
};
// Blocks of 32 instead of 256. Types that are not here have none.
constexpr std::array kFallbacks = {
    Fallback{DType::iq1_s, DType::iq4_nl},   Fallback{DType::iq1_m, DType::iq4_nl},
    Fallback{DType::iq2_xxs, DType::iq4_nl}, Fallback{DType::iq2_xs, DType::iq4_nl},
    Fallback{DType::iq2_s, DType::iq4_nl},   Fallback{DType::iq3_xxs, DType::iq4_nl},
    Fallback{DType::iq3_s, DType::iq4_nl},   Fallback{DType::iq4_xs, DType::iq4_nl},
    Fallback{DType::q2_0, DType::q4_0},      Fallback{DType::q2_k, DType::q4_0},
    Fallback{DType::q3_k, DType::q4_0},      Fallback{DType::tq1_0, DType::q4_0},
    Fallback{DType::tq2_0, DType::q4_0},     Fallback{DType::q4_k, DType::q5_0},
    Fallback{DType::q5_k, DType::q5_1},      Fallback{DType::q6_k, DType::q8_0},
};

constexpr std::array kNeedImportance = {DType::iq3_xxs, DType::iq2_xxs, DType::iq2_xs,
                                        DType::iq2_s,   DType::iq1_m,   DType::iq1_s};
constexpr std::array kIgnoreImportance = {DType::q8_0,  DType::mxfp4, DType::nvfp4, DType::tq1_0,
                                          DType::tq2_0, DType::q1_0,  DType::q2_0};

bool is_in(DType type, std::span<const DType> types) { return std::ranges::find(types, type) != types.end(); }

bool is_real(DType type) { return is_floating(type) || info(type).kind == DTypeKind::ggml; }

bool has_whole_blocks(const PlainTensor& tensor, DType type) {
  return columns_of(tensor.shape) % info(type).block_elements == 0;
}

[[noreturn]] void refuse_rows(const PlainTensor& tensor, DType type) {
  throw Error(Errc::unsupported,
              fmt::format("tensor {} has rows of {}, which are not whole blocks of {} ({}), and llama.cpp has no other "
                          "type for such a tensor",
                          quote(tensor.name), columns_of(tensor.shape), name(type), info(type).block_elements))
      .hint("choose a type with another fallback, such as Q4_K_M or Q6_K, or a type for this tensor with " +
            mention(Remedy::tensor_type));
}

DType with_fallback(const PlainTensor& tensor, DType type) {
  if (has_whole_blocks(tensor, type)) return type;
  const auto row = std::ranges::find(kFallbacks, type, &Fallback::type);
  if (row == kFallbacks.end()) refuse_rows(tensor, type);
  return has_whole_blocks(tensor, row->instead) ? row->instead : DType::f16;
}

class TypeRules {
 public:
  explicit TypeRules(std::span<const TensorTypeRule> rules) : rules_(rules) {
    for (const TensorTypeRule& rule : rules) {
      expressions_.push_back(std::make_unique<re2::RE2>(lower_case(rule.pattern), re2::RE2::Quiet));
      if (!expressions_.back()->ok())
        throw Error(Errc::invalid_argument,
                    "the expression " + quote(rule.pattern) + " is wrong: " + expressions_.back()->error());
    }
  }

  const TensorTypeRule* find(std::string_view name) const {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (re2::RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *expressions_[i])) return &rules_[i];
    }
    return nullptr;
  }

 private:
  std::span<const TensorTypeRule> rules_;
  std::vector<std::unique_ptr<re2::RE2>> expressions_;
};

// The roles of the tensors. In a model without output.weight, the embedding is the output as well.
struct Roles {
  explicit Roles(std::span<const PlainTensor> tensors) {
    for (const PlainTensor& tensor : tensors) {
      const Role role = role_of(tensor.name);
      values += role == Role::attention_values;
      is_tied = is_tied && role != Role::output;
    }
  }

  std::uint64_t values = 0;
  bool is_tied = true;
};

class Chooser {
 public:
  Chooser(std::span<const PlainTensor> tensors, const ModelFacts& facts, const FileType& file_type,
          const RecipeOptions& options)
      : file_type_(file_type),
        options_(options),
        rules_(options.tensor_types),
        roles_(tensors),
        mixture_(file_type, facts, has_importance(options), roles_.values) {}

  Choice operator()(const PlainTensor& tensor) {
    const Role role = role_of(tensor.name);
    const bool is_left = (options_.leave_output_tensor && role == Role::output) || !is_real(tensor.type);
    if (is_left || !llamacpp::is_quantized(tensor.name, tensor.shape)) return {tensor.type, tensor.type, false};

    const auto& asked = role == Role::embedding ? options_.token_embedding_type : options_.output_tensor_type;
    if ((role == Role::embedding || role == Role::output) && asked) {
      if (!has_whole_blocks(tensor, *asked)) refuse_rows(tensor, *asked);
      return {*asked, *asked};
    }
    const TensorTypeRule* const rule = rules_.find(tensor.name);
    const DType wanted = rule != nullptr ? rule->type : wanted_type(tensor, role);
    return {with_fallback(tensor, wanted), wanted, true, rule};
  }

  static bool has_importance(const RecipeOptions& options) {
    return options.importance != nullptr && !options.importance->entries().empty();
  }

 private:
  DType wanted_type(const PlainTensor& tensor, Role role) {
    if (options_.pure || info(file_type_.type).kind != DTypeKind::ggml) return file_type_.type;
    const bool is_output = role == Role::output || (role == Role::embedding && roles_.is_tied);
    if (is_output && options_.output_tensor_type) return *options_.output_tensor_type;
    return mixture_.next(tensor.name, tensor.shape, is_output ? Role::output : role);
  }

  const FileType& file_type_;
  const RecipeOptions& options_;
  TypeRules rules_;
  Roles roles_;
  Mixture mixture_;
};

void check_importance(const PlainTensor& tensor, DType type, const FileType& file_type, const RecipeOptions& options) {
  if (type == tensor.type || !needs_importance(tensor.name, type, file_type)) return;
  if (options.importance != nullptr && options.importance->find(tensor.name) != nullptr) return;
  const bool has_some = Chooser::has_importance(options);
  throw Error(
      Errc::invalid_argument,
      fmt::format("tensor {} becomes {} in a file of type {}, which needs an importance matrix{}", quote(tensor.name),
                  name(type), file_type.name, has_some ? ", and the one that is given has no such tensor" : ""))
      .hint("bring one that llama-imatrix made with " + mention(Remedy::imatrix, "FILE") + ", or choose a larger type");
}

}  // namespace

bool needs_importance(std::string_view name, DType type, const FileType& file_type) noexcept {
  const Role role = role_of(name);
  if (role == Role::embedding || role == Role::output) return false;
  return is_in(type, kNeedImportance) || (type == DType::q2_k && file_type.bit() == types::q2_k_s);
}

bool uses_importance(DType type) noexcept {
  return info(type).kind == DTypeKind::ggml && !is_in(type, kIgnoreImportance);
}

Choice converter_type(const PlainTensor& tensor, DType wanted, std::string_view architecture) {
  if (info(tensor.type).kind == DTypeKind::ggml) return {tensor.type, tensor.type, false};
  if (is_always_f32(tensor.name, tensor.shape, architecture)) return {DType::f32, DType::f32, false};
  return {has_whole_blocks(tensor, wanted) ? wanted : DType::f16, wanted};
}

std::vector<Choice> choose_types(std::span<const PlainTensor> tensors, const ModelFacts& facts,
                                 const FileType& file_type, const RecipeOptions& options) {
  Chooser choose(tensors, facts, file_type, options);
  std::vector<Choice> choices;
  choices.reserve(tensors.size());
  for (const PlainTensor& tensor : tensors) {
    choices.push_back(choose(tensor));
    if (choices.back().is_quantized) check_importance(tensor, choices.back().type, file_type, options);
  }
  return choices;
}

}  // namespace ballast::llamacpp
