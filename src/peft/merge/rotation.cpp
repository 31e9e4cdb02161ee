// OFT and BOFT turn the inputs of a weight: W becomes W R, with an orthogonal R that is made of blocks.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "peft/hints.hpp"
#include "peft/merge/cayley.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/rules.hpp"

namespace ballast::peft {
namespace {

// W becomes W M^T, with M = P D P^T: D has blocks on its diagonal, P puts row i where order[i] says.
struct Turn {
  std::vector<std::uint64_t> order;  // empty if no row moves
  std::vector<Matrix> blocks;        // a single one serves for all
};

class TurnEdit final : public Edit {
 public:
  using Make = std::function<std::vector<Turn>()>;
  // If there are scales, every row is multiplied by its own after the turns.
  TurnEdit(const Task& task, std::string step, Extent extent, std::uint64_t block, std::uint64_t memory_bytes,
           Make make, std::optional<Tensor> scales)
      : Edit(extent, std::move(step), parts_of(task)),
        block_(block),
        memory_bytes_(memory_bytes),
        make_(std::move(make)),
        scales_tensor_(std::move(scales)),
        is_exact_(task.options.peft_exact),
        inverse_(task.options.unmerge) {}

  std::uint64_t memory_bytes() const override { return memory_bytes_; }
  void prepare(const ReadRows&) override {
    turns_ = make_();
    if (scales_tensor_) scales_ = read_floats(*scales_tensor_);
    if (inverse_) std::ranges::reverse(turns_);
    for (Turn& turn : turns_) {  // for W R^T
      for (Matrix& block : turn.blocks) block = transposed(inverse_ ? inverse(block) : block);
    }
  }

  void apply(const Panel& panel, std::span<float> scratch) const override {
    if (inverse_) scale(panel);
    for (const Turn& turn : turns_) {
      if (!turn.order.empty()) move(panel, turn.order, false);
      turn_blocks(panel, turn, scratch);
      if (!turn.order.empty()) move(panel, turn.order, true);
    }
    if (!inverse_) scale(panel);
  }

 private:
  void turn_blocks(const Panel& panel, const Turn& turn, std::span<float> scratch) const {
    for (std::uint64_t at = 0, i = 0; at < panel.columns; at += block_, ++i) {
      const kernels::MatrixView rotation = turn.blocks[turn.blocks.size() == 1 ? 0 : i].view();
      const kernels::MatrixView inputs{panel.values.data() + at, panel.count, block_, panel.columns};
      if (is_exact_) {
        kernels::multiply_in_order(inputs, rotation, scratch.data() + at, panel.columns);
      } else {
        kernels::multiply(inputs, rotation, 1, 0, scratch.data() + at, panel.columns);
      }
    }
    std::ranges::copy(scratch.first(panel.values.size()), panel.values.begin());
  }

  static void move(const Panel& panel, std::span<const std::uint64_t> order, bool back) {
    std::vector<float> moved(panel.columns);
    for (std::uint64_t i = 0; i < panel.count; ++i) {
      const auto row = panel.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) moved[back ? j : order[j]] = row[back ? order[j] : j];
      std::ranges::copy(moved, row.begin());
    }
  }

  void scale(const Panel& panel) const {
    if (scales_.empty()) return;
    for (std::uint64_t i = 0; i < panel.count; ++i) {
      const float by = scales_[panel.first + i];
      for (float& value : panel.row(i)) value = inverse_ ? value / by : value * by;
    }
  }

  std::uint64_t block_, memory_bytes_;
  Make make_;
  std::optional<Tensor> scales_tensor_;
  bool is_exact_, inverse_;
  std::vector<Turn> turns_;    // by prepare()
  std::vector<float> scales_;  // likewise
};

// PEFT has 5 terms. Each is a product of matrices, and a series that converges is exact to a float long before this.
constexpr std::uint64_t kMostTerms = 100;

// The size of a block that has so many elements above its diagonal.
std::uint64_t size_of_triangle(std::uint64_t elements) {
  std::uint64_t size = 1;
  while (size * (size - 1) / 2 < elements) ++size;
  return size;
}

// The order in which a factor of a butterfly takes inputs: in each block of `length`, the even pieces of `piece` inputs
// first.
std::vector<std::uint64_t> butterfly_order(std::uint64_t inputs, std::uint64_t length, std::uint64_t piece) {
  std::vector<std::uint64_t> order;
  for (std::uint64_t begin = 0; begin < inputs; begin += length) {
    for (std::uint64_t odd = 0; odd < 2; ++odd) {
      for (std::uint64_t at = odd * piece; at < length; at += 2 * piece) {
        for (std::uint64_t i = 0; i < piece; ++i) order.push_back(begin + at + i);
      }
    }
  }
  return order;
}

// A factor of a butterfly pairs pieces of half a block, over stretches that double from factor to factor. There must be
// as many pieces as that, and they must be whole.
bool is_butterfly(std::uint64_t factors, std::uint64_t blocks, std::uint64_t size) {
  if (factors <= 1) return true;
  if (size < 2 || size % 2 != 0 || factors > 64) return false;
  return blocks != 0 && blocks % (std::uint64_t{1} << (factors - 1)) == 0;
}

}  // namespace

