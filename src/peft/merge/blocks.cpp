// Methods that cut a weight into blocks: MiSS repeats one block, GraLoRA has a small product for each. And DeLoRA,
// whose product is normalized.
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

// Element (o, i) gets block[i mod rank, o mod width].
class TiledEdit final : public AdditiveEdit {
 public:
  TiledEdit(const Task& task, Extent extent, Tensor block)
      : AdditiveEdit(extent, fmt::format("MiSS of rank {}", block.shape()[0]), {std::move(block)}, task.addition({})) {}

  void prepare(const ReadRows&) override { tile_ = transposed(read_matrix(parts()[0])); }  // [width, rank]

 private:
  void fill(const Panel& panel, std::span<float> out) const override {
    for (std::uint64_t k = 0; k < panel.count; ++k) {
      const auto tile = tile_.row((panel.first + k) % tile_.rows());
      for (std::uint64_t j = 0; j < panel.columns; ++j) out[k * panel.columns + j] = tile[j % tile.size()];
    }
  }

  Matrix tile_;  // by prepare()
};

// W + W B + B, block by block; a block of rows has its own B.
class BatEdit final : public Edit {
 public:
  BatEdit(Extent extent, Tensor blocks)
      : Edit(extent, fmt::format("MiSS of rank {}", blocks.shape()[1]), {std::move(blocks)}) {}

  void prepare(const ReadRows&) override {
    const Shape& shape = parts()[0].shape();
    blocks_ = read_matrix(parts()[0], {shape[0] * shape[1], shape[2]});
  }

  void apply(const Panel& panel, std::span<float> scratch) const override {
    const std::uint64_t size = blocks_.columns();
    for (std::uint64_t k = 0; k < panel.count; ++k) {
      const std::uint64_t row = panel.first + k;
      const auto values = panel.row(k);
      const auto turned = scratch.first(values.size());
      for (std::uint64_t at = 0; at < values.size(); at += size) {
        kernels::multiply_in_order({values.data() + at, 1, size, size}, blocks_.view(row / size * size, size),
                                   turned.data() + at, size);
      }
      const auto added = blocks_.row(row);
      for (std::uint64_t j = 0; j < values.size(); ++j) values[j] += turned[j] + added[j % size];
    }
  }

 private:
  Matrix blocks_;  // by prepare()
};

[[noreturn]] void throw_wrong_block(const Task& task, const Tensor& block) {
  throw Error(Errc::mismatch,
              fmt::format("the block of the module {} has the shape {}, which does not go with its weight "
                          "of {}",
                          quote(task.module.name), to_string(block.shape()), to_string(task.weight().shape())))
      .hint(kAnotherModel);
}

}  // namespace

void merge_miss(const Task& task) {
  const Tensor& block = task.module.at("miss_block");
  const Extent whole = extent(task.weight().shape());
  const Shape& shape = block.shape();
  if (shape.rank() == 3) {
    if (shape[1] != shape[2] || shape[0] * shape[1] != whole.rows || shape[2] == 0 || whole.columns % shape[2] != 0)
      throw_wrong_block(task, block);
    task.refuse_unmerge("the \"bat\" form of MiSS multiplies and adds at once");
    return task.edit(task.weight_name(), std::make_unique<BatEdit>(whole, block));
  }
  if (shape.rank() != 2 || shape[0] == 0 || shape[1] == 0 || whole.rows % shape[1] != 0) throw_wrong_block(task, block);
  task.base.edit(task.weight_name(), std::make_unique<TiledEdit>(task, whole, block));
}

