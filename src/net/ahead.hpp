// Ahead: parts of a file that will be read soon, and are fetched together when the first of them is read.
//
// There is no thread of its own: the thread that reads first fetches everything that was announced until then, several
// requests at once, and the others wait for their parts.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include <ballast/range.hpp>

#include "net/transfer.hpp"

namespace ballast::net {

class Ahead {
 public:
  // Fetches several ranges at once; throws Error.
  using FetchAll = std::function<void(std::span<Fetch>)>;

  // Parts are at most so large, so that several connections share them, and so many bytes are announced at most.
  Ahead(std::uint64_t part_bytes, std::uint64_t most_bytes) : part_bytes_(part_bytes), most_bytes_(most_bytes) {}

  void announce(std::span<const ByteRange> ranges);

  // Copies what was announced of the beginning of the range, and returns the rest, which was not.
  ReadRange take(ReadRange range, const FetchAll& fetch_all);

 private:
  enum class State { announced, on_its_way, here };
  struct Part {
    std::uint64_t first, end;
    State state = State::announced;
    std::vector<std::byte> bytes{};
    std::uint64_t unread = 0;  // after as many bytes were read, the part is not needed any more
  };
  using Parts = std::list<Part>;

  Parts::iterator find(std::uint64_t offset);
  void add(std::uint64_t first, std::uint64_t end);
  void fetch_announced(std::unique_lock<std::mutex>& lock, const FetchAll& fetch_all);

  std::uint64_t part_bytes_, most_bytes_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  Parts parts_;  // in the order in which they were announced
  std::uint64_t bytes_ = 0;
};

}  // namespace ballast::net
