// Methods that turn the inputs of a weight: W R, with R orthogonal and made of blocks or reflections. Rows stay apart.
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

// W becomes W M^T, where M = P D P^T: D has blocks on its diagonal, P puts row i where order[i] says.
struct Turn {
  std::vector<std::uint64_t> order;  // none where nothing moves
  std::vector<Matrix> blocks;        // one serves all where there is one
};

Matrix to_matrix(std::span<const double> values, std::uint64_t size) {
  return {{size, size}, std::vector<float>(values.begin(), values.end())};
}

// (I - S) (I + S)^-1, a rotation where S is skew-symmetric.
Matrix cayley(std::span<const double> skew, std::uint64_t size) {
  std::vector<double> plus(skew.begin(), skew.end()), minus(size * size);
  for (std::size_t i = 0; i < minus.size(); ++i) minus[i] = -plus[i];
  for (std::uint64_t i = 0; i < size; ++i) {
    plus[i * size + i] += 1;
    minus[i * size + i] += 1;
  }
  return to_matrix(solve_right(plus, minus, size), size);
}

// A series that was cut is no rotation, so its transpose would not do.
Matrix inverse(const Matrix& matrix) {
  const std::uint64_t size = matrix.rows();
  std::vector<double> one(size * size);
  for (std::uint64_t i = 0; i < size; ++i) one[i * size + i] = 1;
  return to_matrix(solve_right(std::vector<double>(matrix.values().begin(), matrix.values().end()), one, size), size);
}

