// How much each element counts when ggml fits scales and codes to a block: the weights of an importance matrix,
// adjusted by the magnitude of the element; or, for some types without such a matrix, the magnitude alone.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

// The weights of the values, a stage at a time, in their order.
class Weights {
 public:
  static constexpr std::size_t kStageElements = 2048;  // whole blocks of any type

  // `importance` has a number for each element of a row, or is empty. The values are whole rows and outlive this.
  Weights(DType type, std::span<const float> values, std::span<const float> importance);

  // The weights of the next elements: whole blocks, at most a stage. `finite` are these elements with those that are
  // not finite replaced. Null if the type needs no weights.
  const float* next(const float* finite, std::size_t count);

 private:
  void weigh_by_magnitude(const float* finite, std::size_t count);
  void weigh_by_importance(const float* finite, std::size_t count);
  void repeat_importance(std::size_t count);
  void find_spreads(const float* finite, std::size_t count);
  float spread_of_row(std::size_t row);

  DType type_;
  std::span<const float> values_, importance_;
  std::size_t done_ = 0;                // elements
  std::array<float, 4> row_spreads_{};  // of the rows from rows_from_ on
  std::size_t rows_from_ = 0, rows_to_ = 0;
  std::array<float, kStageElements / 32> spreads_;  // of the blocks of a stage
  alignas(64) std::array<float, kStageElements> weights_;
};

}  // namespace ballast::kernels
