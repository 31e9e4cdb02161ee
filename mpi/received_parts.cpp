#include "received_parts.hpp"

#include <sys/mman.h>

#include <ballast/error.hpp>

#include <cstring>
#include <new>
#include <utility>

namespace ballast::mpi {
namespace {

constexpr std::size_t kAlignment = 64;

// Large parts lie in huge pages, if the system has them: to touch fresh memory costs more than to copy into it. They
// are mapped, since malloc() would write its own bytes before them, into a huge page that has nothing else.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::shared_ptr<std::byte> huge_memory(std::size_t size) {
  const std::size_t mapped = (size + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
  void* const begin = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  auto* const memory = static_cast<std::byte*>(begin) + ((address + kHugePage - 1) / kHugePage * kHugePage - address);
  madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  return {memory, [begin, mapped](std::byte*) { munmap(begin, mapped); }};
}

std::shared_ptr<std::byte> aligned_memory(std::uint64_t size) {
  if (size >= 2 * kHugePage) return huge_memory(static_cast<std::size_t>(size));
  const auto free = [](std::byte* begin) { ::operator delete (begin, std::align_val_t{kAlignment}); };
  void* const begin = ::operator new (static_cast<std::size_t>(size), std::align_val_t{kAlignment});
  return {static_cast<std::byte*>(begin), free};
}

// Bytes that lie where they are wanted already: copying them there does nothing.
class InPlaceStorage final : public Storage {
 public:
  InPlaceStorage(const std::byte* begin, std::uint64_t size) : begin_(begin), size_(size) {}

  std::uint64_t size_bytes() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.data() != begin_ + offset && !out.empty()) std::memmove(out.data(), begin_ + offset, out.size());
  }

 private:
  const std::byte* begin_;
  std::uint64_t size_;
};

// A tensor that this rank was not sent, since its model has no place for it.
class AbsentStorage final : public Storage {
 public:
  explicit AbsentStorage(std::uint64_t size) : size_(size) {}

  std::uint64_t size_bytes() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte>) const override {
    throw Error(Errc::unsupported, "a tensor that the model has no place for was not sent to this rank");
  }

 private:
  std::uint64_t size_;
};

}  // namespace

ReceivedParts::ReceivedParts(const Demand& demand, unsigned rank) : parts_(demand.plan.tensors.size()) {
  const Targets targets(demand);
  for (std::size_t tensor = 0; tensor < parts_.size(); ++tensor) {
    const std::vector<RankPart>& planned = demand.plan.tensors[tensor].parts;
    for (std::size_t number = 0; number < planned.size(); ++number) {
      targets.of_part(tensor, number, [&](const Target& target) {
        Part& part = parts_[tensor];
        if (target.is_shared && demand.node_of[target.rank] == demand.node_of[rank]) {
          part = {.kind = Kind::shared, .bytes = planned[number].bytes, .offset = shared_bytes_};
          shared_bytes_ += (planned[number].bytes + kAlignment - 1) / kAlignment * kAlignment;
        } else if (!target.is_shared && target.rank == rank) {
          part = {.kind = Kind::own, .bytes = planned[number].bytes};
          own_bytes_ += part.bytes;
        }
      });
    }
  }
}

void ReceivedParts::use_shared(std::shared_ptr<const NodeMemory> memory) {
  node_memory_ = std::move(memory);
  for (Part& part : parts_) {
    if (part.kind != Kind::shared) continue;
    part.begin = node_memory_->bytes().data() + part.offset;
    part.owner = node_memory_;
  }
}

void ReceivedParts::use(std::size_t tensor, std::span<std::byte> memory) {
  parts_[tensor].kind = Kind::in_model;
  parts_[tensor].begin = memory.data();
}

void ReceivedParts::allocate() {
  for (Part& part : parts_) {
    if (part.kind != Kind::own) continue;
    const std::shared_ptr<std::byte> memory = aligned_memory(part.bytes);
    part.begin = memory.get();
    part.owner = memory;
  }
}

std::byte* ReceivedParts::memory_of(const Target& target) const { return parts_[target.tensor].begin; }

StoragePtr ReceivedParts::storage(std::size_t tensor, std::uint64_t size) const {
  const Part& part = parts_[tensor];
  return part.kind == Kind::absent ? std::make_shared<AbsentStorage>(size) : part.storage;
}

void ReceivedParts::finish() {
  if (node_memory_) node_memory_->protect();
  for (Part& part : parts_) {
    if (part.kind == Kind::in_model)
      part.storage = std::make_shared<InPlaceStorage>(part.begin, part.bytes);
    else if (part.kind != Kind::absent)
      part.storage = memory_storage({part.begin, static_cast<std::size_t>(part.bytes)}, part.owner);
  }
}

}  // namespace ballast::mpi