// OFT: W R^T. The blocks of R are Cayley transforms of skew-symmetric matrices, whose upper triangles the adapter has.
void merge_oft(const Task& task) {
  const Tensor triangles = task.module.at("oft_R.weight");
  const Tensor& weight = task.weight();
  const Extent whole = extent(weight.shape()), of_r = extent(triangles.shape());
  const std::uint64_t size = size_of_triangle(of_r.columns);
  const bool is_shared = of_r.rows == 1;
  if (size * (size - 1) / 2 != of_r.columns || whole.columns % size != 0 ||
      (!is_shared && of_r.rows * size != whole.columns))
    throw_wrong_blocks(task, of_r.rows, size);
  const bool series = task.config.is_set("use_cayley_neumann", true), coft = task.config.is_set("coft");
  const std::uint64_t terms = task.config.count("num_cayley_neumann_terms", 5);
  if (series && terms > kMostTerms)
    throw Error(Errc::unsupported,
                fmt::format("the adapter computes the rotations of {} by a series of {} terms, but at most {} "
                            "are allowed",
                            quote(task.module.name), terms, kMostTerms))
        .hint("correct num_cayley_neumann_terms in adapter_config.json: PEFT has 5");
  // PEFT divides by the root of the number of blocks.
  const double most = coft ? task.config.number("eps", 6e-5) / std::sqrt(static_cast<double>(of_r.rows)) : 0;
  const auto make = [=] {
    const Matrix values = read_matrix(triangles);
    Turn turn;
    for (std::uint64_t i = 0; i < values.rows(); ++i) {
      std::vector<double> skew = skew_symmetric(values.row(i), size);
      if (coft) constrain(skew, most);
      turn.blocks.push_back(series ? neumann(skew, size, terms) : cayley(skew, size));
    }
    return std::vector<Turn>{std::move(turn)};
  };
  task.edit(task.weight_name(),
            std::make_unique<TurnEdit>(task, fmt::format("OFT by blocks of {}", size), whole, size,
                                       of_r.rows * size * size * sizeof(float), make, std::nullopt));
}

// BOFT: W M^T s, where M is a product of butterflies' factors.
void merge_boft(const Task& task) {
  const Tensor rotations = task.module.at("boft_R");
  const Tensor& weight = task.weight();
  const Extent whole = extent(weight.shape());
  const Shape& shape = rotations.shape();
  if (shape.rank() != 4 || rotations.numel() == 0 || shape[2] != shape[3] || shape[1] * shape[2] != whole.columns)
    throw_wrong_blocks(task, shape.rank() > 1 ? shape[1] : 0, shape.rank() > 2 ? shape[2] : 0);
  if (!is_butterfly(shape[0], shape[1], shape[2]))
    throw Error(Errc::mismatch,
                fmt::format("boft_R of the module {} has the shape {}: {} factors of a butterfly need "
                            "blocks of an even size, a multiple of {} of them",
                            quote(task.module.name), to_string(shape), shape[0],
                            shape[0] > 64 ? "2^63" : std::to_string(std::uint64_t{1} << (shape[0] - 1))))
        .hint(kIsItTheConfig);
  const Tensor& scales = task.module.at("boft_s");
  if (scales.numel() != whole.rows) require_shape(task.module, "boft_s", {whole.rows, 1});
  const std::uint64_t factors = shape[0], blocks = shape[1], size = shape[2], inputs = whole.columns;
  const auto make = [=] {
    const Matrix values = read_matrix(rotations, {factors * blocks, size * size});
    std::vector<Turn> turns(factors);
    for (std::uint64_t i = 0; i < factors * blocks; ++i) {
      const auto data = values.row(i);
      std::vector<double> skew(size * size);
      for (std::uint64_t j = 0; j < size; ++j) {
        for (std::uint64_t k = 0; k < size; ++k)
          skew[j * size + k] = 0.5 * (static_cast<double>(data[j * size + k]) - data[k * size + j]);
      }
      turns[i / blocks].blocks.push_back(cayley(skew, size));
    }
    for (std::uint64_t i = 0; factors > 1 && i < factors; ++i)
      turns[i].order = butterfly_order(inputs, inputs / std::max<std::uint64_t>(blocks >> i, 1), size / 2);
    return turns;
  };
  task.edit(task.weight_name(), std::make_unique<TurnEdit>(task, fmt::format("BOFT by {} factors", factors), whole,
                                                           size, rotations.numel() * sizeof(float), make, scales));
}

}  // namespace ballast::peft
