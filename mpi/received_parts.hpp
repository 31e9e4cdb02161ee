// ReceivedParts: the memory that this rank's parts of tensors arrive in, and tensors' storages over it.
//
// A part lies in memory of its own, so that it is freed with the last tensor that looks at it; in memory of the model,
// if the model has a place for just these bytes; or in memory that the ranks of a node share, which is freed as a
// whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ballast/storage.hpp>

#include "node_memory.hpp"
#include "schedule.hpp"

namespace ballast::mpi {

class ReceivedParts {
 public:
  // A rank wants at most one part of each tensor, and a node shares at most one.
  ReceivedParts(const Demand& demand, unsigned rank);

  std::uint64_t shared_bytes() const noexcept { return shared_bytes_; }  // what the node needs, the same on its ranks
  void use_shared(std::shared_ptr<const NodeMemory> memory);

  // Whether the part goes to this rank alone.
  bool is_own(std::size_t tensor) const { return parts_[tensor].kind == Kind::own; }
  void use(std::size_t tensor, std::span<std::byte> memory);  // of the model
  void allocate();                                            // for all parts that have no memory yet

  std::byte* memory_of(const Target& target) const;  // this rank's, or its node's

  // Everything has arrived: nothing writes to the shared memory any more. From then on, the part of a tensor has a
  // storage, the same for all tensors that it is received for.
  void finish();
  StoragePtr storage(std::size_t tensor, std::uint64_t size) const;
  std::uint64_t own_bytes() const noexcept { return own_bytes_; }  // without what is shared

 private:
  enum class Kind : std::uint8_t { absent, own, in_model, shared };
  struct Part {
    Kind kind = Kind::absent;
    std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  // in the shared memory
    std::shared_ptr<const void> owner{};
    StoragePtr storage{};
  };

  std::vector<Part> parts_;  // by tensor
  std::shared_ptr<const NodeMemory> node_memory_;
  std::uint64_t shared_bytes_ = 0, own_bytes_ = 0;
};

}  // namespace ballast::mpi
