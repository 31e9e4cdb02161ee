// NodeMemory: memory that the ranks of one node share.
//
// MPI_Win_allocate_shared gives such memory too, but a window can only be freed by all of its ranks at once, and before
// MPI_Finalize. A tensor is freed whenever its last owner lets go of it, on each rank at another time, and may well
// outlive MPI. So this is a mapped object of POSIX shared memory, which the system frees when no process maps it any
// more. The object has a name only while the ranks map it, and no memory yet: nothing is left behind by a process that
// is killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "communicator.hpp"

namespace ballast::mpi {

class NodeMemory {
 public:
  NodeMemory(std::byte* begin, std::size_t size) noexcept : begin_(begin), size_(size) {}
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  std::span<std::byte> bytes() const noexcept { return {begin_, size_}; }

  // From now on, this process can only read the memory.
  void protect() const noexcept;

 private:
  std::byte* begin_;
  std::size_t size_;
};

// The same memory on every rank of the node, or null on every rank if the system does not give that much (a container
// may have little in /dev/shm). Collective over the node.
std::shared_ptr<const NodeMemory> share_memory(const Communicator& node, std::uint64_t size);

}  // namespace ballast::mpi
