// Opening a target on every rank, so that the file system sees one reader of headers: rank 0 opens it, and what it read
// is broadcast. The other ranks open the same target, and their reads are answered from that. So every rank has the
// same checkpoint, made by the same code, whatever the format.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

#include "communicator.hpp"

namespace ballast::mpi {

// The bytes that this process has read through the sources of a checkpoint.
using ReadCount = std::atomic<std::uint64_t>;

struct OpenedTogether {
  Checkpoint checkpoint;
  std::shared_ptr<const ReadCount> read;  // also what is read later
  std::uint64_t opening_bytes = 0;        // of these, what was read to open it
};

// The conversion cache is not looked at. If the target cannot be opened, every rank throws the same error. A file that
// has another size on the host of some rank is Errc::changed when that rank first reads it. Rank 0 alone calls
// `examine`, which may refuse the checkpoint, and read more of its files for that. Collective.
OpenedTogether open_together(const Communicator& ranks, const std::string& target, const OpenOptions& options,
                             const std::function<void(const Checkpoint&)>& examine = {});

}  // namespace ballast::mpi
