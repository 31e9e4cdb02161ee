// Duplicates: tensors with equal bytes, whether they share them or store them again.
//
// find_duplicates() compares tensors of one dtype and shape: by where they lie, then by their first and last bytes, and
// those that agree so far by a SHA-256 of all bytes, of which one thread reads each tensor. It may be called from
// several threads at once. What it returns refers to the checkpoint by numbers.
//
// Example:
//   const Checkpoint checkpoint = open("model.safetensors");
//   for (const Duplicates& same : find_duplicates(checkpoint))
//     std::printf("%llu bytes too many\n", static_cast<unsigned long long>(same.wasted_bytes()));
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>

namespace ballast {

struct DuplicateOptions {
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};  // for views that repeat bytes
};

// Tensors of one dtype and shape with equal bytes.
struct Duplicates {
  std::vector<std::size_t> tensors;  // their numbers in checkpoint.tensors, at least two, in its order
  std::uint64_t bytes = 0;           // of each of them
  std::uint64_t copies = 1;          // how many times these bytes are stored; 1 if all tensors share them

  std::uint64_t wasted_bytes() const noexcept { return (copies - 1) * bytes; }
};

// Those with the most wasted bytes first, then those with the largest tensors, then in the order of the checkpoint.
// Tensors without data or without elements are never duplicates.
std::vector<Duplicates> find_duplicates(const Checkpoint& checkpoint, const DuplicateOptions& options = {});

// The same among some tensors, by their numbers.
std::vector<Duplicates> find_duplicates(const Checkpoint& checkpoint, std::span<const std::size_t> numbers,
                                        const DuplicateOptions& options = {});

}  // namespace ballast
