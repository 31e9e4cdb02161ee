// LoRA: W + s B A. A is [rank, in], B is [out, rank].
#include "peft/merge/lora.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <utility>

#include "core/text.hpp"
#include "peft/hints.hpp"
#include "peft/merge/dora.hpp"
#include "peft/merge/rules.hpp"
#include "peft/scaling.hpp"
#include "peft/targets.hpp"

namespace ballast::peft {
namespace {

// Adds B A, or makes it the direction of DoRA if the adapter has magnitudes.
void merge_into(const Task& task, std::string_view name, bool transposed, std::vector<DType> dtypes, LowRank low_rank) {
  const Tensor& weight = task.base.at(name);
  const std::uint64_t rank = low_rank.rank;
  const double scaling = low_rank.times;
  if (transposed) low_rank = low_rank.transposed();
  constexpr std::string_view kMagnitudes = "lora_magnitude_vector";
  const Tensor* magnitudes =
      task.config.is_set("use_dora") ? &task.module.at(kMagnitudes) : task.module.find(kMagnitudes);
  if (magnitudes == nullptr)
    return task.base.edit(name, low_rank_edit(extent(weight.shape()), lora_step(task, rank, scaling), parts_of(task),
                                              task.addition(std::move(dtypes)), std::move(low_rank)));
  task.refuse_unmerge("DoRA divides by norms of the original weight, which the merged one does not have");
  task.edit(name, dora_edit(task, weight, *magnitudes, transposed, std::move(low_rank)));
}

void merge_embedding(const Task& task) {
  const Tensor& a = task.module.at("lora_embedding_A");
  const Tensor& b = task.module.at("lora_embedding_B");
  const Extent of_a = extent(a.shape()), of_b = extent(b.shape());
  require_rank(task, task.module.name, "lora_embedding_A", of_a.rows);
  require_shape(task.module, "lora_embedding_B", {of_b.rows, of_a.rows});
  require_table(task, of_a.columns, of_b.rows);
  merge_into(task, task.weight_name(), true, {a.dtype(), task.weight().dtype()},
             product_later(b, of_b, a, of_a, task.scaling(task.module.name)));
}

void merge_bias(const Task& task, double scaling) {
  const Tensor* bias = task.module.find("lora_B.bias");
  if (bias == nullptr) return;
  if (task.base.find(task.bias_name()) == nullptr)
    throw Error(Errc::mismatch,
                fmt::format("the adapter adds to the bias of {}, which has none", quote(task.module.name)));
  const Extent whole = extent(bias->shape());
  LowRank low_rank{[bias = *bias, whole] {
                     return Factors{read_matrix(bias, whole), Matrix({1, 1}, {1})};
                   },
                   1, scaling};
  task.base.edit(task.bias_name(),
                 low_rank_edit(whole, fmt::format("the bias of LoRA, times {}", scaling * task.factor), {*bias},
                               task.addition({bias->dtype()}), std::move(low_rank)));
}

// The names of the base's parameters that the configuration targets in this module.
std::vector<std::string> targeted_parameters(const Task& task) {
  std::vector<std::string> names;
  for (const std::string& target : task.config.words("target_parameters")) {
    const std::size_t dot = target.rfind('.');
    if (dot == std::string::npos || !ends_with_name(task.module.name, target.substr(0, dot))) continue;
    const std::string name = task.module.name + target.substr(dot);
    if (task.base.find(name) != nullptr) names.push_back(name);
  }
  return names;
}

// nn.MultiheadAttention keeps the weights of its three inputs in one tensor without a module of its own.
std::string target_name(const Task& task) {
  const std::string fused = task.module.name + ".in_proj_weight";
  return task.base.find(task.weight_name()) == nullptr && task.base.find(fused) != nullptr ? fused : task.weight_name();
}

}  // namespace

void require_rank(const Task& task, std::string_view key, std::string_view part, std::uint64_t found,
                  std::uint64_t copies) {
  const double rank = scale_at(task.config, key).rank;
  if (found != 0 && rank * static_cast<double>(copies) == static_cast<double>(found)) return;
  throw Error(Errc::mismatch, fmt::format("the rank of {} is {} in the configuration, but {} has {} rows", quote(key),
                                          rank, part, found))
      .hint(kIsItTheConfig);
}

std::string lora_step(const Task& task, std::uint64_t rank, double scaling) {
  return fmt::format("LoRA of rank {}, times {}", rank, scaling * task.factor);
}

void merge_lora(const Task& task) {
  if (task.module.find("lora_embedding_A") != nullptr) return merge_embedding(task);
  const Tensor& a = task.module.at("lora_A.weight");
  const Tensor& b = task.module.at("lora_B.weight");
  if (a.rank() < 2 || b.rank() < 2)
    require_shape(task.module, a.rank() < 2 ? "lora_A.weight" : "lora_B.weight", {0, 0});
  const std::vector<std::string> parameters = targeted_parameters(task);
  const bool is_parameter = !parameters.empty() && task.base.find(task.weight_name()) == nullptr;
  if (is_parameter && task.base.at(parameters.front()).rank() == 3) return merge_experts(task, a, b, parameters);

  const Extent of_a = extent(a.shape()), of_b{b.shape()[0], of_a.rows};
  require_rank(task, task.module.name, "lora_A", of_a.rows);
  if (extent(b.shape()) != of_b) require_shape(task.module, "lora_B.weight", {of_b.rows, of_b.columns});
  const std::string name = is_parameter ? parameters.front() : target_name(task);
  const bool transposed = is_transposed(task, task.base.at(name), of_b.rows, of_a.columns);
  const double scaling = task.scaling(task.module.name);
  const LowRank low_rank = product_later(b, of_b, a, of_a, scaling);
  // PEFT merges the wrapper of nn.MultiheadAttention and the out_proj in it, and the wrapper merges out_proj as well.
  const int times = task.options.peft_exact && task.module.is_inside_wrapper ? 2 : 1;
  for (int i = 0; i < times; ++i) merge_into(task, name, transposed, {b.dtype()}, low_rank);
  merge_bias(task, scaling);
}

// AdaLoRA: W + s B (A * E) / (rank + 1e-5). The rank is the one at the beginning, however many ranks were pruned since.
void merge_adalora(const Task& task) {
  const Tensor& a = task.module.at("lora_A");
  const Tensor& b = task.module.at("lora_B");
  const Tensor& e = task.module.at("lora_E");
  const Extent of_a = extent(a.shape()), of_b = extent(b.shape());
  require_shape(task.module, "lora_B", {of_b.rows, of_a.rows});
  require_shape(task.module, "lora_E", {of_a.rows, 1});
  const double initial_rank = task.config.number("init_r", 12), alpha = task.config.number("lora_alpha", 8);
  const double scaling = alpha > 0 ? alpha : initial_rank;
  LowRank low_rank{[=] {
                     Factors factors{read_matrix(b), read_matrix(a)};
                     const std::vector<float> values = read_floats(e);
                     for (std::uint64_t i = 0; i < of_a.rows; ++i) {
                       for (float& value : factors.right.row(i)) value *= values[i];
                     }
                     return factors;
                   },
                   of_a.rows, scaling, static_cast<double>(static_cast<float>(initial_rank) + 1e-5F)};
  add_low_rank(task, fmt::format("AdaLoRA of rank {}", of_a.rows), of_b.rows, of_a.columns, {}, std::move(low_rank));
}

}  // namespace ballast::peft
