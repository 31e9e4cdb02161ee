#include "core/read_counter.hpp"

#include <utility>

namespace ballast {
namespace {

thread_local ReadCounter* read_counter_of_this_thread = nullptr;

}  // namespace

ReadCounter* current_read_counter() noexcept { return read_counter_of_this_thread; }

void count_read(std::uint64_t bytes) noexcept {
  if (read_counter_of_this_thread != nullptr) read_counter_of_this_thread->fetch_add(bytes, std::memory_order_relaxed);
}

ReadsCountedFor::ReadsCountedFor(ReadCounter* counter) noexcept
    : before_(std::exchange(read_counter_of_this_thread, counter)) {}

ReadsCountedFor::~ReadsCountedFor() { read_counter_of_this_thread = before_; }

}  // namespace ballast
