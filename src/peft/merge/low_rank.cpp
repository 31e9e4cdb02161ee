#include "peft/merge/low_rank.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "peft/hints.hpp"

namespace ballast::peft {
namespace {

// The rules compare shapes with the weight's. This is the last check before memory is touched, if a rule forgets one.
void require_fit(const Factors& factors, const Panel& panel) {
  const Matrix &left = factors.left, &right = factors.right;
  const bool has_rows = panel.first <= left.rows() && panel.count <= left.rows() - panel.first;
  if (has_rows && left.columns() == right.rows() && right.columns() == panel.columns) return;
  throw Error(Errc::mismatch,
              fmt::format("the adapter multiplies a matrix of {} by {} with one of {} by {}, which does "
                          "not give rows {} to {} of {} values",
                          left.rows(), left.columns(), right.rows(), right.columns(), panel.first,
                          panel.first + panel.count, panel.columns))
      .hint(kAnotherModel);
}

class LowRankEdit final : public AdditiveEdit {
 public:
  LowRankEdit(Extent extent, std::string step, std::vector<Tensor> parts, Addition addition, LowRank low_rank)
      : AdditiveEdit(extent, std::move(step), std::move(parts), std::move(addition)), low_rank_(std::move(low_rank)) {}

  std::uint64_t memory_bytes() const override { return low_rank_.memory_bytes(extent()); }
  void prepare(const ReadRows&) override { factors_ = low_rank_.make(); }

  // BLAS adds a product while it multiplies.
  void apply(const Panel& panel, std::span<float> scratch) const override {
    if (addition().is_exact) return AdditiveEdit::apply(panel, scratch);
    require_fit(factors_, panel);
    const double factor = addition().factor * low_rank_.times / low_rank_.over;
    kernels::multiply(factors_.left.view(panel.first, panel.count), factors_.right.view(), static_cast<float>(factor),
                      1, panel.values.data(), panel.columns);
  }

 private:
  void fill(const Panel& panel, std::span<float> out) const override {
    fill_product(factors_, true, panel, out);
    const auto times = static_cast<float>(low_rank_.times), over = static_cast<float>(low_rank_.over);
    if (times != 1) std::ranges::for_each(out, [&](float& value) { value *= times; });
    if (over != 1) std::ranges::for_each(out, [&](float& value) { value /= over; });
  }

  LowRank low_rank_;
  Factors factors_;  // by prepare()
};

}  // namespace

LowRank LowRank::transposed() const {
  LowRank other = *this;
  other.make = [make = make] {
    const Factors factors = make();
    return Factors{peft::transposed(factors.right), peft::transposed(factors.left)};
  };
  return other;
}

void fill_product(const Factors& factors, bool in_order, const Panel& panel, std::span<float> out) {
  require_fit(factors, panel);
  const auto left = factors.left.view(panel.first, panel.count), right = factors.right.view();
  if (in_order) return kernels::multiply_in_order(left, right, out.data(), panel.columns);
  kernels::multiply(left, right, 1, 0, out.data(), panel.columns);
}

LowRank product_later(const Tensor& left, Extent left_extent, const Tensor& right, Extent right_extent, double times) {
  return {[=] {
            return Factors{read_matrix(left, left_extent), read_matrix(right, right_extent)};
          },
          left_extent.columns, times};
}

EditPtr low_rank_edit(Extent extent, std::string step, std::vector<Tensor> parts, Addition addition, LowRank low_rank) {
  return std::make_unique<LowRankEdit>(extent, std::move(step), std::move(parts), std::move(addition),
                                       std::move(low_rank));
}

void add_low_rank(const Task& task, std::string step, std::uint64_t out, std::uint64_t in, std::vector<DType> dtypes,
                  LowRank low_rank) {
  const Tensor& weight = task.weight();
  const bool transposed = is_transposed(task, weight, out, in);
  if (transposed) low_rank = low_rank.transposed();
  task.base.edit(task.weight_name(), low_rank_edit(extent(weight.shape()), std::move(step), parts_of(task),
                                                   task.addition(std::move(dtypes)), std::move(low_rank)));
}

std::vector<Tensor> parts_of(const Task& task) {
  std::vector<Tensor> parts;
  for (const auto& [name, tensor] : task.module.parts) parts.push_back(tensor);
  return parts;
}

}  // namespace ballast::peft
