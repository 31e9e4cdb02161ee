// Problems: values of a checkpoint that training or a conversion should not have left behind, found in one pass.
//
// find_problems() reads every value once, in chunks of about 1 MiB. It may be called from several threads at once. The
// report owns everything in it, and does not depend on the number of threads.
//
// Example:
//   const ProblemReport report = find_problems(open("model.safetensors"));
//   for (const Problem& problem : report.problems) std::cout << problem.tensor << ": " << problem.text << "\n";
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>
#include <ballast/team.hpp>

namespace ballast {

enum class ProblemKind : std::uint8_t {
  nan,            // values that are not numbers
  infinity,       // values that are infinite
  zeros,          // every value is 0; common for biases, and for B of a LoRA that has not been trained
  constant_rows,  // rows of a floating matrix (at least 8 columns) whose values are all equal, unless all values are 0
  outlier,        // the standard deviation is out of line with those of the tensors beside it
};
inline constexpr std::array<std::string_view, 5> kProblemKindNames = {"nan", "infinity", "zeros", "constant_rows",
                                                                      "outlier"};
constexpr std::string_view name(ProblemKind kind) noexcept { return kProblemKindNames[static_cast<std::size_t>(kind)]; }

// NaN and infinities break a model: they are errors. The others may be meant: they are warnings.
enum class ProblemSeverity : std::uint8_t { warning, error };
constexpr ProblemSeverity severity(ProblemKind kind) noexcept {
  return kind == ProblemKind::nan || kind == ProblemKind::infinity ? ProblemSeverity::error : ProblemSeverity::warning;
}
constexpr std::string_view name(ProblemSeverity severity) noexcept {
  return severity == ProblemSeverity::error ? "error" : "warning";
}

struct Problem {
  std::string tensor;
  ProblemKind kind;
  std::uint64_t count = 0;           // values; of constant_rows, rows; of outlier, 0
  std::vector<std::uint64_t> first;  // the index of the first such value in each dimension; empty for outlier
  std::string text;                  // "3 of 768 values are NaN, the first at [17]"
  double std = 0, median_std = 0;    // of outlier: its standard deviation, and the median of its pattern
};

struct ProblemOptions {
  // A tensor is out of line if its standard deviation is more than this many times the median of its pattern, or less
  // than the median divided by it. A pattern (see Summary) is tensors of one shape whose names differ only in numbers;
  // fewer than kFewestSiblings are not compared. At least 1; infinity compares nothing.
  double outlier_factor = 8;
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};       // for views that repeat bytes
  Team* team = nullptr;  // the processes that read the tensors together: see team.hpp
};
inline constexpr std::size_t kFewestSiblings = 4;

struct ProblemReport {
  std::vector<Problem> problems;  // in the order of the checkpoint, and of ProblemKind
  // Tensors whose values say nothing: they have no order or no data, or are packed integers of a quantized weight.
  struct Skipped {
    std::string tensor;
    std::string why;
  };
  std::vector<Skipped> skipped;
  std::uint64_t tensors = 0;  // that were looked at

  std::uint64_t errors() const noexcept;
  std::uint64_t warnings() const noexcept { return problems.size() - errors(); }
  bool ok() const noexcept { return problems.empty(); }
};

// ggml's blocks are decoded as they are read. Integers and booleans, which are no weights, are looked at for `zeros`
// alone; a single one is a counter, which may be 0.
ProblemReport find_problems(const Checkpoint& checkpoint, const ProblemOptions& options = {});

}  // namespace ballast
