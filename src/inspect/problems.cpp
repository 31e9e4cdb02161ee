#include <ballast/problems.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "checkpoint/quantization/packed_parts.hpp"
#include "inspect/pattern.hpp"
#include "inspect/value_pass.hpp"
#include "tensor/repeated_bytes.hpp"
#include "tensor/same_sources.hpp"

namespace ballast {
namespace {

// A tensor that was looked at.
struct Looked {
  std::string_view name;
  const Tensor* tensor;
  ValueScan scan;

  const kernels::Moments& moments() const { return scan.moments; }
  double std() const { return std::sqrt(scan.moments.variance()); }
  bool is_weight() const {
    const DTypeKind kind = info(tensor->dtype()).kind;
    return kind == DTypeKind::floating || kind == DTypeKind::ggml;
  }
  bool is_all_zeros() const { return scan.moments.count > 0 && scan.moments.zero_count == scan.moments.count; }
};

std::vector<std::uint64_t> position_of(std::uint64_t element, const Shape& shape) {
  std::vector<std::uint64_t> position(shape.rank());
  for (std::size_t i = shape.rank(); i-- > 0;) {
    position[i] = element % shape[i];
    element /= shape[i];
  }
  return position;
}

std::string at_first(const Problem& problem) {
  return (problem.count == 1 ? ", at " : ", the first at ") + to_string(Shape(problem.first));
}

Problem problem_at(const Looked& looked, ProblemKind kind, std::uint64_t count, std::uint64_t element) {
  return {std::string(looked.name), kind, count, position_of(element, looked.tensor->shape()), ""};
}

void add_not_finite(const Looked& looked, std::vector<Problem>& problems) {
  struct Row {
    ProblemKind kind;
    std::uint64_t kernels::Moments::*count;
    std::uint64_t kernels::Moments::*first;
    std::string_view adjective;
  };
  constexpr Row kRows[] = {
      {ProblemKind::nan, &kernels::Moments::nan_count, &kernels::Moments::first_nan, "NaN"},
      {ProblemKind::infinity, &kernels::Moments::inf_count, &kernels::Moments::first_inf, "infinite"}};
  for (const Row& row : kRows) {
    const std::uint64_t count = looked.moments().*row.count;
    if (count == 0) continue;
    Problem problem = problem_at(looked, row.kind, count, looked.moments().*row.first);
    problem.text = fmt::format("{} of {} values {} {}{}", count, looked.moments().count, count == 1 ? "is" : "are",
                               row.adjective, at_first(problem));
    problems.push_back(std::move(problem));
  }
}

void add_zeros(const Looked& looked, std::vector<Problem>& problems) {
  const bool is_counter = looked.moments().count == 1 && !looked.is_weight();  // "num_batches_tracked"
  if (!looked.is_all_zeros() || is_counter) return;
  Problem problem = problem_at(looked, ProblemKind::zeros, looked.moments().count, 0);
  problem.text =
      looked.moments().count == 1 ? "the only value is 0" : fmt::format("all {} values are 0", looked.moments().count);
  problems.push_back(std::move(problem));
}

std::string zeros_among(const kernels::ConstantRows& rows) {
  if (rows.count() == 1) return fmt::format(" ({:.4g})", rows.first_value());
  if (rows.zero_count() == rows.count()) return " (all 0)";
  return rows.zero_count() == 0 ? "" : fmt::format(" ({} of them 0)", rows.zero_count());
}

void add_constant_rows(const Looked& looked, std::vector<Problem>& problems) {
  const kernels::ConstantRows& rows = looked.scan.rows;
  if (rows.count() == 0 || looked.is_all_zeros() || !looked.is_weight()) return;
  const std::uint64_t columns = row_columns(*looked.tensor);
  Problem problem = problem_at(looked, ProblemKind::constant_rows, rows.count(), rows.first_row() * columns);
  problem.text = fmt::format("{} of {} rows {} constant{}{}", rows.count(), looked.moments().count / columns,
                             rows.count() == 1 ? "is" : "are", zeros_among(rows), at_first(problem));
  problems.push_back(std::move(problem));
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return *middle / 2 + *std::max_element(values.begin(), middle) / 2;
}

// The median standard deviation of a tensor's pattern; 0 if there is nothing to compare with.
class Siblings {
 public:
  explicit Siblings(std::span<const Looked> all) {
    std::map<Key, std::vector<double>> deviations;
    for (const Looked& looked : all) {
      if (looked.is_weight() && looked.moments().finite_count() != 0)
        deviations[key_of(looked)].push_back(looked.std());
    }
    for (auto& [key, values] : deviations) {
      if (values.size() >= kFewestSiblings) medians_[key] = {median_of(values), values.size()};
    }
  }

