// Methods whose change of a weight's element is a product: IA3 scales, LoHa and LoKr multiply small matrices into large
// ones, HiRA multiplies the weight itself.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "ops/merge/low_rank.hpp"
#include "ops/merge/rules.hpp"

namespace ballast::merging {
namespace {

// A number for each row, or for each `run` columns.
class ScaleEdit final : public Edit {
 public:
  ScaleEdit(Extent extent, Tensor scales, bool by_row, std::uint64_t run, bool inverse)
      : Edit(extent, inverse ? "IA3, taken out" : "IA3", {std::move(scales)}),
        by_row_(by_row),
        run_(run),
        inverse_(inverse) {}

  std::uint64_t memory_bytes() const override { return parts()[0].numel() * sizeof(float); }

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
    return {{of_a.rows, of_b.columns}, {[=] { return Factors{read_matrix(a), read_matrix(b)}; }, of_a.columns, times}};
  }
  require_core(task.module, "hada_t" + number, a, b);
  const std::uint64_t kernel = core->shape()[2] * core->shape()[3];
  return {{a.shape()[1], b.shape()[1] * kernel},
          {[=, core = *core] {
             return Factors{transposed(read_matrix(a)), tucker(core, b)};
           },
           a.shape()[0], times}};
}

// A matrix that may be kept as a product, or as a product around a core.
struct Small {
  Extent extent;
  KroneckerEdit::Make make;
};
Small kronecker_factor(const Task& task, const std::string& name) {
  if (const Tensor* whole = task.module.find(name))
    return {extent(whole->shape()), [whole = *whole] { return read_matrix(whole); }};
  const Tensor a = task.module.at(name + "_a"), b = task.module.at(name + "_b");
  if (const Tensor* core = task.module.find("lokr_t2"); core != nullptr && name == "lokr_w2") {
    require_core(task.module, "lokr_t2", a, b);
    const std::uint64_t kernel = core->shape()[2] * core->shape()[3];
    return {{a.shape()[1], b.shape()[1] * kernel},
            [=, core = *core] { return product(transposed(read_matrix(a)), tucker(core, b)); }};
  }
  if (a.numel() == 0)  // two of which would make a matrix of any size out of nothing
    throw Error(Errc::mismatch, fmt::format("{}_a of the module {} has the shape {} and no values", name,
                                            quote(task.module.name), to_string(a.shape())))
        .hint("was the file saved whole?");
  require_shape(task.module, name + "_b", {extent(a.shape()).columns, extent(b.shape()).columns});
  return {{extent(a.shape()).rows, extent(b.shape()).columns}, [=] { return product(read_matrix(a), read_matrix(b)); }};
}

double lycoris_scaling(const Task& task) { return lora_scaling(task.settings, task.module.name, "alpha"); }

}  // namespace

// IA3: W * l. l is [out, 1], or [1, in] of a feedforward module; [1, channels, 1, 1] of a convolution.
void merge_ia3(const Task& task) {
  const Tensor& scales = task.module.at("ia3_l");
  const Tensor& weight = task.base.at(task.weight_name());
  const Extent whole = extent(weight.shape());
  if (weight.numel() == 0)
    throw Error(Errc::mismatch, fmt::format("the adapter scales {}, which has the shape {} and no values",
                                            quote(task.weight_name()), to_string(weight.shape())))
        .hint("the adapter belongs to another model, or the base was saved without its weights");
  const std::uint64_t count = scales.numel(), inputs = weight.rank() > 1 ? weight.shape()[1] : 1;
  const bool is_convolution = weight.rank() > 2;
  const bool of_inputs = is_convolution ? task.settings.matches("feedforward_modules", task.module.name)
                                        : scales.rank() == 2 && scales.shape()[0] == 1 && count != 1;
  const bool transposed = !is_convolution && task.settings.flag("fan_in_fan_out");
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

// LoHa: W + s (w1_a w1_b) * (w2_a w2_b).
void merge_loha(const Task& task) {
  const double scaling = lycoris_scaling(task);
  const Tensor& weight = task.base.at(task.weight_name());
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
  const double scaling = lycoris_scaling(task);
  Small first = kronecker_factor(task, "lokr_w1"), second = kronecker_factor(task, "lokr_w2");
  const Extent whole = extent(task.base.at(task.weight_name()).shape());
  const Extent made{first.extent.rows * second.extent.rows, first.extent.columns * second.extent.columns};
  if (whole != made && is_transposed(task, task.base.at(task.weight_name()), made.rows, made.columns)) {
    for (Small* factor : {&first, &second}) {  // the transpose of a Kronecker product is that of the transposes
      factor->extent = factor->extent.transposed();
      factor->make = [make = std::move(factor->make)] { return transposed(make()); };
    }
  }
  task.base.edit(task.weight_name(), std::make_unique<KroneckerEdit>(task, first.extent, std::move(first.make),
                                                                     second.extent, std::move(second.make), scaling));
}

// HiRA: W + W * (B A).
void merge_hira(const Task& task) {
  const bool is_embedding = task.module.find("hira_embedding_A") != nullptr;
  const Tensor a = task.module.at(is_embedding ? "hira_embedding_A" : "hira_A");
  const Tensor b = task.module.at(is_embedding ? "hira_embedding_B" : "hira_B");
  const Extent of_a = extent(a.shape()), of_b{extent(b.shape()).rows, of_a.rows};
  if (extent(b.shape()) != of_b)
    require_shape(task.module, is_embedding ? "hira_embedding_B" : "hira_B", {of_b.rows, of_a.rows});
  const Tensor& weight = task.base.at(task.weight_name());
  if (is_embedding && extent(weight.shape()) != Extent{of_a.columns, of_b.rows})
    throw Error(Errc::mismatch,
                fmt::format("the adapter changes {} tokens of {} values, but {} has the shape {}", of_a.columns,
                            of_b.rows, quote(task.weight_name()), to_string(weight.shape())))
        .hint("was the vocabulary of the base changed?");
  LowRank low_rank{[=] { return Factors{read_matrix(b, of_b), read_matrix(a, of_a)}; }, of_a.rows};
  const bool transposed = is_embedding || is_transposed(task, weight, of_b.rows, of_a.columns);
  if (transposed) low_rank = low_rank.transposed();
  task.edit(task.weight_name(), std::make_unique<HiraEdit>(task, extent(weight.shape()), std::move(low_rank),
                                                           task.addition({b.dtype(), weight.dtype()}).roundings));
}

}  // namespace ballast::merging
