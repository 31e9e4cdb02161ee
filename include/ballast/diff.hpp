// diff: what differs between two checkpoints, whatever their formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>

namespace ballast {

struct DiffOptions {
  bool values = true;    // else names, dtypes and shapes only
  double tolerance = 0;  // values that differ by at most this are equal, those of ggml's blocks too; 0 compares bits
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};  // on views that repeat bytes
};

struct DiffReport {
  enum class What : std::uint8_t { shape, dtype, values };
  struct Change {
    std::string name;
    What what;
    DType dtype_a, dtype_b;
    Shape shape_a, shape_b;
    std::uint64_t compared = 0;       // elements; of ggml's types, without a tolerance, blocks
    std::uint64_t different = 0;      // those whose bits differ, or that are farther apart than the tolerance
    double max_abs = 0, max_rel = 0;  // of those
    std::uint64_t nan_mismatch = 0;   // that are NaN on one side only; max_abs and max_rel are of the others
  };
  std::vector<std::string> only_in_a, only_in_b;
  std::vector<Change> changed;
  std::uint64_t equal_count = 0;

  bool equal() const noexcept { return only_in_a.empty() && only_in_b.empty() && changed.empty(); }
};

DiffReport diff(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options = {});

}  // namespace ballast
