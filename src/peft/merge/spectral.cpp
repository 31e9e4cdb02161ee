// Methods that learn a weight's change in another basis: FourierFT and WaveFT a few frequencies of it, C3A circulant
// blocks.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/text.hpp"
#include "kernels/linear/torch_random.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/rules.hpp"

namespace ballast::peft {
namespace {

// Which elements of a matrix [out, in] the learned values are: PEFT draws them from a seed.
struct Elements {
  std::uint64_t out, in, count, seed;

  std::vector<std::uint64_t> draw() const { return kernels::TorchRandom(seed).permutation(out * in, count); }
};

Elements elements_of(const Task& task, const Tensor& spectrum) {
  const Extent whole = task.sides(task.module);
  const Elements elements{whole.rows, whole.columns, spectrum.numel(), task.config.count("random_loc_seed", 777)};
  if (elements.count > whole.rows * whole.columns || whole.rows * whole.columns >= kernels::TorchRandom::kMostPermuted)
    throw Error(Errc::unsupported, fmt::format("{} elements of {} by {} cannot be drawn for the module {}",
                                               elements.count, whole.rows, whole.columns, quote(task.module.name)));
  return elements;
}

// The low-pass filter of a wavelet, for the way back from coefficients to a signal.
std::vector<double> low_pass(const std::string& family) {
  if (family == "db1" || family == "haar") return {std::numbers::sqrt2 / 2, std::numbers::sqrt2 / 2};
  if (family == "db2" || family == "sym2") {
    const double root = std::numbers::sqrt3, scale = 4 * std::numbers::sqrt2;
    return {(1 + root) / scale, (3 + root) / scale, (3 - root) / scale, (1 - root) / scale};
  }
  throw Error(Errc::unsupported, fmt::format("WaveFT by the wavelet {} is not known here", quote(family)))
      .hint("the known ones are db1, haar, db2 and sym2");
}

// An outer product of two short runs of numbers, somewhere in the matrix.
struct Patch {
  std::int64_t row, column;  // of its first element, which may lie outside
  float value;
  bool high_rows, high_columns;
};

// One level of an inverse wavelet transform of a few coefficients.
class WaveletEdit final : public AdditiveEdit {
 public:
  WaveletEdit(const Task& task, Extent extent, bool transposed, Tensor spectrum, Elements elements, std::string family)
      : AdditiveEdit(extent, fmt::format("WaveFT of {} frequencies", elements.count), {std::move(spectrum)},
                     task.addition({})),
        transposed_(transposed),
        elements_(elements),
        scaling_(task.config.number("scaling", 25)),
        low_(low_pass(family)) {
    for (std::size_t i = 0; i < low_.size(); ++i) high_.push_back((i % 2 == 0 ? 1 : -1) * low_[low_.size() - 1 - i]);
  }

  std::uint64_t memory_bytes() const override { return elements_.count * sizeof(Patch); }

  void prepare(const ReadRows&) override {
    const std::vector<float> values = read_floats(parts()[0]);
    const std::vector<std::uint64_t> drawn = elements_.draw();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Axis row = axis(drawn[i] / elements_.in, elements_.out),
                 column = axis(drawn[i] % elements_.in, elements_.in);
      // The quarter at the top right is of high frequencies along the rows' own direction, as PEFT has it.
      Patch patch{row.begin, column.begin, values[i], column.is_high, row.is_high};
      if (transposed_) patch = {patch.column, patch.row, patch.value, patch.high_columns, patch.high_rows};
      patches_.push_back(patch);
    }
    std::ranges::sort(patches_, {}, &Patch::row);
  }

 private:
  struct Axis {
    std::int64_t begin;
    bool is_high;
  };

  // Coefficients are padded on both sides so that the result is large enough, and the result is cut in the middle.
  Axis axis(std::uint64_t index, std::uint64_t size) const {
    const std::uint64_t length = low_.size(), padded = (size + length - 2 + 1) / 2 * 2, half = padded / 2;
    const std::uint64_t at = index + (padded - size) / 2;
    const std::uint64_t made = 2 * half + 2 - length;
    const auto begin = static_cast<std::int64_t>(2 * (at % half)) - static_cast<std::int64_t>(length - 2) -
                       static_cast<std::int64_t>((made - size) / 2);
    return {begin, at >= half};
  }

  void fill(const Panel& panel, std::span<float> out) const override {
    std::ranges::fill(out, 0.0F);
    const auto first = static_cast<std::int64_t>(panel.first), end = first + static_cast<std::int64_t>(panel.count);
    const auto length = static_cast<std::int64_t>(low_.size()), columns = static_cast<std::int64_t>(panel.columns);
    const auto begin = std::ranges::lower_bound(patches_, first - length + 1, {}, &Patch::row);
    for (auto patch = begin; patch != patches_.end() && patch->row < end; ++patch) {
      const std::vector<double>& down = patch->high_rows ? high_ : low_;
      const std::vector<double>& along = patch->high_columns ? high_ : low_;
      for (std::int64_t i = std::max(patch->row, first); i < std::min(patch->row + length, end); ++i) {
        for (std::int64_t j = std::max<std::int64_t>(patch->column, 0); j < std::min(patch->column + length, columns);
             ++j)
          out[static_cast<std::size_t>((i - first) * columns + j)] +=
              static_cast<float>(patch->value * down[static_cast<std::size_t>(i - patch->row)] *
                                 along[static_cast<std::size_t>(j - patch->column)] * scaling_);
      }
    }
  }

