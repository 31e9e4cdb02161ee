// A product of two thin matrices, added to a weight: what most adapters come down to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ops/merge/edit.hpp"
#include "ops/merge/module.hpp"

namespace ballast::merging {

// left [rows, rank] times right [rank, columns].
struct Factors {
  Matrix left;
  Matrix right;
};

struct LowRank {
  std::function<Factors()> make;  // reads the adapter
  std::uint64_t rank;
  double times = 1;  // what the product is multiplied by, and then divided by
  double over = 1;

  // Of a weight of this extent, in bytes.
  std::uint64_t memory_bytes(Extent extent) const { return (extent.rows + extent.columns) * rank * sizeof(float); }
  LowRank transposed() const;
};

EditPtr low_rank_edit(Extent extent, std::string step, std::vector<Tensor> parts, Addition addition, LowRank low_rank);

// The rows of left * right that the panel stands for; in order, they have the same bits everywhere.
void fill_product(const Factors& factors, bool in_order, const Panel& panel, std::span<float> out);

// Adds it to the module's weight, which may be kept the other way round. The product is [out, in]; what is added is
// rounded, with peft_exact, to `dtypes` in turn.
void add_low_rank(const Task& task, std::string step, std::uint64_t out, std::uint64_t in, std::vector<DType> dtypes,
                  LowRank low_rank);

std::vector<Tensor> parts_of(const Task& task);  // all of the module's, for provenance

}  // namespace ballast::merging
