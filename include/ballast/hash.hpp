// Digests of tensors: SHA-256 over the contiguous little-endian bytes, the same whatever the format, order or sharding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>

namespace ballast {

struct HashOptions {
  bool decoded = false;  // of ggml's blocks, the F32 values that they stand for
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};  // on views that repeat bytes
};

struct HashReport {
  struct Tensor {
    std::string name;
    std::optional<std::string> sha256;  // nothing where there is no data
  };
  std::vector<Tensor> tensors;  // in the checkpoint's order
  std::string digest;           // SHA-256 over "name NUL dtype NUL shape NUL hex LF", sorted by the names' bytes
};

HashReport hash(const Checkpoint& checkpoint, const HashOptions& options = {});

}  // namespace ballast
