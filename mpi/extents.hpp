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

// A range of an extent, and the memory that it is read into.
struct ExtentRead {
  std::size_t extent = 0;
  ReadRange range;
};

// Reads ranges of extents, for one thread. A strided tensor's bytes are read once, as they lie, and are kept until
// another extent is read.
class ExtentReader {
 public:
  explicit ExtentReader(const Extents& extents) : extents_(extents) {}

  // Ranges of one extent are asked for in one call. `soon` is what will be read next.
  void read(std::span<const ExtentRead> reads, std::span<const ExtentRead> soon);

 private:
  void read_extent(std::size_t number, std::span<const ReadRange> ranges);
  void lay_out(const Tensor& view);

  const Extents& extents_;
  std::size_t kept_ = SIZE_MAX;  // the number of the extent that is prepared
  Tensor laid_out_;              // if that is strided, the tensor in memory
};

}  // namespace ballast::mpi
