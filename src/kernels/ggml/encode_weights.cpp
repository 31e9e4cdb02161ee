#include "kernels/ggml/encode_weights.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/ggml/encode.hpp"
#include "kernels/ggml/encode_simd.hpp"

namespace ballast::kernels {
namespace {

// What a magnitude is compared with: the mean square of the elements of a row or of a block, times a factor. `over` is
// the number of elements as ggml has it, which decides when the sum overflows.
struct Spread {
  DType type;
  bool is_of_row;
  float times, over;
};
constexpr Spread kSpreads[] = {
    {DType::q4_0, true, 1, 0},      {DType::q4_1, true, 1, 0},       {DType::q5_0, true, 1, 0},
    {DType::q5_1, true, 1, 0},      {DType::q2_k, false, 1, 256},    {DType::q3_k, false, 2, 256},
    {DType::q4_k, false, 2, 256},   {DType::q5_k, false, 2, 256},    {DType::iq4_nl, false, 1, 16},
    {DType::iq4_xs, false, 1, 128}, {DType::iq2_xxs, false, 1, 256}, {DType::iq2_xs, false, 1, 256},
    {DType::iq2_s, false, 2, 256},  {DType::iq3_xxs, false, 2, 256}, {DType::iq3_s, false, 2, 256},
    {DType::iq1_s, false, 2, 256},  {DType::iq1_m, false, 2, 256},
};

const Spread* spread_of(DType type) noexcept {
  const auto* found = std::ranges::find(kSpreads, type, &Spread::type);
  return found == std::end(kSpreads) ? nullptr : found;
}

// The types that have weights even without an importance matrix.
bool weighs_by_magnitude(DType type) noexcept {
  return type == DType::iq2_s || type == DType::iq3_xxs || type == DType::iq3_s || type == DType::iq1_m;
}

// The squares of up to four rows, each added in its order; the rows do not wait for each other.
void sum_rows(const float* values, std::size_t row, std::size_t count, float* sums) {
  const float *a = values, *b = count > 1 ? a + row : a, *c = count > 2 ? b + row : a, *d = count > 3 ? c + row : a;
  float sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
  for (std::size_t i = 0; i < row; ++i) {
    sum_a += a[i] * a[i];
    sum_b += b[i] * b[i];
    sum_c += c[i] * c[i];
    sum_d += d[i] * d[i];
  }
  const float all[] = {sum_a, sum_b, sum_c, sum_d};
  std::copy_n(all, count, sums);
}

float sum_of_not_finite_row(const float* values, std::size_t row) {
  float sum = 0;
  for (std::size_t i = 0; i < row; ++i) sum += made_finite(values[i]) * made_finite(values[i]);
  return sum;
}

}  // namespace

bool takes_importance(DType type) noexcept { return type == DType::q6_k || spread_of(type) != nullptr; }

bool importance_needs_rows(DType type) noexcept {
  const Spread* spread = spread_of(type);
  return spread != nullptr && spread->is_of_row;
}

Weights::Weights(DType type, std::span<const float> values, std::span<const float> importance)
    : type_(type), values_(values), importance_(importance) {}

const float* Weights::next(const float* finite, std::size_t count) {
  if (!importance_.empty())
    weigh_by_importance(finite, count);
  else if (weighs_by_magnitude(type_))
    weigh_by_magnitude(finite, count);
  else
    return nullptr;
  done_ += count;
  return weights_.data();
}

void Weights::weigh_by_magnitude(const float* finite, std::size_t count) {
  spreads_.fill(0);
  if (type_ == DType::iq2_s) find_spreads(finite, count);
  for (float& spread : spreads_) spread *= 0.25F;
  add_squares(finite, spreads_.data(), info(type_).block_elements, count, weights_.data());
}

void Weights::weigh_by_importance(const float* finite, std::size_t count) {
  repeat_importance(count);
  if (type_ == DType::q6_k) return;
  find_spreads(finite, count);
  multiply_by_magnitude(finite, spreads_.data(), info(type_).block_elements, count, weights_.data());
}

void Weights::repeat_importance(std::size_t count) {
  for (std::size_t i = 0; i < count;) {
    const std::size_t at = (done_ + i) % importance_.size(), some = std::min(importance_.size() - at, count - i);
    std::ranges::copy(importance_.subspan(at, some), weights_.begin() + static_cast<std::ptrdiff_t>(i));
    i += some;
  }
}

void Weights::find_spreads(const float* finite, std::size_t count) {
  const Spread& spread = *spread_of(type_);
  const std::size_t elements = info(type_).block_elements, blocks = count / elements;
  if (spread.is_of_row) {
    for (std::size_t i = 0; i < blocks; ++i) spreads_[i] = spread_of_row((done_ + i * elements) / importance_.size());
    return;
  }
  sum_squares(finite, elements, blocks, spreads_.data());
  for (std::size_t i = 0; i < blocks; ++i) spreads_[i] = spread.times * spreads_[i] / spread.over;
}

float Weights::spread_of_row(std::size_t row) {
  const std::size_t size = importance_.size();
  if (row >= rows_to_) {
    rows_from_ = row;
    rows_to_ = std::min(row + row_spreads_.size(), values_.size() / size);
    sum_rows(values_.data() + row * size, size, rows_to_ - row, row_spreads_.data());
    for (std::size_t i = 0; i < rows_to_ - row; ++i) {
      float& sum = row_spreads_[i];
      if (!std::isfinite(sum)) sum = sum_of_not_finite_row(values_.data() + (row + i) * size, size);
      sum /= static_cast<float>(size);
    }
  }
  return row_spreads_[row - rows_from_];
}

}  // namespace ballast::kernels
