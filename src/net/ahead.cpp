#include "net/ahead.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/wanted.hpp"

namespace ballast::net {

Ahead::Parts::iterator Ahead::find(std::uint64_t offset) {
  return std::find_if(parts_.begin(), parts_.end(),
                      [&](const Part& part) { return part.first <= offset && offset < part.end; });
}

void Ahead::add(std::uint64_t first, std::uint64_t end) {
  bytes_ += end - first;
  const bool continues = !parts_.empty() && parts_.back().state == State::announced && parts_.back().end == first &&
                         end - parts_.back().first <= part_bytes_;
  if (continues) {
    parts_.back().end = end;
    parts_.back().unread += end - first;
  } else {
    parts_.push_back({first, end});
    parts_.back().unread = end - first;
  }
}

void Ahead::announce(std::span<const ByteRange> ranges) {
  const std::lock_guard lock(mutex_);
  for (const ByteRange& range : ranges) {
    for (std::uint64_t at = range.offset; at < range.offset + range.size;) {
      if (const auto known = find(at); known != parts_.end()) {
        at = known->end;
        continue;
      }
      const std::uint64_t end = std::min(at + part_bytes_, range.offset + range.size);
      // What was announced and never read makes room.
      while (bytes_ + (end - at) > most_bytes_) {
        const auto oldest =
            std::find_if(parts_.begin(), parts_.end(), [](const Part& part) { return part.state == State::here; });
        if (oldest == parts_.end()) return;
        bytes_ -= oldest->end - oldest->first;
        parts_.erase(oldest);
      }
      add(at, end);
      at = end;
    }
  }
}

ReadRange Ahead::take(ReadRange range, const FetchAll& fetch_all) {
  std::unique_lock lock(mutex_);
  while (!range.out.empty()) {
    const auto part = find(range.offset);
    if (part == parts_.end()) break;
    if (part->state == State::announced) {
      fetch_announced(lock, fetch_all);
    } else if (part->state == State::on_its_way) {
      arrived_.wait_for(lock, std::chrono::milliseconds(20));
      lock.unlock();  // whoever is asked may take locks
      if (!is_wanted()) throw Error(Errc::cancelled, "cancelled");
      lock.lock();
    } else {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(range.out.size(), part->end - range.offset));
      std::memcpy(range.out.data(), part->bytes.data() + (range.offset - part->first), size);
      range = {range.offset + size, range.out.subspan(size)};
      part->unread -= std::min<std::uint64_t>(part->unread, size);
      if (part->unread != 0) continue;
      bytes_ -= part->end - part->first;
      parts_.erase(part);
    }
  }
  return range;
}

void Ahead::fetch_announced(std::unique_lock<std::mutex>& lock, const FetchAll& fetch_all) {
  std::vector<Part*> wanted;
  for (Part& part : parts_) {
    if (part.state != State::announced) continue;
    part.state = State::on_its_way;
    wanted.push_back(&part);
  }
  lock.unlock();
  // Once a part is here, others may use it up, so nobody looks at it again.
  const auto finish = [&](Part*& part) {
    const std::lock_guard relock(mutex_);
    std::exchange(part, nullptr)->state = State::here;
    arrived_.notify_all();
  };
  try {
    std::vector<Fetch> fetches(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Part& part = *wanted[i];
      part.bytes.resize(static_cast<std::size_t>(part.end - part.first));
      Fetch& fetch = fetches[i];
      fetch.wanted = {part.first, part.bytes.size(), false};
      fetch.out = part.bytes;
      fetch.took = [&finish, &fetch, &arriving = wanted[i]](std::uint64_t) {
        if (fetch.received == fetch.out.size()) finish(arriving);
      };
    }
    fetch_all(fetches);
  } catch (...) {
    lock.lock();
    // Whoever waits for these parts asks for them again, and hears what is wrong.
    for (auto part = parts_.begin(); part != parts_.end();) {
      const bool is_lost = std::find(wanted.begin(), wanted.end(), &*part) != wanted.end();
      if (is_lost) bytes_ -= part->end - part->first;
      part = is_lost ? parts_.erase(part) : std::next(part);
    }
    arrived_.notify_all();
    throw;
  }
  lock.lock();
}

}  // namespace ballast::net
