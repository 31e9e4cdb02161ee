#include "communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

#include "failure.hpp"

namespace ballast::mpi {
namespace {

// Whether MPI was told that the program has other threads.
bool require_usable() {
  int is_running = 0, is_over = 0, level = MPI_THREAD_SINGLE, is_main = 0;
  MPI_Initialized(&is_running);
  MPI_Finalized(&is_over);
  if (is_running == 0 || is_over != 0) {
    throw Error(Errc::invalid_argument, is_over != 0 ? "MPI is over already" : "MPI does not run yet")
        .hint("call MPI_Init_thread before, and MPI_Finalize after");
  }
  check(MPI_Query_thread(&level), "asking for the thread level");
  check(MPI_Is_thread_main(&is_main), "asking for the thread");
  if (level == MPI_THREAD_FUNNELED && is_main == 0) {
    throw Error(Errc::invalid_argument, "MPI may only be called by the thread that initialized it")
        .hint("ask MPI_Init_thread for MPI_THREAD_SERIALIZED, or call this function from that thread");
  }
  return level >= MPI_THREAD_FUNNELED;
}

int as_count(std::uint64_t size) { return static_cast<int>(size); }  // never more than kMostBytesAMessage

}  // namespace

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING] = {};
  int size = 0;
  if (MPI_Error_string(code, words, &size) != MPI_SUCCESS) size = 0;
  throw Error(Errc::io, fmt::format("MPI failed at {}: {}", what,
                                    size == 0 ? std::to_string(code) : std::string(words, words + size)));
}

Communicator::Communicator(MPI_Comm owned, bool may_use_threads) : comm_(owned), may_use_threads_(may_use_threads) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  int rank = 0, size = 1;
  check(MPI_Comm_rank(comm_, &rank), "asking for the rank");
  check(MPI_Comm_size(comm_, &size), "asking for the number of ranks");
  rank_ = static_cast<unsigned>(rank);
  size_ = static_cast<unsigned>(size);
}

namespace {

MPI_Comm duplicate_of(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) throw Error(Errc::invalid_argument, "the communicator is MPI_COMM_NULL");
  MPI_Comm own = MPI_COMM_NULL;
  check(MPI_Comm_dup(comm, &own), "duplicating the communicator");
  return own;
}

MPI_Comm node_of(MPI_Comm comm, unsigned rank) {
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, static_cast<int>(rank), MPI_INFO_NULL, &node),
        "finding the ranks of this node");
  return node;
}

}  // namespace

Communicator::Communicator(MPI_Comm comm) {
  const bool may_use_threads = require_usable();
  *this = Communicator(duplicate_of(comm), may_use_threads);
}

Communicator::~Communicator() { free(); }

Communicator::Communicator(Communicator&& other) noexcept { *this = std::move(other); }

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  free();
  comm_ = std::exchange(other.comm_, MPI_COMM_NULL);
  rank_ = other.rank_;
  size_ = other.size_;
  may_use_threads_ = other.may_use_threads_;
  return *this;
}

void Communicator::free() noexcept {
  int is_over = 0;
  if (comm_ == MPI_COMM_NULL) return;
  MPI_Finalized(&is_over);
  if (is_over == 0) MPI_Comm_free(&comm_);
  comm_ = MPI_COMM_NULL;
}

Communicator Communicator::node() const { return {node_of(comm_, rank_), may_use_threads_}; }

void Communicator::barrier() const { check(MPI_Barrier(comm_), "waiting for all ranks"); }

void Communicator::broadcast_into(std::span<std::byte> bytes, unsigned root) const {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), kMostBytesAMessage));
    check(MPI_Bcast(piece.data(), as_count(piece.size()), MPI_BYTE, static_cast<int>(root), comm_), "broadcasting");
    bytes = bytes.subspan(piece.size());
  }
}

Bytes Communicator::broadcast(Bytes bytes, unsigned root) const {
  std::uint64_t size = bytes.size();
  broadcast_into(std::as_writable_bytes(std::span(&size, 1)), root);
  bytes.resize(static_cast<std::size_t>(size));
  broadcast_into(bytes, root);
  return bytes;
}

std::vector<Bytes> Communicator::exchange(std::span<const std::byte> mine) const {
  const std::uint64_t my_size = mine.size();
  std::vector<std::uint64_t> sizes(size_);
  check(MPI_Allgather(&my_size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, comm_), "exchanging sizes");
  std::vector<Bytes> all(size_);
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (total > kMostBytesAMessage) {
    for (unsigned rank = 0; rank < size_; ++rank) {
      if (rank == rank_) all[rank].assign(mine.begin(), mine.end());
      all[rank].resize(static_cast<std::size_t>(sizes[rank]));
      broadcast_into(all[rank], rank);
    }
    return all;
  }
  std::vector<int> counts(size_), offsets(size_);
  for (unsigned rank = 0, offset = 0; rank < size_; offset += static_cast<unsigned>(sizes[rank++])) {
    counts[rank] = as_count(sizes[rank]);
    offsets[rank] = static_cast<int>(offset);
  }
  Bytes joined(static_cast<std::size_t>(total));
  check(MPI_Allgatherv(mine.data(), as_count(my_size), MPI_BYTE, joined.data(), counts.data(), offsets.data(), MPI_BYTE,
                       comm_),
        "exchanging bytes");
  for (unsigned rank = 0; rank < size_; ++rank) {
    const auto part = std::span(joined).subspan(static_cast<std::size_t>(offsets[rank]), sizes[rank]);
    all[rank].assign(part.begin(), part.end());
  }
  return all;
}

std::uint64_t Communicator::largest(std::uint64_t mine) const {
  std::uint64_t all = 0;
  check(MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_MAX, comm_), "comparing numbers");
  return all;
}

void Communicator::agree_or_throw(const std::exception_ptr& mine) const {
  // The first rank that failed has the largest of these numbers.
  const std::uint64_t found = largest(mine == nullptr ? 0 : size_ - rank_);
  if (found == 0) return;
  const auto failed = static_cast<unsigned>(size_ - found);
  const Bytes packed = broadcast(rank_ == failed ? pack_failure(mine) : Bytes(), failed);
  has_agreed_ = true;
  throw_failure(packed, failed, size_, rank_ == failed ? mine : nullptr);
}

void Communicator::end_the_job(const std::exception_ptr& cause) const noexcept {
  const Error error = as_error(cause);
  std::fprintf(stderr, "ballast: %s (on rank %u of %u); the other ranks cannot be told, so the job ends\n",
               error.what(), rank_, size_);
  MPI_Abort(comm_, info(error.code()).exit_code);
  std::abort();  // MPI_Abort comes back only if it fails
}

void Communicator::agree_or_throw(const std::optional<Error>& mine) const {
  agree_or_throw(mine ? std::make_exception_ptr(*mine) : nullptr);
}

}  // namespace ballast::mpi
