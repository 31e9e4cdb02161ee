// Decides once for each file behind tensors how the file is best read, and makes tensors that are read in that way.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include <ballast/tensor.hpp>

#include "io/large_reads.hpp"

namespace ballast {

// Reads in large blocks past the page cache, or through the page cache with the system's read-ahead.
enum class LargeReading : std::uint8_t { in_blocks, through_cache };

// Only one thread may use a LargeReader; the tensors that it returns may be read by as many threads as it was told of,
// and keep what they need.
class LargeReader {
 public:
  explicit LargeReader(unsigned threads);

  // Whether the bytes of the tensor come from a file that is not in the page cache, or that lies on a network: then
  // page faults are the slow way to get them.
  bool is_better_read(const Tensor& tensor);

  // The tensor, which is then read in large ranges if that is better and if its bytes lie in the file as they are.
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
