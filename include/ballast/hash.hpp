// Digests of tensors: SHA-256 over the contiguous little-endian bytes, the same whatever the format, order or sharding.
//
// hash() reads every byte once, in chunks of about 1 MiB; one thread reads each tensor. It may be called from several
// threads at once. The report owns everything in it.
//
// Example:
//   std::cout << hash(open("model.pt")).digest << "\n";
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>
#include <ballast/team.hpp>

namespace ballast {

struct HashOptions {
  bool decoded = false;  // for ggml's blocks, hash the F32 values that they stand for
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};       // for views that repeat bytes
  Team* team = nullptr;  // the processes that read the tensors together: see team.hpp
};

struct HashReport {
  struct Tensor {
    std::string name;
    std::optional<std::string> sha256;  // empty if there is no data
  };
  std::vector<Tensor> tensors;  // in the checkpoint's order
  std::string digest;           // SHA-256 over "name NUL dtype NUL shape NUL hex LF", sorted by the names' bytes
};

HashReport hash(const Checkpoint& checkpoint, const HashOptions& options = {});

}  // namespace ballast
