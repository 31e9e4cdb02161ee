// The counter that the bytes are added to that sources read for this thread.
#pragma once

#include <atomic>
#include <cstdint>

#include <ballast/team.hpp>

namespace ballast {

using ReadCounter = std::atomic<std::uint64_t>;

ReadCounter* current_read_counter() noexcept;  // null if nobody counts

// Adds to the counter of this thread. Sources call it, and whoever looks at mapped bytes without asking their source.
void count_read(std::uint64_t bytes) noexcept;

// While this object lives, what is read for this thread is added to that counter.
class ReadsCountedFor {
 public:
  explicit ReadsCountedFor(ReadCounter* counter) noexcept;
  ~ReadsCountedFor();
  ReadsCountedFor(const ReadsCountedFor&) = delete;
  ReadsCountedFor& operator=(const ReadsCountedFor&) = delete;

 private:
  ReadCounter* before_;
};

// While this object lives, this thread, and those of a ThreadPool that work for it, read for the member of a team. In
// the end that is counted as TeamWork::read.
class ReadsOfMember {
 public:
  explicit ReadsOfMember(Team& team) noexcept : team_(team), counted_(&bytes_) {}
  ~ReadsOfMember() { team_.count({.read = bytes_}); }
  ReadsOfMember(const ReadsOfMember&) = delete;
  ReadsOfMember& operator=(const ReadsOfMember&) = delete;

 private:
  Team& team_;
  ReadCounter bytes_ = 0;
  ReadsCountedFor counted_;
};

}  // namespace ballast
