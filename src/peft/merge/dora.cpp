#include "peft/merge/dora.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"

namespace ballast::peft {
namespace {

class DoraEdit final : public Edit {
 public:
  // If `working` is not F32, sums, norms and quotients are rounded to it, as in PEFT.
  DoraEdit(Extent extent, std::string step, std::vector<Tensor> parts, Tensor magnitudes, bool by_column,
           LowRank low_rank, bool is_exact, DType rounding, DType working)
      : Edit(extent, std::move(step), std::move(parts)),
        magnitudes_(std::move(magnitudes)),
        by_column_(by_column),
        low_rank_(std::move(low_rank)),
        is_exact_(is_exact),
        rounding_(rounding),
        working_(working) {}

  std::uint64_t memory_bytes() const override {
    return low_rank_.memory_bytes(extent()) + magnitudes_.numel() * 3 * sizeof(float);
  }

  void prepare(const ReadRows& rows) override {
    factors_ = low_rank_.make();
    scales_ = read_floats(magnitudes_);
    if (!by_column_) return;
    std::vector<double> sums(extent().columns);
    const std::uint64_t step = std::max<std::uint64_t>(kPassValues / extent().columns, 1);
    std::vector<float> values(std::min(step, extent().rows) * extent().columns), scratch(values.size());
    for (std::uint64_t first = 0; first < extent().rows; first += step) {
      const std::uint64_t count = std::min(step, extent().rows - first);
      const Panel panel{first, count, extent().columns, std::span(values).first(count * extent().columns)};
      rows(first, count, panel.values);
      add(panel, scratch);
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto row = panel.row(i);
        for (std::size_t j = 0; j < row.size(); ++j) sums[j] += static_cast<double>(row[j]) * row[j];
      }
    }
    for (std::size_t j = 0; j < sums.size(); ++j) scales_[j] = scale(scales_[j], sums[j]);
  }

  void apply(const Panel& panel, std::span<float> scratch) const override {
    add(panel, scratch);
    for (std::uint64_t i = 0; i < panel.count; ++i) {
      const auto row = panel.row(i);
      if (by_column_) {
        for (std::size_t j = 0; j < row.size(); ++j) row[j] *= scales_[j];
        continue;
      }
      const float factor = scale(scales_[panel.first + i], sum_of_squares(row));
      for (float& value : row) value *= factor;
    }
  }

 private:
  static constexpr std::uint64_t kPassValues = std::uint64_t{128} << 10;

  void add(const Panel& panel, std::span<float> scratch) const {
    const auto added = scratch.first(panel.values.size());
    fill_product(factors_, is_exact_, panel, added);
    const auto times = static_cast<float>(low_rank_.times);
    for (float& value : added) value *= times;
    round_through(rounding_, added);
    for (std::size_t i = 0; i < added.size(); ++i) panel.values[i] += added[i];
    round_through(working_, panel.values);
  }

  float scale(float magnitude, double squares) const {
    auto norm = static_cast<float>(std::sqrt(squares));
    round_through(working_, {&norm, 1});
    float quotient = magnitude / norm;
    round_through(working_, {&quotient, 1});
    return quotient;
  }

  Tensor magnitudes_;
  bool by_column_;
  LowRank low_rank_;
  bool is_exact_;
  DType rounding_, working_;
  Factors factors_;            // by prepare()
  std::vector<float> scales_;  // magnitudes; for columns, already divided by the norms
};

}  // namespace

EditPtr dora_edit(const Task& task, const Tensor& weight, const Tensor& magnitudes, bool transposed, LowRank low_rank) {
  const Extent whole = extent(weight.shape());
  if (magnitudes.numel() != (transposed ? whole.columns : whole.rows))
    throw Error(Errc::mismatch, fmt::format("the adapter has {} magnitudes for {}, whose weight has the shape {}",
                                            magnitudes.numel(), quote(task.module.name), to_string(weight.shape())));
  const bool is_exact = task.options.peft_exact;
  const DType of_adapter = magnitudes.dtype();
  const DType working = is_exact && of_adapter == weight.dtype() ? of_adapter : DType::f32;
  std::string step = fmt::format("DoRA of rank {}, times {}", low_rank.rank, low_rank.times);
  return std::make_unique<DoraEdit>(whole, std::move(step), parts_of(task), magnitudes, transposed, std::move(low_rank),
                                    is_exact, is_exact ? of_adapter : DType::f32, working);
}

}  // namespace ballast::peft
