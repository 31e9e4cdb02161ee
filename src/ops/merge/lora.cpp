// LoRA: W + s B A. A is [rank, in], B is [out, rank].
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/text.hpp"
#include "ops/merge/dora.hpp"
#include "ops/merge/low_rank.hpp"
#include "ops/merge/rules.hpp"

namespace ballast::merging {
namespace {

// What PEFT would compute anew for every input, or keeps in another form.
struct Variant {
  std::string_view field;
  std::string_view why_not;
};
constexpr Variant kUnmergeable[] = {
    {"alora_invocation_tokens", "aLoRA acts only on the tokens after its invocation, so no weight can hold it"},
    {"arrow_config", "Arrow chooses among adapters for each token, so no weight can hold it"},
    {"monteclora_config", "MonteCLoRA draws its adapters anew, so no weight can hold it"},
    {"use_bdlora", "the blocks of BD-LoRA are laid out for several devices"},
    {"use_qalora", "QA-LoRA is merged into the zero points of a quantized base, which are not in this one"},
};

void refuse_variants(const Task& task) {
  for (const auto& [field, why_not] : kUnmergeable) {
    const Json* value = task.settings.find(field);
    if (value == nullptr || *value == Json(false)) continue;
    throw Error(Errc::unsupported, fmt::format("the adapter cannot be merged: {}", why_not))
        .hint(fmt::format("see {} in adapter_config.json", field));
  }
}

// `key` is what patterns are matched with: the module, or its parameter.
std::uint64_t checked_rank(const Task& task, std::string_view key, std::string_view part, std::uint64_t found,
                           std::uint64_t copies = 1) {
  const std::uint64_t rank = task.settings.count_for(key, "r", "rank_pattern");
  if (rank != 0 && found % copies == 0 && rank == found / copies) return rank;
  throw Error(Errc::mismatch, fmt::format("the rank of {} is {} in the configuration, but {} has {} rows", quote(key),
                                          rank, part, found))
      .hint("is this the adapter_config.json that the tensors were saved with?");
}

std::string lora_step(const Task& task, std::uint64_t rank, double scaling) {
  return fmt::format("LoRA of rank {}, times {}", rank, scaling * task.weight);
}

const Tensor* magnitude(const Module& module) {
  const Tensor* plain = module.find("lora_magnitude_vector");
  return plain != nullptr ? plain : module.find("lora_magnitude_vector.weight");
}

LowRank read_later(const Tensor& left, Extent left_extent, const Tensor& right, Extent right_extent, double scaling) {
  return {[=] {
            return Factors{read_matrix(left, left_extent), read_matrix(right, right_extent)};
          },
          left_extent.columns, scaling};
}

// Adds it, or, where the adapter has magnitudes, makes it the direction of DoRA.
void merge_into(const Task& task, std::string_view name, bool transposed, std::vector<DType> dtypes, LowRank low_rank) {
  const Tensor& weight = task.base.at(name);
  const std::uint64_t rank = low_rank.rank;
  const double scaling = low_rank.times;
  if (transposed) low_rank = low_rank.transposed();
  const Tensor* magnitudes = magnitude(task.module);
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
  const std::uint64_t rank = checked_rank(task, task.module.name, "lora_embedding_A", of_a.rows);
  require_shape(task.module, "lora_embedding_B", {of_b.rows, rank});
  const Tensor& weight = task.base.at(task.weight_name());
  if (extent(weight.shape()) != Extent{of_a.columns, of_b.rows})
    throw Error(Errc::mismatch,
                fmt::format("the adapter changes {} tokens of {} values, but {} has the shape {}", of_a.columns,
                            of_b.rows, quote(task.weight_name()), to_string(weight.shape())))
        .hint("was the vocabulary of the base changed?");
  const double scaling = lora_scaling(task.settings, task.module.name, "lora_alpha");
  merge_into(task, task.weight_name(), true, {a.dtype(), weight.dtype()}, read_later(b, of_b, a, of_a, scaling));
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
                 low_rank_edit(whole, fmt::format("the bias of LoRA, times {}", scaling * task.weight), {*bias},
                               task.addition({bias->dtype()}), std::move(low_rank)));
}

// A parameter of experts is [experts, out, in], or [experts, in, out] in models that keep it so; A is [experts * rank,
// in] and B is [out, rank * experts], the expert being the last index here and the first one there.
bool fits_experts(const Tensor& parameter, const Tensor& a, const Tensor& b, bool transposed) {
  const Shape& shape = parameter.shape();
  if (shape.rank() != 3 || shape[0] == 0) return false;
  const std::uint64_t out = shape[transposed ? 2 : 1], in = shape[transposed ? 1 : 2];
  return a.shape()[0] % shape[0] == 0 && a.shape()[1] == in && b.shape()[0] == out && b.shape()[1] == a.shape()[0];
}

// The names of the base's parameters that the configuration targets in this module.
std::vector<std::string> targeted_parameters(const Task& task) {
  std::vector<std::string> names;
  for (const std::string& target : task.settings.names("target_parameters")) {
    const std::size_t dot = target.rfind('.');
    if (dot == std::string::npos) continue;
    const std::string_view module = std::string_view(target).substr(0, dot);
    const bool is_here = task.module.name == module || task.module.name.ends_with("." + std::string(module));
    const std::string name = task.module.name + target.substr(dot);
    if (is_here && task.base.find(name) != nullptr) names.push_back(name);
  }
  return names;
}

class ExpertsEdit final : public AdditiveEdit {
 public:
  ExpertsEdit(const Task& task, const Tensor& parameter, const Tensor& a, const Tensor& b, bool transposed,
              double scaling)
      : AdditiveEdit({parameter.shape()[0] * parameter.shape()[1], parameter.shape()[2]},
                     lora_step(task, a.shape()[0] / parameter.shape()[0], scaling), {a, b},
                     task.addition({parameter.dtype()})),
        experts_(parameter.shape()[0]),
        rows_(parameter.shape()[1]),
        transposed_(transposed),
        scaling_(static_cast<float>(scaling)) {}

