// Methods that multiply the elements of a weight: IA3 by a number for each row or column, HiRA by a product of
// matrices.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/rules.hpp"
#include "peft/targets.hpp"

namespace ballast::peft {
namespace {

// Multiplies by a number for each row, or for each `run` columns.
class ScaleEdit final : public Edit {
 public:
  ScaleEdit(Extent extent, Tensor scales, bool by_row, std::uint64_t run, bool inverse)
      : Edit(extent, inverse ? "IA3, taken out" : "IA3", {std::move(scales)}),
        by_row_(by_row),
        run_(run),
        inverse_(inverse) {}

  void prepare(const ReadRows&) override {
    scales_ = read_floats(parts()[0]);
    if (!inverse_) return;
    if (std::ranges::find(scales_, 0.0F) != scales_.end())
      throw Error(Errc::unsupported, "IA3 multiplied by 0, which cannot be taken out again");
    std::ranges::for_each(scales_, [](float& scale) { scale = 1 / scale; });
  }

  void apply(const Panel& panel, std::span<float>) const override {
    for (std::uint64_t i = 0; i < panel.count; ++i) {
      const auto row = panel.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] *= scales_[by_row_ ? panel.first + i : j / run_];
    }
  }

 private:
  bool by_row_;
  std::uint64_t run_;
  bool inverse_;
  std::vector<float> scales_;  // by prepare()
};

// W + W * (B A).
class HiraEdit final : public Edit {
 public:
  HiraEdit(const Task& task, Extent extent, LowRank low_rank, std::vector<DType> roundings)
      : Edit(extent, fmt::format("HiRA of rank {}", low_rank.rank), parts_of(task)),
        low_rank_(std::move(low_rank)),
        roundings_(std::move(roundings)),
        is_exact_(task.options.peft_exact),
        inverse_(task.options.unmerge) {}

  std::uint64_t memory_bytes() const override { return low_rank_.memory_bytes(extent()); }
  void prepare(const ReadRows&) override { factors_ = low_rank_.make(); }

  void apply(const Panel& panel, std::span<float> scratch) const override {
    const auto factors = scratch.first(panel.values.size());
    fill_product(factors_, is_exact_, panel, factors);
    for (const DType dtype : roundings_) round_through(dtype, factors);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      float& value = panel.values[i];
      value = inverse_ ? value / (1 + factors[i]) : value + value * factors[i];
    }
  }

 private:
  LowRank low_rank_;
  std::vector<DType> roundings_;
  bool is_exact_, inverse_;
  Factors factors_;  // by prepare()
};

}  // namespace

// IA3: W * l. l is [out, 1], or [1, in] for a feedforward module, or [1, channels, 1, 1] for a convolution.
void merge_ia3(const Task& task) {
  const Tensor& scales = task.module.at("ia3_l");
  const Tensor& weight = task.weight();
  const Extent whole = extent(weight.shape());
  if (weight.numel() == 0)
    throw Error(Errc::mismatch, fmt::format("the adapter scales {}, which has the shape {} and no values",
                                            quote(task.weight_name()), to_string(weight.shape())))
        .hint("the adapter belongs to another model, or the base was saved without its weights");
  const std::uint64_t count = scales.numel(), inputs = weight.rank() > 1 ? weight.shape()[1] : 1;
  const bool is_convolution = weight.rank() > 2;
  const bool of_inputs = is_convolution ? ModulePattern(task.config, "feedforward_modules").matches(task.module.name)
                                        : scales.rank() == 2 && scales.shape()[0] == 1 && count != 1;
  const bool transposed = !is_convolution && task.config.is_set("fan_in_fan_out");
  const bool by_row = of_inputs == transposed;
  if (count != (by_row ? whole.rows : inputs))
    throw Error(Errc::mismatch, fmt::format("the adapter has {} scales for {}, whose weight has the shape {}", count,
                                            quote(task.module.name), to_string(weight.shape())));
  const bool inverse = task.options.unmerge;
  task.edit(task.weight_name(),
            std::make_unique<ScaleEdit>(whole, scales, by_row, by_row ? 1 : whole.columns / inputs, inverse));
  if (!of_inputs && task.base.find(task.bias_name()) != nullptr)
    task.edit(task.bias_name(), std::make_unique<ScaleEdit>(Extent{count, 1}, scales, true, 1, inverse));
}

// HiRA: W + W * (B A).
void merge_hira(const Task& task) {
  const bool is_embedding = task.module.find("hira_embedding_A") != nullptr;
  const Tensor a = task.module.at(is_embedding ? "hira_embedding_A" : "hira_A");
  const Tensor b = task.module.at(is_embedding ? "hira_embedding_B" : "hira_B");
  const Extent of_a = extent(a.shape()), of_b{extent(b.shape()).rows, of_a.rows};
  if (extent(b.shape()) != of_b)
    require_shape(task.module, is_embedding ? "hira_embedding_B" : "hira_B", {of_b.rows, of_a.rows});
  const Tensor& weight = task.weight();
  if (is_embedding) require_table(task, of_a.columns, of_b.rows);
  LowRank low_rank = product_later(b, of_b, a, of_a);
  const bool transposed = is_embedding || is_transposed(task, weight, of_b.rows, of_a.columns);
  if (transposed) low_rank = low_rank.transposed();
  task.edit(task.weight_name(), std::make_unique<HiraEdit>(task, extent(weight.shape()), std::move(low_rank),
                                                           task.addition({b.dtype(), weight.dtype()}).roundings));
}

}  // namespace ballast::peft
