// diff: the differences between two checkpoints, whatever their formats.
//
// diff() reads the values of both sides in chunks of about 1 MiB, except tensors that are the same bytes of the same
// storage. It may be called from several threads at once. The report owns everything in it, and its numbers do not
// depend on how many threads there were.
//
// Names must match: align() in align.hpp brings two checkpoints of one model under the same names first.
//
// Example:
//   const DiffReport report = diff(open("a.safetensors"), open("b.gguf"), {.tolerance = 1e-3});
//   for (const DiffReport::Change& change : report.changed) std::cout << change.name << "\n";
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>

namespace ballast {

struct DiffOptions {
  bool values = true;  // if false, only names, dtypes and shapes are compared
  // Values are equal if |a - b| <= tolerance + rtol * |b|, in ggml's blocks too. If both are 0, bits are compared.
  double tolerance = 0;
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};  // for views that repeat bytes
  double rtol = 0;
  bool ignore_dtype = false;  // tensors of two dtypes are equal if their values are
  // The rank of every matrix of changes. Reads the matrices three times more, and needs BLAS and LAPACK; each thread
  // holds 1200 bytes for every column, or 2 MiB.
  bool ranks = false;
};

struct DiffReport {
  enum class What : std::uint8_t { shape, dtype, data, values };  // data: only one side has any

  // How far the values of A and B are apart as a whole, over the numbers that are finite on both sides. Both parts of a
  // complex number count.
  struct Numbers {
    std::uint64_t count = 0;
    double norm_a = 0, norm_b = 0, norm_change = 0;  // the roots of the sums of squares of a, b and a - b
    double product = 0;                              // the sum of a * b

    // Nothing if a number would be divided by 0, or if a sum is too large for F64.
    std::optional<double> relative_change() const;  // norm_change / norm_a
    std::optional<double> cosine() const;           // product / (norm_a * norm_b)
    std::optional<double> rms() const;              // norm_change / the root of count
  };

  // The singular values of a matrix of changes, as far as 128 of them tell.
  struct Rank {
    double stable = 0;                        // the sum of their squares / the largest square
    std::optional<std::uint64_t> of_90;       // how many hold 90 % of the sum of squares; nothing if more than 128 do
    std::optional<std::uint64_t> of_99;       // the same for 99 %
    std::optional<std::uint64_t> before_gap;  // how many there are before a clear gap: the rank of a merged LoRA
  };

  struct Change {
    std::string name;
    What what;
    DType dtype_a, dtype_b;
    Shape shape_a, shape_b;
    std::uint64_t compared = 0;       // elements; without a tolerance, blocks of ggml's types
    std::uint64_t different = 0;      // elements whose bits differ, or that are farther apart than the tolerance
    double max_abs = 0, max_rel = 0;  // over the different elements
    std::uint64_t nan_mismatch = 0;   // elements that are NaN on one side only; max_abs and max_rel leave them out
    std::optional<std::vector<std::uint64_t>> max_at{};  // the index of the first element that is max_abs apart
    std::optional<Numbers> numbers{};  // if both sides have numbers of one shape, whatever their dtypes
    std::optional<Rank> rank{};        // of a changed matrix, if it was asked for

    // Whether a number is NaN or infinite on one side only. No relative change says that.
    bool is_broken() const noexcept;
  };

  // The tensors whose names differ only in numbers, "layers.#.mlp.up_proj.weight", of which one at least has changed.
  struct Role {
    struct Layer {
      std::uint64_t number;            // the first number in the name
      std::optional<double> relative;  // the largest relative change in this layer; 0 if nothing has changed
      bool broken = false;             // whether a tensor of the layer is
    };
    std::string pattern;
    std::uint64_t tensors = 0, changed = 0;  // tensors that both sides have
    std::uint64_t broken = 0;                // of the changed ones: see Change::is_broken
    std::optional<double> median, worst;     // relative changes of those that have one, equal tensors' 0 included
    std::string worst_name;
    std::vector<Layer> layers;  // in ascending order; empty if the name has no number
  };

  // What one dtype costs against another: the relative change over all tensors that changed so.
  struct DTypeCost {
    DType dtype_a, dtype_b;
    std::uint64_t tensors = 0;
    Numbers numbers;
    std::optional<double> worst;  // the largest relative change of these tensors
    std::string worst_name;
  };

  std::vector<std::string> only_in_a, only_in_b;
  std::vector<Change> changed;  // in the order of A
  std::uint64_t equal_count = 0;
  Numbers overall;                     // over all changed tensors that have numbers
  std::vector<Role> roles;             // in natural order
  std::vector<DTypeCost> dtype_costs;  // most tensors first

  std::uint64_t broken_count() const noexcept;  // changed tensors that are broken

  bool equal() const noexcept { return only_in_a.empty() && only_in_b.empty() && changed.empty(); }

  // The changes: first those that are broken, then those of the largest relative change, which is infinite if A is all
  // zeros; last those without one, in the order of A.
  std::vector<const Change*> by_change() const;
};

DiffReport diff(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options = {});

}  // namespace ballast