class TurnEdit final : public Edit {
 public:
  using Make = std::function<std::vector<Turn>()>;
  // After the turns, every row is multiplied by its scale, where there are scales.
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
    for (Turn& turn : turns_) {  // W R^T is what is wanted
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

// The upper triangle, row by row, and its negative below.
std::vector<double> skew_symmetric(std::span<const float> triangle, std::uint64_t size) {
  std::vector<double> result(size * size);
  auto from = triangle.begin();
  for (std::uint64_t i = 0; i < size; ++i) {
    for (std::uint64_t j = i + 1; j < size; ++j, ++from) {
      result[i * size + j] = *from;
      result[j * size + i] = -static_cast<double>(*from);
    }
  }
  return result;
}

// PEFT has 5; each is a product of matrices, and a float has seen the last of a series that converges long before.
constexpr std::uint64_t kMostTerms = 100;

// I + 2Q + 2Q^2 + ... + 2Q^(terms-2) + Q^(terms-1): nearly the Cayley transform where Q is small. In floats, as PEFT.
Matrix neumann(const Matrix& skew, std::uint64_t terms) {
  Matrix result({skew.rows(), skew.rows()}), power = skew;
  for (std::uint64_t i = 0; i < skew.rows(); ++i) result(i, i) = 1;
  const auto add = [&](float factor) {
    for (std::size_t i = 0; i < result.values().size(); ++i) result.values()[i] += factor * power.values()[i];
  };
  if (terms > 1) add(2);
  if (terms <= 2) return result;
  power = product(power, skew);
  add(2);
  for (std::uint64_t term = 3; term + 1 < terms; ++term) {
    power = product(power, skew);
    add(2);
  }
  power = product(power, skew);
  add(1);
  return result;
}

// COFT keeps a rotation near to none: what is longer is cut.
void constrain(std::span<double> skew, double most) {
  double sum = 0;
  for (const double value : skew) sum += value * value;
  const double norm = std::sqrt(sum);
  if (norm <= most) return;
  for (double& value : skew) value *= most / norm;
}

// The size of a block that has so many elements above its diagonal.
std::uint64_t size_of_triangle(std::uint64_t elements) {
  std::uint64_t size = 1;
  while (size * (size - 1) / 2 < elements) ++size;
  return size;
}

// The order in which a butterfly's factor takes blocks of `length` inputs: in each, pieces of `piece`, even ones first.
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

[[noreturn]] void throw_wrong_blocks(const Task& task, std::uint64_t blocks, std::uint64_t size, const Tensor& weight) {
  throw Error(Errc::mismatch,
              fmt::format("the adapter turns the inputs of {} by {} blocks of {}, but its weight has the "
                          "shape {}",
                          quote(task.module.name), blocks, size, to_string(weight.shape())))
      .hint("the adapter belongs to another model, or to another size of it");
}

// A factor of a butterfly pairs pieces of half a block, in stretches that double from factor to factor: those must be
// there, and be whole.
bool is_butterfly(std::uint64_t factors, std::uint64_t blocks, std::uint64_t size) {
  if (factors <= 1) return true;
  if (size < 2 || size % 2 != 0 || factors > 64) return false;
  return blocks != 0 && blocks % (std::uint64_t{1} << (factors - 1)) == 0;
}

// Reflections, one after the other: W (I - 2 u u^T) ...; or all at once where the u are orthonormal.
class ReflectionEdit final : public Edit {
 public:
  ReflectionEdit(const Task& task, Extent extent, Tensor vectors, bool orthonormal)
      : Edit(extent, "HRA", {std::move(vectors)}), orthonormal_(orthonormal), inverse_(task.options.unmerge) {}

  std::uint64_t memory_bytes() const override { return parts()[0].numel() * sizeof(float); }

  void prepare(const ReadRows&) override {
    vectors_ = transposed(read_matrix(parts()[0]));  // [rank, in]
    for (std::uint64_t i = 0; i < vectors_.rows(); ++i) {
      if (orthonormal_) {
        for (std::uint64_t j = 0; j < i; ++j) take_away(vectors_.row(i), vectors_.row(j), 1);
      }
      normalize(vectors_.row(i));
    }
  }

  void apply(const Panel& panel, std::span<float>) const override {
    for (std::uint64_t k = 0; k < panel.count; ++k) {
      for (std::uint64_t i = 0; i < vectors_.rows(); ++i)
        take_away(panel.row(k), vectors_.row(inverse_ ? vectors_.rows() - 1 - i : i), 2);
    }
  }

 private:
  // x - times (x . u) u
  static void take_away(std::span<float> x, std::span<const float> u, double times) {
    double dot = 0;
    for (std::size_t i = 0; i < x.size(); ++i) dot += static_cast<double>(x[i]) * u[i];
    const auto factor = static_cast<float>(times * dot);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= factor * u[i];
  }

  static void normalize(std::span<float> x) {
    double sum = 0;
    for (const float value : x) sum += static_cast<double>(value) * value;
    const auto norm = static_cast<float>(std::sqrt(sum));
    for (float& value : x) value /= norm;
  }

  bool orthonormal_, inverse_;
  Matrix vectors_;  // by prepare()
};

// Pairs of outputs, turned by an angle and stretched. Rows i and i + half of a group go together.
class RoadEdit final : public Edit {
 public:
  RoadEdit(Extent extent, Tensor theta, Tensor alpha, std::string variant, std::uint64_t group, bool inverse)
      : Edit(extent, "RoAd", {std::move(theta), std::move(alpha)}),
        variant_(std::move(variant)),
        group_(group),
        inverse_(inverse) {}

  std::uint64_t memory_bytes() const override { return extent().rows * 2 * sizeof(float); }
  std::uint64_t rows_together() const override { return group_; }

  void prepare(const ReadRows&) override {
    const std::vector<float> theta = read_floats(parts()[0]), alpha = read_floats(parts()[1]);
    const std::uint64_t half = group_ / 2;
    for (std::uint64_t i = 0; i < extent().rows; ++i) {
      const std::uint64_t group = i / group_, in_group = i % group_;
      std::uint64_t cosine = i, sine = i;
      if (variant_ == "road_1") cosine = sine = group * half + in_group % half;
      if (variant_ == "road_4") {
        cosine = group * 2 * group_ + in_group;
        sine = cosine + group_;
      }
      along_.push_back(alpha[cosine] * std::cos(theta[cosine]));
      across_.push_back(alpha[sine] * std::sin(theta[sine]));
    }
  }

  void apply(const Panel& panel, std::span<float>) const override {
    const std::uint64_t half = group_ / 2;
    for (std::uint64_t i = 0; i < panel.count; ++i) {
      if ((panel.first + i) % group_ >= half) continue;
      turn(panel.first + i, panel.first + i + half, panel.row(i), panel.row(i + half));
    }
  }

 private:
  void turn(std::uint64_t a, std::uint64_t b, std::span<float> x, std::span<float> y) const {
    float m[2][2] = {{along_[a], -across_[a]}, {across_[b], along_[b]}};
    if (inverse_) {
      const float det = m[0][0] * m[1][1] - m[0][1] * m[1][0];
      if (det == 0) throw Error(Errc::unsupported, "RoAd flattened a pair of outputs, which cannot be taken out again");
      std::swap(m[0][0], m[1][1]);
      m[0][0] /= det;
      m[1][1] /= det;
      m[0][1] /= -det;
      m[1][0] /= -det;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float first = x[i], second = y[i];
      x[i] = m[0][0] * first + m[0][1] * second;
      y[i] = m[1][0] * first + m[1][1] * second;
    }
  }

  std::string variant_;
  std::uint64_t group_;
  bool inverse_;
  std::vector<float> along_, across_;  // by prepare(); a number for each output
};

}  // namespace

// OFT: W R^T. The blocks of R are Cayley transforms of skew-symmetric matrices, of which the adapter has the upper
// triangles.
void merge_oft(const Task& task) {
  const Tensor triangles = task.module.at("oft_R.weight");
  const Tensor& weight = task.base.at(task.weight_name());
  const Extent whole = extent(weight.shape()), of_r = extent(triangles.shape());
  const std::uint64_t size = size_of_triangle(of_r.columns);
  const bool is_shared = of_r.rows == 1;
  if (size * (size - 1) / 2 != of_r.columns || whole.columns % size != 0 ||
      (!is_shared && of_r.rows * size != whole.columns))
    throw_wrong_blocks(task, of_r.rows, size, weight);
  const bool series = task.settings.flag("use_cayley_neumann", true), coft = task.settings.flag("coft");
  const std::uint64_t terms = task.settings.count("num_cayley_neumann_terms", 5);
  if (series && terms > kMostTerms)
    throw Error(Errc::unsupported,
                fmt::format("the adapter computes the rotations of {} by a series of {} terms, of which "
                            "{} are the most",
                            quote(task.module.name), terms, kMostTerms))
        .hint("correct num_cayley_neumann_terms in adapter_config.json: PEFT has 5");
  // PEFT divides by the root of the number of blocks.
  const double most = coft ? task.settings.number("eps") / std::sqrt(static_cast<double>(of_r.rows)) : 0;
  const auto make = [=] {
    const Matrix values = read_matrix(triangles);
    Turn turn;
    for (std::uint64_t i = 0; i < values.rows(); ++i) {
      std::vector<double> skew = skew_symmetric(values.row(i), size);
      if (coft) constrain(skew, most);
      turn.blocks.push_back(series ? neumann(to_matrix(skew, size), terms) : cayley(skew, size));
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
  const Tensor& weight = task.base.at(task.weight_name());
  const Extent whole = extent(weight.shape());
  const Shape& shape = rotations.shape();
  if (shape.rank() != 4 || rotations.numel() == 0 || shape[2] != shape[3] || shape[1] * shape[2] != whole.columns)
    throw_wrong_blocks(task, shape.rank() > 1 ? shape[1] : 0, shape.rank() > 2 ? shape[2] : 0, weight);
  if (!is_butterfly(shape[0], shape[1], shape[2]))
    throw Error(Errc::mismatch,
                fmt::format("boft_R of the module {} has the shape {}: {} factors of a butterfly need "
                            "blocks of an even size, a multiple of {} of them",
                            quote(task.module.name), to_string(shape), shape[0],
                            shape[0] > 64 ? "2^63" : std::to_string(std::uint64_t{1} << (shape[0] - 1))))
        .hint("is this the adapter_config.json that the tensors were saved with?");
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

// HRA: W H1 H2 ..., reflections along the columns of hra_u.
void merge_hra(const Task& task) {
  const Tensor& vectors = task.module.at("hra_u");
  const Tensor& weight = task.base.at(task.weight_name());
  const Extent whole = extent(weight.shape());
  if (vectors.rank() != 2 || vectors.shape()[0] != whole.columns)
    throw_wrong_blocks(task, 1, vectors.rank() == 0 ? 0 : vectors.shape()[0], weight);
  task.edit(task.weight_name(), std::make_unique<ReflectionEdit>(task, whole, vectors, task.settings.flag("apply_GS")));
}

// RoAd: R W and R b, where R turns pairs of outputs.
void merge_road(const Task& task) {
  const Tensor& theta = task.module.at("road_theta");
  const Tensor& alpha = task.module.at("road_alpha");
  const Tensor& weight = task.base.at(task.weight_name());
  const Extent whole = extent(weight.shape());
  const std::string variant = task.settings.text("variant", "road_1");
  const std::uint64_t group = task.settings.count("group_size", 64);
  const bool is_known = variant == "road_1" || variant == "road_2" || variant == "road_4";
  const std::uint64_t count = variant == "road_1" ? whole.rows / 2 : variant == "road_4" ? whole.rows * 2 : whole.rows;
  if (!is_known) throw Error(Errc::unsupported, fmt::format("RoAd of the variant {} is not known", quote(variant)));
  if (group == 0 || group % 2 != 0 || whole.rows % group != 0 || theta.numel() != count || alpha.numel() != count)
    throw_wrong_blocks(task, theta.numel(), group, weight);
  const bool inverse = task.options.unmerge;
  task.edit(task.weight_name(), std::make_unique<RoadEdit>(whole, theta, alpha, variant, group, inverse));
  if (task.base.find(task.bias_name()) != nullptr)
    task.edit(task.bias_name(),
              std::make_unique<RoadEdit>(Extent{whole.rows, 1}, theta, alpha, variant, group, inverse));
}

}  // namespace ballast::merging