  std::uint64_t memory_bytes() const override { return (parts()[0].numel() + parts()[1].numel()) * sizeof(float); }

  // A pair of factors for each expert.
  void prepare(const ReadRows&) override {
    const Matrix a = read_matrix(parts()[0]), b = read_matrix(parts()[1]);
    const std::uint64_t rank = a.rows() / experts_;
    for (std::uint64_t e = 0; e < experts_; ++e) {
      Matrix left({b.rows(), rank}), right({rank, a.columns()});
      for (std::uint64_t r = 0; r < rank; ++r) {
        for (std::uint64_t o = 0; o < b.rows(); ++o) left(o, r) = b(o, r * experts_ + e);
        std::ranges::copy(a.row(e * rank + r), right.row(r).begin());
      }
      factors_.push_back(transposed_ ? Factors{transposed(right), transposed(left)}
                                     : Factors{std::move(left), std::move(right)});
    }
  }

 private:
  void fill(const Panel& panel, std::span<float> out) const override {
    for (std::uint64_t done = 0, count = 0; done < panel.count; done += count) {
      const std::uint64_t expert = (panel.first + done) / rows_, first = (panel.first + done) % rows_;
      count = std::min(panel.count - done, rows_ - first);
      const auto part = out.subspan(done * panel.columns, count * panel.columns);
      fill_product(factors_[expert], addition().is_exact, {first, count, panel.columns, {}}, part);
      for (float& value : part) value *= scaling_;
    }
  }

