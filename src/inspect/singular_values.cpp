#include <ballast/singular_values.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ballast/error.hpp>

#include "core/progress_meter.hpp"
#include "inspect/change_rank.hpp"
#include "kernels/linear/spectrum.hpp"
#include "kernels/linear/svd.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kWidestMatrix = std::uint64_t{1} << 17;
constexpr std::uint64_t kExactSize = 4096;
constexpr std::uint64_t kExactElements = std::uint64_t{1} << 26;
constexpr std::uint64_t kMatrixPanelElements = std::uint64_t{1} << 19;
constexpr std::uint64_t kMatrixPasses = 3;

void check_matrix(const Tensor& tensor) {
  const DTypeKind kind = info(tensor.dtype()).kind;
  if (tensor.rank() != 2) throw Error(Errc::unsupported, "only a matrix has singular values");
  if (kind == DTypeKind::complex)
    throw Error(Errc::unsupported, "singular values of complex matrices are not computed");
  if (!tensor.has_data()) throw Error(Errc::unsupported, "the tensor has a dtype and a shape, but no data");
  if (tensor.shape()[1] > kWidestMatrix)
    throw Error(Errc::unsupported, "singular values of a matrix of more than 131072 columns are not computed");
}

// Reads a matrix a few whole rows at a time, as F32.
class MatrixReader {
 public:
  MatrixReader(const Tensor& tensor, const Progress& progress, std::uint64_t passes)
      : values_(tensor.to(DType::f32)),
        columns_(std::max<std::uint64_t>(1, tensor.shape()[1])),
        meter_(progress, "reading", passes * tensor.numel() * sizeof(float)) {}

  void each_panel(const std::function<void(std::span<const float>)>& look) {
    const std::uint64_t rows = values_.shape()[0], step = std::max<std::uint64_t>(1, kMatrixPanelElements / columns_);
    for (std::uint64_t row = 0; row < rows; row += step) {
      panel_.resize(std::min(step, rows - row) * columns_);
      values_.read(row * columns_ * sizeof(float), std::as_writable_bytes(std::span(panel_)));
      if (!std::ranges::all_of(panel_, [](float value) { return std::isfinite(value); }))
        throw Error(Errc::unsupported, "the matrix has values that are not finite, so it has no singular values");
      look(panel_);
      meter_.add(panel_.size() * sizeof(float));
    }
  }

 private:
  Tensor values_;
  std::uint64_t columns_;
  ProgressMeter meter_;
  std::vector<float> panel_;
};

std::vector<double> exact_values(const Tensor& matrix, const Progress& progress) {
  std::vector<float> whole;
  whole.reserve(matrix.numel());
  MatrixReader(matrix, progress, 1).each_panel([&](std::span<const float> panel) {
    whole.insert(whole.end(), panel.begin(), panel.end());
  });
  const std::vector<float> values = kernels::singular_values(std::move(whole), matrix.shape()[0], matrix.shape()[1]);
  return {values.begin(), values.end()};
}

void add_ranks(SingularValues& found, double total) {
  std::vector<double> squares;
  for (const double value : found.values) squares.push_back(value * value);
  if (squares.empty() || squares.front() == 0) return;
  const DiffReport::Rank rank = rank_of(squares, total);
  found.stable_rank = rank.stable;
  found.of_90 = rank.of_90;
  found.of_99 = rank.of_99;
}

}  // namespace

SingularValues singular_values(const Tensor& matrix, const Progress& progress) {
  check_matrix(matrix);
  const std::uint64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  SingularValues found;
  found.count = std::min(rows, columns);
  if (found.count == 0) {
    found.is_complete = true;
    return found;
  }
  double total = 0;
  if (found.count <= kExactSize && matrix.numel() <= kExactElements) {
    found.values = exact_values(matrix, progress);
    found.is_complete = true;
    for (const double value : found.values) total += value * value;
  } else {
    MatrixReader reader(matrix, progress, kMatrixPasses);
    bool is_first = true;
    const kernels::Spectrum spectrum = kernels::spectrum(rows, columns, [&](const auto& look) {
      reader.each_panel([&](std::span<const float> panel) {
        if (is_first)
          total = std::accumulate(panel.begin(), panel.end(), total,
                                  [](double sum, float v) { return sum + double{v} * v; });
        look(panel);
      });
      is_first = false;
    });
    for (const double square : spectrum.squares) found.values.push_back(std::sqrt(std::max(square, 0.0)));
    found.is_complete = spectrum.is_complete;
  }
  add_ranks(found, total);
  return found;
}

}  // namespace ballast
