// How the files behind tensors are best read, asked once a file; and tensors that are read so.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include <ballast/tensor.hpp>

#include "io/large_reads.hpp"

namespace ballast {

// In large blocks past the page cache, or through it, as the system reads ahead.
enum class LargeReading : std::uint8_t { in_blocks, through_cache };

// One thread asks; the tensors that it gives may be read by as many as it was told of, and keep what they need.
class LargeReader {
 public:
  explicit LargeReader(unsigned threads);

  // Whether the bytes of the tensor come from a file that is not in the page cache, or lies on a network: page faults
  // are then the slow way to get them.
  bool is_better_read(const Tensor& tensor);

  // The tensor, such that it is read in large pieces, where that is better and its bytes lie in the file as they are.
  Tensor operator()(const Tensor& tensor, LargeReading reading = LargeReading::in_blocks);

 private:
  struct File {
    io::UniqueFd descriptor, through_cache;
    bool is_better_read = false;
  };
  struct Shared;

  const File& file(int descriptor);
  const File* file_of_plain(const Tensor& tensor);

  std::shared_ptr<Shared> shared_;
};

}  // namespace ballast