  bool transposed_;
  Elements elements_;
  double scaling_;
  std::vector<double> low_, high_;
  std::vector<Patch> patches_;  // by prepare()
};

// Element (m b + j, n b + i) is kernel[m, n, (i - j) mod b] over the number of inputs.
class CirculantEdit final : public AdditiveEdit {
 public:
  CirculantEdit(const Task& task, Extent extent, Tensor kernel, DType of_weight)
      : AdditiveEdit(extent, "C3A", {std::move(kernel)}, task.addition({of_weight})) {}

  void prepare(const ReadRows&) override { kernel_ = read_floats(parts()[0]); }

 private:
  void fill(const Panel& panel, std::span<float> out) const override {
    const std::uint64_t across = parts()[0].shape()[1], block = parts()[0].shape()[2];
    const auto inputs = static_cast<float>(extent().columns);
    for (std::uint64_t k = 0; k < panel.count; ++k) {
      const std::uint64_t row = panel.first + k, m = row / block, j = row % block;
      for (std::uint64_t column = 0; column < panel.columns; ++column) {
        const std::uint64_t n = column / block, i = column % block;
        out[k * panel.columns + column] = kernel_[(m * across + n) * block + (i + block - j) % block] / inputs;
      }
    }
  }

  std::vector<float> kernel_;  // by prepare()
};

}  // namespace

// FourierFT: W + s Re(ifft2(S)), S holding a few values. A frequency is a wave in both directions, so it is the real
// part of an outer product: two columns of a product of matrices for each.
void merge_fourierft(const Task& task) {
  const Tensor spectrum = task.module.at("fourierft_spectrum");
  const Elements elements = elements_of(task, spectrum);
  LowRank low_rank{[=] {
                     const std::vector<float> values = read_floats(spectrum);
                     const std::vector<std::uint64_t> drawn = elements.draw();
                     const std::uint64_t count = drawn.size();
                     Factors factors{Matrix({elements.out, 2 * count}), Matrix({2 * count, elements.in})};
                     const double size = static_cast<double>(elements.out) * static_cast<double>(elements.in);
                     const auto angle = [](std::uint64_t at, std::uint64_t frequency, std::uint64_t period) {
                       return 2 * std::numbers::pi * static_cast<double>(at * frequency % period) /
                              static_cast<double>(period);
                     };
                     for (std::uint64_t k = 0; k < count; ++k) {
                       const std::uint64_t down = drawn[k] / elements.in, along = drawn[k] % elements.in;
                       for (std::uint64_t i = 0; i < elements.out; ++i) {
                         const double phase = angle(i, down, elements.out);
                         factors.left(i, 2 * k) = static_cast<float>(std::cos(phase));
                         factors.left(i, 2 * k + 1) = static_cast<float>(-std::sin(phase));
                       }
                       for (std::uint64_t j = 0; j < elements.in; ++j) {
                         const double phase = angle(j, along, elements.in);
                         factors.right(2 * k, j) = static_cast<float>(values[k] * std::cos(phase) / size);
                         factors.right(2 * k + 1, j) = static_cast<float>(values[k] * std::sin(phase) / size);
                       }
                     }
                     return factors;
                   },
                   2 * elements.count, task.config.number("scaling", 150)};
  add_low_rank(task, fmt::format("FourierFT of {} frequencies", elements.count), elements.out, elements.in,
               {spectrum.dtype()}, std::move(low_rank));
}

// WaveFT: W + s idwt2(S), or W + s S.
void merge_waveft(const Task& task) {
  const Tensor& spectrum = task.module.at("waveft_spectrum");
  const Elements elements = elements_of(task, spectrum);
  const Tensor& weight = task.weight();
  const bool transposed = is_transposed(task, weight, elements.out, elements.in);
  if (!task.config.is_set("use_idwt", true))
    throw Error(Errc::unsupported, "WaveFT without its inverse transform is not known here");
  task.base.edit(task.weight_name(),
                 std::make_unique<WaveletEdit>(task, extent(weight.shape()), transposed, spectrum, elements,
                                               task.config.text("wavelet_family", "db1")));
}

// C3A: W + blocks that are circulant.
void merge_c3a(const Task& task) {
  const Tensor& kernel = task.module.at("c3a_kernel");
  const Tensor& weight = task.weight();
  const Extent whole = extent(weight.shape());
  if (kernel.rank() != 3 ||
      whole != Extent{kernel.shape()[0] * kernel.shape()[2], kernel.shape()[1] * kernel.shape()[2]})
    throw Error(Errc::mismatch,
                fmt::format("c3a_kernel of the module {} has the shape {}, but its weight {}", quote(task.module.name),
                            to_string(kernel.shape()), to_string(weight.shape())));
  task.base.edit(task.weight_name(), std::make_unique<CirculantEdit>(task, whole, kernel, weight.dtype()));
}

}  // namespace ballast::peft
