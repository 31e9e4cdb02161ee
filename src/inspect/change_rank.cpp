#include "inspect/change_rank.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "kernels/linear/spectrum.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostColumns = std::uint64_t{1} << 17;
constexpr std::uint64_t kPanelElements = std::uint64_t{1} << 19;
constexpr std::uint64_t kMostPasses = 3;
constexpr double kReach = 2e-3;     // singular values below this share of the largest are noise of F32
constexpr double kGap = 2.5;        // a gap is clear if the value before it is so many times the one behind it,
constexpr double kBeforeGap = 0.8;  // and if the values before it hold this share of the squares

template <class Number>
constexpr DType dtype_of() {
  return sizeof(Number) == sizeof(double) ? DType::f64 : DType::f32;
}

bool has_reals(DType dtype) {
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::floating || kind == DTypeKind::ggml;
}

bool has_rank(const DiffReport::Change& change) {
  return change.numbers && change.shape_a.rank() == 2 && change.shape_a[1] <= kMostColumns &&
         has_reals(change.dtype_a) && has_reals(change.dtype_b) && change.nan_mismatch == 0 &&
         change.shape_a.numel() == change.numbers->count && std::isnormal(change.numbers->norm_change);
}

// How many values hold `share` of the total; nothing if all that are known hold less.
std::optional<std::uint64_t> count_holding(const std::vector<double>& squares, double share) {
  double sum = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    sum += squares[i];
    if (sum >= share) return i + 1;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> find_gap(const std::vector<double>& squares, double total) {
  const double noise = squares.front() * kReach * kReach;
  double widest = kGap, sum = 0;
  std::optional<std::uint64_t> found;
  for (std::size_t i = 0; i + 1 < squares.size(); ++i) {
    sum += squares[i];
    const double gap = std::sqrt(squares[i] / std::max(squares[i + 1], noise));
    if (gap < widest || sum < kBeforeGap * total) continue;
    widest = gap;
    found = i + 1;
  }
  return found;
}

// Reads (b - a) / the norm of that, so that squares neither overflow nor vanish. Number holds the values of both.
template <class Number>
class ChangeReader {
 public:
  ChangeReader(const Tensor& a, const Tensor& b, double norm)
      : a_(a.to(dtype_of<Number>())), b_(b.to(dtype_of<Number>())), scale_(1 / norm) {
    for (const Tensor* tensor : {&a_, &b_}) tensor->storage()->prepare({});
  }

  void read(std::uint64_t first, std::span<float> change) {
    before_.resize(change.size());
    after_.resize(change.size());
    a_.read(first * sizeof(Number), std::as_writable_bytes(std::span(before_)));
    b_.read(first * sizeof(Number), std::as_writable_bytes(std::span(after_)));
    for (std::size_t i = 0; i < change.size(); ++i)
      change[i] = static_cast<float>((static_cast<double>(after_[i]) - static_cast<double>(before_[i])) * scale_);
  }

 private:
  Tensor a_, b_;
  double scale_;
  std::vector<Number> before_, after_;
};

template <class Number>
DiffReport::Rank find_rank(const DiffReport::Change& change, const Tensor& a, const Tensor& b, ProgressMeter& meter) {
  const std::uint64_t rows = a.shape()[0], columns = a.shape()[1];
  const std::uint64_t step = std::max(kPanelElements / columns, std::uint64_t{1});
  ChangeReader<Number> reader(a, b, change.numbers->norm_change);
  std::vector<float> panel;
  std::uint64_t left = kMostPasses * a.numel();
  const auto panels = [&](const std::function<void(std::span<const float>)>& look) {
    for (std::uint64_t row = 0; row < rows; row += step) {
      panel.resize(std::min(step, rows - row) * columns);
      reader.read(row * columns, panel);
      look(panel);
      meter.add(panel.size() * sizeof(float));
      left -= std::min<std::uint64_t>(left, panel.size());
    }
  };
  const DiffReport::Rank rank = rank_of(kernels::spectrum(rows, columns, panels).squares, 1);
  meter.add(left * sizeof(float));
  return rank;
}

}  // namespace

DiffReport::Rank rank_of(const std::vector<double>& squares, double total) {
  // Rounding may have made the sum of the squares a little larger than the total.
  const double sum = std::accumulate(squares.begin(), squares.end(), 0.0), all = std::max(total, sum);
  // Values that together hold all but rounding errors hold all.
  const double known = sum > total * (1 - 1e-4) ? sum : all;
  return {all / squares.front(), count_holding(squares, 0.9 * known), count_holding(squares, 0.99 * known),
          find_gap(squares, known)};
}

void find_ranks(std::vector<DiffReport::Change>& changes, const Checkpoint& a, const Checkpoint& b,
                const DiffOptions& options) {
  std::vector<DiffReport::Change*> matrices;
  std::uint64_t total = 0;
  for (DiffReport::Change& change : changes) {
    if (!has_rank(change)) continue;
    matrices.push_back(&change);
    total += kMostPasses * a.at(change.name).numel() * sizeof(float);
  }
  ProgressMeter meter(options.progress, "finding ranks", total);
  ThreadPool(options.threads).run(matrices.size(), [&](std::size_t i, unsigned) {
    DiffReport::Change& change = *matrices[i];
    const Tensor &before = a.at(change.name), &after = b.at(change.name);
    const bool is_wide = before.dtype() == DType::f64 || after.dtype() == DType::f64;
    change.rank =
        is_wide ? find_rank<double>(change, before, after, meter) : find_rank<float>(change, before, after, meter);
  });
}

}  // namespace ballast