  struct Median {
    double std = 0;
    std::size_t siblings = 0;
  };
  Median of(const Looked& looked) const {
    const auto found = medians_.find(key_of(looked));
    return found == medians_.end() ? Median{} : found->second;
  }

 private:
  using Key = std::pair<std::string, std::vector<std::uint64_t>>;  // the folded name and the shape
  static Key key_of(const Looked& looked) {
    Key key;
    assign_pattern(key.first, looked.name);
    key.second.assign(looked.tensor->shape().begin(), looked.tensor->shape().end());
    return key;
  }
  std::map<Key, Median> medians_;
};

void add_outlier(const Looked& looked, const Siblings& siblings, double factor, std::vector<Problem>& problems) {
  if (!looked.is_weight() || looked.is_all_zeros() || looked.moments().finite_count() == 0) return;
  const auto [median, count] = siblings.of(looked);
  const double std = looked.std();
  if (median == 0 || !std::isfinite(median) || (std <= median * factor && std >= median / factor)) return;
  std::string pattern;
  assign_pattern(pattern, looked.name);
  Problem problem{std::string(looked.name), ProblemKind::outlier, 0, {}, "", std, median};
  problem.text = fmt::format("a standard deviation of {:.4g}, where the median of the {} in {} is {:.4g}", std, count,
                             pattern, median);
  problems.push_back(std::move(problem));
}

ProblemReport problems_of(const Checkpoint& checkpoint, const ProblemOptions& options) {
  if (!(options.outlier_factor >= 1))
    throw Error(Errc::invalid_argument, fmt::format("{} is no factor for outliers", options.outlier_factor))
        .hint("it is at least 1: 8 means more than 8 times the median, or less than an eighth of it");
  ProblemReport report;
  std::vector<Looked> all;
  std::vector<Tensor> numbers;
  const PackedParts packed(checkpoint);
  for (const auto& [name, tensor] : checkpoint) {
    if (const auto error = why_no_statistics(tensor)) {
      report.skipped.push_back({std::string(name), error->message()});
    } else if (!is_floating(tensor.dtype()) && packed.contain(tensor)) {
      report.skipped.push_back({std::string(name), fmt::format("packed integers of a weight that is quantized with {}",
                                                               checkpoint.quantization->scheme)});
    } else {
      all.push_back({name, &tensor, {}});
      numbers.push_back(numbers_of(tensor));
    }
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    RepeatedBytes(options.limits).add(all[i].name, numbers[i]);
    bytes += numbers[i].nbytes();
  }
  Team& team = team_of(options.team);
  ProgressMeter meter(progress_of(team, options.progress), "reading", bytes);
  const ValuePass pass(numbers, team);
  auto scans = merged(pass, scan_parts(pass, options.threads, RowScan::yes, meter), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].scan = scans[i];

  const Siblings siblings(all);
  for (const Looked& looked : all) {
    add_not_finite(looked, report.problems);
    add_zeros(looked, report.problems);
    add_constant_rows(looked, report.problems);
    add_outlier(looked, siblings, options.outlier_factor, report.problems);
  }
  report.tensors = all.size();
  return report;
}

}  // namespace

std::uint64_t ProblemReport::errors() const noexcept {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      problems, [](const Problem& problem) { return severity(problem.kind) == ProblemSeverity::error; }));
}

ProblemReport find_problems(const Checkpoint& checkpoint, const ProblemOptions& options) {
  ProblemReport report;
  together(team_of(options.team), [&] {
    check_same_sources(team_of(options.team), checkpoint);
    report = problems_of(checkpoint, options);
  });
  return report;
}

}  // namespace ballast
