// Summary: a checkpoint at a glance: totals, dtypes, tied tensors, and the pattern view.
//
// summarize() reads no tensor data. It may be called from several threads at once. The summary owns everything in it.
//
// Example:
//   const Summary summary = summarize(open("model.gguf"));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

struct Summary {
  struct DTypeTotal {
    DType dtype;
    std::uint64_t tensors = 0, bytes = 0;
  };
  // Names that differ only in numbers, with one dtype and one shape: "layers.#.mlp.up_proj.weight" x32.
  struct Pattern {
    std::string name;
    DType dtype;
    Shape shape;
    std::uint64_t tensors = 0, bytes = 0;
  };
  std::uint64_t tensors = 0, parameters = 0, bytes = 0;  // parameters and bytes count each storage range once
  std::vector<DTypeTotal> dtypes;                        // most bytes first
  std::vector<Pattern> patterns;                         // in natural order
  std::vector<std::vector<std::string>> tied;            // names that share their bytes
  std::uint64_t wasted_bytes = 0;                        // bytes of the files that belong to no tensor and no header
  std::vector<std::string> roots;                        // the first parts of dotted names
};

Summary summarize(const Checkpoint& checkpoint);

}  // namespace ballast
