// HRA reflects the inputs of a weight, RoAd turns pairs of its outputs.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/rules.hpp"

namespace ballast::peft {
namespace {

// Reflections one after the other, W (I - 2 u u^T) ..., or all at once if the vectors u are made orthonormal.
class ReflectionEdit final : public Edit {
 public:
  ReflectionEdit(const Task& task, Extent extent, Tensor vectors, bool orthonormal)
      : Edit(extent, "HRA", {std::move(vectors)}), orthonormal_(orthonormal), inverse_(task.options.unmerge) {}

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
    const auto norm = static_cast<float>(std::sqrt(sum_of_squares(x)));
    for (float& value : x) value /= norm;
  }

  bool orthonormal_, inverse_;
  Matrix vectors_;  // by prepare()
};

// Turns pairs of outputs by an angle and stretches them. Rows i and i + half of a group are a pair.
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

// HRA: W H1 H2 ..., reflections along the columns of hra_u.
void merge_hra(const Task& task) {
  const Tensor& vectors = task.module.at("hra_u");
  const Extent whole = extent(task.weight().shape());
  if (vectors.rank() != 2 || vectors.shape()[0] != whole.columns)
    throw_wrong_blocks(task, 1, vectors.rank() == 0 ? 0 : vectors.shape()[0]);
  task.edit(task.weight_name(), std::make_unique<ReflectionEdit>(task, whole, vectors, task.config.is_set("apply_GS")));
}

// RoAd: R W and R b, where R turns pairs of outputs.
void merge_road(const Task& task) {
  const Tensor& theta = task.module.at("road_theta");
  const Tensor& alpha = task.module.at("road_alpha");
  const Extent whole = extent(task.weight().shape());
  const std::string variant = task.config.text("variant", "road_1");
  const std::uint64_t group = task.config.count("group_size", 64);
  const bool is_known = variant == "road_1" || variant == "road_2" || variant == "road_4";
  const std::uint64_t count = variant == "road_1" ? whole.rows / 2 : variant == "road_4" ? whole.rows * 2 : whole.rows;
  if (!is_known) throw Error(Errc::unsupported, fmt::format("RoAd of the variant {} is not known", quote(variant)));
  if (group == 0 || group % 2 != 0 || whole.rows % group != 0 || theta.numel() != count || alpha.numel() != count)
    throw_wrong_blocks(task, theta.numel(), group);
  const bool inverse = task.options.unmerge;
  task.edit(task.weight_name(), std::make_unique<RoadEdit>(whole, theta, alpha, variant, group, inverse));
  if (task.base.find(task.bias_name()) != nullptr)
    task.edit(task.bias_name(),
              std::make_unique<RoadEdit>(Extent{whole.rows, 1}, theta, alpha, variant, group, inverse));
}

}  // namespace ballast::peft
