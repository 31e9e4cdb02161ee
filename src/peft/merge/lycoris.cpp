// LoHa and LoKr, whose change of a weight is a product of small matrices: element by element, or Kronecker's.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "peft/hints.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/rules.hpp"

namespace ballast::peft {
namespace {

// (a1 b1) * (a2 b2), element by element.
class HadamardEdit final : public AdditiveEdit {
 public:
  HadamardEdit(const Task& task, Extent extent, LowRank first, LowRank second)
      : AdditiveEdit(extent, fmt::format("LoHa of rank {}, times {}", first.rank, first.times), parts_of(task),
                     task.addition({})),
        first_(std::move(first)),
        second_(std::move(second)) {}

  std::uint64_t memory_bytes() const override { return first_.memory_bytes(extent()) + second_.memory_bytes(extent()); }
  void prepare(const ReadRows&) override {
    factors_ = first_.make();
    others_ = second_.make();
  }

 private:
  void fill(const Panel& panel, std::span<float> out) const override {
    std::vector<float> other(out.size());
    fill_product(factors_, addition().is_exact, panel, out);
    fill_product(others_, addition().is_exact, panel, other);
    const auto times = static_cast<float>(first_.times);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] * other[i] * times;
  }

  LowRank first_, second_;
  Factors factors_, others_;  // by prepare()
};

// The Kronecker product: element (a * rows2 + b, c * columns2 + d) is first(a, c) * second(b, d).
class KroneckerEdit final : public AdditiveEdit {
 public:
  using Make = std::function<Matrix()>;

  KroneckerEdit(const Task& task, Extent first, Make make_first, Extent second, Make make_second, double times)
      : AdditiveEdit({first.rows * second.rows, first.columns * second.columns}, fmt::format("LoKr, times {}", times),
                     parts_of(task), task.addition({})),
        make_first_(std::move(make_first)),
        make_second_(std::move(make_second)),
        memory_bytes_((first.rows * first.columns + second.rows * second.columns) * sizeof(float)),
        times_(static_cast<float>(times)) {}

  std::uint64_t memory_bytes() const override { return memory_bytes_; }
  void prepare(const ReadRows&) override {
    first_ = make_first_();
    second_ = make_second_();
  }

 private:
  void fill(const Panel& panel, std::span<float> out) const override {
    auto to = out.begin();
    for (std::uint64_t row = panel.first; row < panel.first + panel.count; ++row) {
      const auto low = second_.row(row % second_.rows());
      for (const float high : first_.row(row / second_.rows())) {
        for (const float value : low) *to++ = high * value * times_;
      }
    }
  }

