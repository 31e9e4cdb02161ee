// diff: the differences between two checkpoints, whatever their formats.
//
// diff() reads the values of both sides in chunks of about 1 MiB, except tensors that are the same bytes of the same
// storage. It may be called from several threads at once. The report owns everything in it.
//
// Example:
//   const DiffReport report = diff(open("a.safetensors"), open("b.gguf"), {.tolerance = 1e-3});
//   for (const DiffReport::Change& change : report.changed) std::cout << change.name << "\n";
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>

namespace ballast {

struct DiffOptions {
  bool values = true;    // if false, only names, dtypes and shapes are compared
  double tolerance = 0;  // values that differ by at most this are equal, in ggml's blocks too; 0 compares bits
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};  // for views that repeat bytes
};

struct DiffReport {
  enum class What : std::uint8_t { shape, dtype, data, values };  // data: only one side has any
  struct Change {
    std::string name;
    What what;
    DType dtype_a, dtype_b;
    Shape shape_a, shape_b;
    std::uint64_t compared = 0;       // elements; without a tolerance, blocks of ggml's types
    std::uint64_t different = 0;      // elements whose bits differ, or that are farther apart than the tolerance
    double max_abs = 0, max_rel = 0;  // over the different elements
    std::uint64_t nan_mismatch = 0;   // elements that are NaN on one side only; max_abs and max_rel leave them out
  };
  std::vector<std::string> only_in_a, only_in_b;
  std::vector<Change> changed;
  std::uint64_t equal_count = 0;

  bool equal() const noexcept { return only_in_a.empty() && only_in_b.empty() && changed.empty(); }
};

DiffReport diff(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options = {});

}  // namespace ballast