// GraLoRA: the weight is cut into k by k blocks, and block (m, n) gets a product of rank r / k, whose factors are parts
// of B[m] and A[n]. All of them are one product here, whose columns are (n, m, s).
void merge_gralora(const Task& task) {
  const Tensor a = task.module.at("gralora_A"), b = task.module.at("gralora_B");
  const Tensor* general_a = task.module.find("gralora_A_general.weight");
  const Tensor* general_b = task.module.find("gralora_B_general.weight");
  if (a.rank() != 3 || a.numel() == 0 || a.shape()[2] % a.shape()[0] != 0) throw_wrong_block(task, a);
  const std::uint64_t blocks = a.shape()[0], rank = a.shape()[2], part = rank / blocks, in = a.shape()[1];
  const std::uint64_t out = b.rank() == 3 ? b.shape()[2] : 0;
  require_shape(task.module, "gralora_B", {blocks, rank, out});
  const bool is_hybrid = general_a != nullptr && general_b != nullptr;
  const std::uint64_t hybrid = is_hybrid ? general_a->shape()[0] : 0, columns = blocks * rank + hybrid;
  if (is_hybrid) {
    require_shape(task.module, "gralora_A_general.weight", {hybrid, blocks * in});
    require_shape(task.module, "gralora_B_general.weight", {blocks * out, hybrid});
  }
  LowRank low_rank{
      [=, general_a = is_hybrid ? *general_a : Tensor(), general_b = is_hybrid ? *general_b : Tensor()] {
        const Matrix of_a = read_matrix(a, {blocks * in, rank}), of_b = read_matrix(b, {blocks * rank, out});
        Factors factors{Matrix({blocks * out, columns}), Matrix({columns, blocks * in})};
        for (std::uint64_t n = 0; n < blocks; ++n) {
          for (std::uint64_t m = 0; m < blocks; ++m) {
            for (std::uint64_t s = 0; s < part; ++s) {
              const std::uint64_t column = (n * blocks + m) * part + s;
              for (std::uint64_t o = 0; o < out; ++o)
                factors.left(m * out + o, column) = of_b(m * rank + n * part + s, o);
              for (std::uint64_t i = 0; i < in; ++i) factors.right(column, n * in + i) = of_a(n * in + i, m * part + s);
            }
          }
        }
        const Matrix more_a = read_matrix(general_a), more_b = read_matrix(general_b);
        for (std::uint64_t h = 0; h < hybrid; ++h) {
          for (std::uint64_t o = 0; o < blocks * out; ++o) factors.left(o, blocks * rank + h) = more_b(o, h);
          std::ranges::copy(more_a.row(h), factors.right.row(blocks * rank + h).begin());
        }
        return factors;
      },
      columns, task.config.number("alpha", 64) / static_cast<double>(rank + hybrid)};
  add_low_rank(task, fmt::format("GraLoRA of rank {}", rank), blocks * out, blocks * in, {a.dtype()},
               std::move(low_rank));
}

// DeLoRA: W + B diag(lambda / r / (|A| |B|)) A * w_norm, with norms of A's rows, of B's columns, of the base's columns.
void merge_delora(const Task& task) {
  const Tensor a = task.module.at("delora_A"), b = task.module.at("delora_B");
  const Tensor lambda = task.module.at("delora_lambda"), norms = task.module.at("delora_w_norm");
  const Extent of_a = extent(a.shape()), of_b = extent(b.shape());
  require_shape(task.module, "delora_B", {of_b.rows, of_a.rows});
  require_shape(task.module, "delora_lambda", {1});
  require_shape(task.module, "delora_w_norm", {of_a.columns});
  LowRank low_rank{[=] {
                     Factors factors{read_matrix(b), read_matrix(a)};
                     const float strength = read_floats(lambda)[0] / static_cast<float>(of_a.rows);
                     const std::vector<float> by_input = read_floats(norms);
                     for (std::uint64_t r = 0; r < of_a.rows; ++r) {
                       const double in_a = sum_of_squares(factors.right.row(r));
                       double in_b = 0;
                       for (std::uint64_t o = 0; o < of_b.rows; ++o)
                         in_b += static_cast<double>(factors.left(o, r)) * factors.left(o, r);
                       const float scale = strength / (std::max(static_cast<float>(std::sqrt(in_a)), 1e-4F) *
                                                       std::max(static_cast<float>(std::sqrt(in_b)), 1e-4F));
                       for (std::uint64_t o = 0; o < of_b.rows; ++o) factors.left(o, r) *= scale;
                       for (std::uint64_t i = 0; i < of_a.columns; ++i) factors.right(r, i) *= by_input[i];
                     }
                     return factors;
                   },
                   of_a.rows};
  add_low_rank(task, fmt::format("DeLoRA of rank {}", of_a.rows), of_b.rows, of_a.columns, {task.weight().dtype()},
               std::move(low_rank));
}

}  // namespace ballast::peft
