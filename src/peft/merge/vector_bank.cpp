// VB-LoRA: LoRA whose matrices are put together from the vectors of one bank.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "peft/choice.hpp"
#include "peft/hints.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/rules.hpp"

namespace ballast::peft {
namespace {

// The choices of a module for each of its sub-vectors: computed from logits, or as they were saved.
std::vector<Choice> choices_in(const Module& module, const std::string& name, std::uint64_t topk,
                               std::uint64_t vectors) {
  if (const Tensor* logits = module.find(name)) return choices_of(*logits, topk);
  return saved_choices(module.at(name + "_topk_indices"), module.at(name + "_topk_weights"), vectors);
}

// The shape of the logits of a module, or of the indices that were saved instead of them, checked for choices_in().
Shape shape_of_choices(const Module& module, const std::string& name, std::uint64_t topk) {
  const Tensor* logits = module.find(name);
  Shape shape = logits != nullptr ? logits->shape() : module.at(name + "_topk_indices").shape();
  if (shape.rank() != 3 || shape[2] == 0)
    throw Error(Errc::mismatch, fmt::format("{} of the module {} has the shape {}, which chooses no vectors", name,
                                            quote(module.name), to_string(shape)))
        .hint(kWasItSavedWhole);
  if (logits != nullptr) return shape;
  require_shape(module, name + "_topk_indices", {shape[0], shape[1], topk});
  require_shape(module, name + "_topk_weights", {shape[0], shape[1], topk - 1});
  return shape;
}

std::vector<float> combined(const Choice& choice, const Matrix& bank) {
  std::vector<float> result(bank.columns());
  for (std::size_t k = 0; k < choice.indices.size(); ++k) {
    if (choice.indices[k] >= bank.rows())
      throw Error(Errc::malformed, fmt::format("the adapter asks for vector {} of {}", choice.indices[k], bank.rows()));
    const auto vector = bank.row(choice.indices[k]);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += choice.weights[k] * vector[i];
  }
  return result;
}

}  // namespace

void merge_vblora(const Task& task) {
  const Tensor bank = task.shared("vblora_vector_bank");
  const std::uint64_t topk = task.config.count("topk", 2), rank = task.config.count("r", 4);
  const std::uint64_t length = extent(bank.shape()).columns;
  if (bank.numel() == 0) throw Error(Errc::mismatch, "vblora_vector_bank has no vectors").hint(kWasItSavedWhole);
  if (topk == 0)
    throw Error(Errc::malformed, "the field \"topk\" of the adapter's configuration is 0, so it chooses no vectors")
        .hint(kIsItTheConfig);
  const Shape of_a = shape_of_choices(task.module, "vblora_logits_A", topk);
  const Shape of_b = shape_of_choices(task.module, "vblora_logits_B", topk);
  if (of_a[0] != rank || of_b[1] != rank)
    throw Error(Errc::mismatch, fmt::format("the rank of the module {} is {} in the configuration, but its logits have "
                                            "the shapes {} and {}",
                                            quote(task.module.name), rank, to_string(of_a), to_string(of_b)));
  const std::uint64_t out = of_b[0] * length, in = of_a[1] * length;
  LowRank low_rank{[=, module = task.module] {
                     const Matrix vectors = read_matrix(bank);
                     const auto a = choices_in(module, "vblora_logits_A", topk, vectors.rows());
                     const auto b = choices_in(module, "vblora_logits_B", topk, vectors.rows());
                     Factors factors{Matrix({out, rank}), Matrix({rank, in})};
                     for (std::size_t i = 0; i < a.size(); ++i)
                       std::ranges::copy(combined(a[i], vectors), &factors.right.values()[i * length]);
                     for (std::size_t i = 0; i < b.size(); ++i) {
                       const auto vector = combined(b[i], vectors);
                       for (std::uint64_t k = 0; k < length; ++k)
                         factors.left(i / rank * length + k, i % rank) = vector[k];
                     }
                     return factors;
                   },
                   rank};
  add_low_rank(task, fmt::format("VB-LoRA of rank {}", rank), out, in, {}, std::move(low_rank));
}

}  // namespace ballast::peft