  Make make_first_, make_second_;
  std::uint64_t memory_bytes_;
  float times_;
  Matrix first_, second_;  // by prepare()
};

// t [i, j, k, l] and b [j, r] as a matrix of i rows, whose columns are [r, k, l].
Matrix tucker(const Tensor& core, const Tensor& b) {
  const std::uint64_t ranks = core.shape()[0], inner = core.shape()[1], kernel = core.numel() / ranks / inner;
  const Matrix small = read_matrix(b);  // [j, r]
  const std::vector<float> values = read_floats(core);
  Matrix result({ranks, small.columns() * kernel});
  for (std::uint64_t i = 0; i < ranks; ++i) {
    for (std::uint64_t r = 0; r < small.columns(); ++r) {
      for (std::uint64_t k = 0; k < kernel; ++k) {
        float sum = 0;
        for (std::uint64_t j = 0; j < inner; ++j) sum += values[(i * inner + j) * kernel + k] * small(j, r);
        result(i, r * kernel + k) = sum;
      }
    }
  }
  return result;
}

void require_core(const Module& module, std::string_view part, const Tensor& a, const Tensor& b) {
  const Shape& core = module.at(part).shape();
  if (core.rank() == 4 && core.numel() != 0 && a.rank() == 2 && b.rank() == 2 && core[0] == a.shape()[0] &&
      core[1] == b.shape()[0])
    return;
  throw Error(Errc::mismatch,
              fmt::format("{} of the module {} has the shape {}, which does not go with {} and {}", part,
                          quote(module.name), to_string(core), to_string(a.shape()), to_string(b.shape())));
}

// One of LoHa's two products, and how large it is.
struct HadamardFactor {
  Extent extent;
  LowRank low_rank;
};
HadamardFactor hadamard_factor(const Task& task, const std::string& number, double times) {
  const Tensor a = task.module.at("hada_w" + number + "_a"), b = task.module.at("hada_w" + number + "_b");
  const Tensor* core = task.module.find("hada_t" + number);
  if (core == nullptr) {
    const Extent of_a = extent(a.shape()), of_b = extent(b.shape());
    require_shape(task.module, "hada_w" + number + "_a", {of_a.rows, of_a.columns});
    require_shape(task.module, "hada_w" + number + "_b", {of_a.columns, of_b.columns});
    return {{of_a.rows, of_b.columns}, product_later(a, of_a, b, of_b, times)};
  }
  require_core(task.module, "hada_t" + number, a, b);
  const std::uint64_t kernel = core->shape()[2] * core->shape()[3];
  return {{a.shape()[1], b.shape()[1] * kernel},
          {[=, core = *core] {
             return Factors{transposed(read_matrix(a)), tucker(core, b)};
           },
           a.shape()[0], times}};
}

// A matrix of LoKr, which may be kept as a product, or as a product around a core.
struct KroneckerFactor {
  Extent extent;
  KroneckerEdit::Make make;
};
KroneckerFactor kronecker_factor(const Task& task, const std::string& name) {
  if (const Tensor* whole = task.module.find(name))
    return {extent(whole->shape()), [whole = *whole] { return read_matrix(whole); }};
  const Tensor a = task.module.at(name + "_a"), b = task.module.at(name + "_b");
  if (const Tensor* core = task.module.find("lokr_t2"); core != nullptr && name == "lokr_w2") {
    require_core(task.module, "lokr_t2", a, b);
    const std::uint64_t kernel = core->shape()[2] * core->shape()[3];
    return {{a.shape()[1], b.shape()[1] * kernel},
            [=, core = *core] { return product(transposed(read_matrix(a)), tucker(core, b)); }};
  }
  if (a.numel() == 0)  // two empty matrices would make one of any size out of nothing
    throw Error(Errc::mismatch, fmt::format("{}_a of the module {} has the shape {} and no values", name,
                                            quote(task.module.name), to_string(a.shape())))
        .hint(kWasItSavedWhole);
  require_shape(task.module, name + "_b", {extent(a.shape()).columns, extent(b.shape()).columns});
  return {{extent(a.shape()).rows, extent(b.shape()).columns}, [=] { return product(read_matrix(a), read_matrix(b)); }};
}

}  // namespace

// LoHa: W + s (w1_a w1_b) * (w2_a w2_b).
void merge_loha(const Task& task) {
  const double scaling = task.scaling(task.module.name, "alpha");
  const Tensor& weight = task.weight();
  const Extent whole = extent(weight.shape());
  HadamardFactor factors[] = {hadamard_factor(task, "1", scaling), hadamard_factor(task, "2", scaling)};
  if (factors[0].extent != factors[1].extent)
    throw Error(Errc::mismatch,
                fmt::format("the adapter multiplies, for the module {}, a matrix of {} by {} with one of {} by {}",
                            quote(task.module.name), factors[0].extent.rows, factors[0].extent.columns,
                            factors[1].extent.rows, factors[1].extent.columns))
        .hint("are all tensors of the same adapter?");
  for (auto& [found, low_rank] : factors) {
    if (found != whole && is_transposed(task, weight, found.rows, found.columns)) low_rank = low_rank.transposed();
  }
  task.base.edit(task.weight_name(), std::make_unique<HadamardEdit>(task, whole, std::move(factors[0].low_rank),
                                                                    std::move(factors[1].low_rank)));
}

// LoKr: W + s kron(w1, w2).
void merge_lokr(const Task& task) {
  const double scaling = task.scaling(task.module.name, "alpha");
  KroneckerFactor first = kronecker_factor(task, "lokr_w1"), second = kronecker_factor(task, "lokr_w2");
  const Extent whole = extent(task.weight().shape());
  const Extent made{first.extent.rows * second.extent.rows, first.extent.columns * second.extent.columns};
  if (whole != made && is_transposed(task, task.weight(), made.rows, made.columns)) {
    for (KroneckerFactor* factor :
         {&first, &second}) {  // the transpose of a Kronecker product is that of the transposes
      factor->extent = factor->extent.transposed();
      factor->make = [make = std::move(factor->make)] { return transposed(make()); };
    }
  }
  task.base.edit(task.weight_name(), std::make_unique<KroneckerEdit>(task, first.extent, std::move(first.make),
                                                                     second.extent, std::move(second.make), scaling));
}

}  // namespace ballast::peft
