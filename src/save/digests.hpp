// Digests: computes the digests of the items of one file while several threads write it, and compares them with what is
// read back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/save.hpp>
#include <ballast/team.hpp>

#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "io/sink.hpp"

namespace ballast {

class Digests {
 public:
  explicit Digests(const SavePlan::File& file);  // the file must outlive this object
  explicit Digests(SavePlan::File&&) = delete;

  // Takes the bytes of an item from `first` on, which is a multiple of kernels::kLeafBytes; so is their number, unless
  // they reach the item's end. Thread-safe for different bytes; owns nothing, so it may be abandoned half-way.
  void take(std::size_t item, std::uint64_t first, std::span<const std::byte> bytes) noexcept;

  std::uint64_t of(std::size_t item) const noexcept;

  // The digests of the leaves that such bytes have.
  std::span<std::uint64_t> leaves(std::size_t item, std::uint64_t first, std::uint64_t size) noexcept;

  // Reads the items back from the sink, each member of the team its share, and throws Errc::io for the first whose
  // digest differs.
  void compare(const io::Sink& sink, Team& team, ThreadPool& pool, ProgressMeter& meter) const;

 private:
  void compare_piece(const io::Sink& sink, std::size_t item, ByteRange range) const;

  const SavePlan::File& file_;
  std::vector<std::vector<std::uint64_t>> leaves_;  // digests of the leaves of each item
};

// The digest of a whole file of `size_bytes` bytes, as the sinks of all members give them back.
std::uint64_t digest_of(const io::Sink& sink, std::uint64_t size_bytes, Team& team, ThreadPool& pool,
                        ProgressMeter* meter = nullptr);

}  // namespace ballast
