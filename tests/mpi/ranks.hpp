// What tests of several processes share. Every process runs every test, in the same order, and rank 0 speaks; the
// others say only what failed. A test that ends early on one rank would leave the others waiting, so tests use EXPECT_
// and not ASSERT_ before something collective.
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "builders/temp_dir.hpp"
#include "mpi/communicator.hpp"

namespace ballast::test {

inline mpi::Communicator world() { return mpi::Communicator(MPI_COMM_WORLD); }

inline unsigned world_rank() { return world().rank(); }
inline unsigned world_size() { return world().size(); }

// How many ranks share a host: all of them, unless the test runs on several (hosts_test.sh).
inline unsigned ranks_a_host() {
  const char* const text = std::getenv("BALLAST_TEST_RANKS_A_HOST");
  return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : world_size();
}
inline unsigned hosts() { return world_size() / ranks_a_host(); }

// One folder for all ranks, which rank 0 makes and removes.
class SharedDir {
 public:
  SharedDir() {
    const mpi::Communicator all = world();
    if (all.rank() == 0) own_ = std::make_unique<TempDir>();
    const auto mine = own_ ? std::as_bytes(std::span(own_->path())) : std::span<const std::byte>();
    const mpi::Bytes path = all.broadcast({mine.begin(), mine.end()});
    path_.assign(reinterpret_cast<const char*>(path.data()), path.size());
  }
  ~SharedDir() { world().barrier(); }
  SharedDir(const SharedDir&) = delete;
  SharedDir& operator=(const SharedDir&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // Rank 0 writes; when the function returns, every rank can read.
  std::string write(const std::string& name, const std::string& content) const {
    const mpi::Communicator all = world();
    if (own_) own_->write(name, content);
    all.barrier();
    return *this / name;
  }

 private:
  std::unique_ptr<TempDir> own_;
  std::string path_;
};

}  // namespace ballast::test
