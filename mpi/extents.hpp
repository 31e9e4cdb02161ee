// Extents: what a checkpoint is read from, in the order in which it lies in its files.
//
// An extent is the bytes of one storage, be they bytes of a file or made from such; or, for a strided view, the
// contiguous form of one tensor. Each contiguous tensor is a range of an extent, and tensors that share bytes are
// ranges that overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast::mpi {

struct Extent {
  Tensor tensor;             // whose storage this is, or which is strided
  bool is_strided = false;   // the extent is this tensor's contiguous form
  std::string file{};        // where it lies, or where the first of what it is made of lies; empty if in no file
  std::uint64_t offset = 0;  // in that file
  std::uint64_t size = 0;    // bytes
  std::uint64_t granule =
      1;  // ranges of it begin and end at multiples of this; all of it if it can only be read in order
};

struct TensorPlace {
  std::size_t extent = 0;
  std::uint64_t first = 0, bytes = 0;  // the range of the extent
};

struct Extents {
  std::vector<Extent> all;           // sorted by file and offset
  std::vector<TensorPlace> tensors;  // in the order of the checkpoint; 0 bytes if there is nothing to be read
};

Extents extents_of(const Checkpoint& checkpoint);

// Reads ranges of extents, for one thread. Large ranges are read in one call. A strided tensor's bytes are read once,
// as they lie, and are kept until another extent is read; so are those of a storage that can only be read in order.
class ExtentReader {
 public:
  void read(const Extent& extent, std::uint64_t first, std::span<std::byte> out);

 private:
  const Extent* kept_ = nullptr;
  Tensor laid_out_;  // the strided tensor, in memory
};

}  // namespace ballast::mpi
