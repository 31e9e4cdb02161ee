// A product of two thin matrices, added to a weight: what most adapters come down to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "peft/merge/edit.hpp"
#include "peft/merge/module.hpp"

namespace ballast::peft {

// left [rows, rank] times right [rank, columns].
struct Factors {
  Matrix left;
  Matrix right;
};

struct LowRank {
  std::function<Factors()> make;  // reads the adapter
  std::uint64_t rank;
  double times = 1;  // by which the product is multiplied
  double over = 1;   // by which the product is divided then

  // That the factors of a weight of this extent take.
  std::uint64_t memory_bytes(Extent extent) const { return (extent.rows + extent.columns) * rank * sizeof(float); }
  LowRank transposed() const;
};

// The product of two tensors of the adapter, which are read when it is made.
LowRank product_later(const Tensor& left, Extent left_extent, const Tensor& right, Extent right_extent,
                      double times = 1);

EditPtr low_rank_edit(Extent extent, std::string step, std::vector<Tensor> parts, Addition addition, LowRank low_rank);

// The rows of left * right that the panel stands for. Multiplied in order, they have the same bits on every machine.
void fill_product(const Factors& factors, bool in_order, const Panel& panel, std::span<float> out);

// Adds a product that is [out, in] to the module's weight, which may be kept the other way round. With peft_exact, the
// product is rounded to `dtypes` in turn before.
void add_low_rank(const Task& task, std::string step, std::uint64_t out, std::uint64_t in, std::vector<DType> dtypes,
                  LowRank low_rank);

std::vector<Tensor> parts_of(const Task& task);  // all tensors of the module, for provenance

}  // namespace ballast::peft