  std::uint64_t experts_, rows_;
  bool transposed_;
  float scaling_;
  std::vector<Factors> factors_;  // by prepare()
};

void merge_experts(const Task& task, const Tensor& a, const Tensor& b, const std::vector<std::string>& names) {
  // Most models keep it [out, in]; the others are asked for only where none of those fits.
  std::vector<std::string> fitting;
  bool transposed = false;
  for (const bool other : {false, true}) {
    if (!fitting.empty()) break;
    transposed = other;
    std::ranges::copy_if(names, std::back_inserter(fitting),
                         [&](const std::string& name) { return fits_experts(task.base.at(name), a, b, other); });
  }
  if (fitting.size() != 1)
    throw Error(Errc::mismatch,
                fmt::format("the adapter changes a parameter of {} by matrices of {} and {}, which {} of "
                            "its target_parameters could be",
                            quote(task.module.name), to_string(a.shape()), to_string(b.shape()),
                            fitting.empty() ? "none" : "several"))
        .hint("adapter files do not say which parameter it is: their shapes must");
  const std::string& name = fitting.front();
  const Tensor& parameter = task.base.at(name);
  checked_rank(task, name, "lora_A", a.shape()[0], parameter.shape()[0]);
  const double scaling = lora_scaling(task.settings, name, "lora_alpha");
  task.base.edit(name, std::make_unique<ExpertsEdit>(task, parameter, a, b, transposed, scaling));
}

// nn.MultiheadAttention keeps the weights of its three inputs in one tensor without a module of its own.
std::string target_name(const Task& task) {
  const std::string fused = task.module.name + ".in_proj_weight";
  return task.base.find(task.weight_name()) == nullptr && task.base.find(fused) != nullptr ? fused : task.weight_name();
}

}  // namespace

void merge_lora(const Task& task) {
  refuse_variants(task);
  if (task.module.find("lora_embedding_A") != nullptr) return merge_embedding(task);
  const Tensor& a = task.module.at("lora_A.weight");
  const Tensor& b = task.module.at("lora_B.weight");
  if (a.rank() < 2 || b.rank() < 2)
    require_shape(task.module, a.rank() < 2 ? "lora_A.weight" : "lora_B.weight", {0, 0});
  const std::vector<std::string> parameters = targeted_parameters(task);
  const bool is_parameter = !parameters.empty() && task.base.find(task.weight_name()) == nullptr;
  if (is_parameter && task.base.at(parameters.front()).rank() == 3) return merge_experts(task, a, b, parameters);

  const std::uint64_t rank = checked_rank(task, task.module.name, "lora_A", a.shape()[0]);
  const Extent of_a = extent(a.shape()), of_b{b.shape()[0], rank};
  if (extent(b.shape()) != of_b) require_shape(task.module, "lora_B.weight", {b.shape()[0], rank});
  const std::string name = is_parameter ? parameters.front() : target_name(task);
  const Tensor& weight = task.base.at(name);
  const bool transposed = is_transposed(task, weight, of_b.rows, of_a.columns);
  const double scaling = lora_scaling(task.settings, task.module.name, "lora_alpha");
  const LowRank low_rank = read_later(b, of_b, a, of_a, scaling);
  // PEFT merges the wrapper of nn.MultiheadAttention and the out_proj in it, and the first one merges out_proj as well.
  const int times = task.options.peft_exact && task.module.is_inside_wrapper ? 2 : 1;
  for (int i = 0; i < times; ++i) merge_into(task, name, transposed, {b.dtype()}, low_rank);
  merge_bias(task, scaling);
}

// AdaLoRA: W + s B (A * E) / (rank + 1e-5). The rank is the one at the beginning, whatever was pruned since.
void merge_adalora(const Task& task) {
  const Tensor& a = task.module.at("lora_A");
  const Tensor& b = task.module.at("lora_B");
  const Tensor& e = task.module.at("lora_E");
  const Extent of_a = extent(a.shape()), of_b = extent(b.shape());
  require_shape(task.module, "lora_B", {of_b.rows, of_a.rows});
  require_shape(task.module, "lora_E", {of_a.rows, 1});
  const double initial_rank = task.settings.number("init_r"), alpha = task.settings.number("lora_alpha");
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

}  // namespace ballast::merging
