// Four storages that have only the interface in common. With memory as the fifth, the engine must be able to write all
// of them.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ballast/storage.hpp>

namespace ballast::test {

inline std::vector<std::byte> some_bytes(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& b : bytes) {
    state = state * 1664525 + 1013904223;
    b = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

// Deflated: one stream that has to be inflated from its beginning to reach any byte. Counts how often it began anew.
class DeflatedStorage final : public Storage {
 public:
  explicit DeflatedStorage(const std::vector<std::byte>& plain)
      : size_(plain.size()), packed_(compressBound(plain.size())) {
    uLongf packed_size = packed_.size();
    compress(packed_.data(), &packed_size, reinterpret_cast<const Bytef*>(plain.data()), plain.size());
    packed_.resize(packed_size);
  }
  ~DeflatedStorage() override { end(); }

  std::uint64_t size_bytes() const override { return size_; }
  bool is_sequential() const override { return true; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    if (offset < position_ || !open_) restart();
    std::vector<std::byte> skipped(offset - position_);
    inflate_into(skipped);
    inflate_into(out);
  }
  unsigned restarts() const { return restarts_; }

 private:
  void restart() const {
    end();
    stream_ = {};
    if (inflateInit(&stream_) != Z_OK) throw std::runtime_error("inflateInit");
    stream_.next_in = const_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(packed_.size());
    position_ = 0;
    open_ = true;
    ++restarts_;
  }
  void inflate_into(std::span<std::byte> out) const {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out != 0) {
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END) throw std::runtime_error("inflate");
    }
    position_ += out.size();
  }
  void end() const {
    if (open_) inflateEnd(&stream_);
    open_ = false;
  }

  std::uint64_t size_;
  std::vector<Bytef> packed_;
  mutable std::mutex mutex_;
  mutable z_stream stream_{};
  mutable bool open_ = false;
  mutable std::uint64_t position_ = 0;
  mutable unsigned restarts_ = 0;
};

// Decoded: whole rows are made when they are read. Counts the reads that cut a row.
class DecodedStorage final : public Storage {
 public:
  DecodedStorage(std::vector<std::byte> plain, std::uint64_t granule) : plain_(std::move(plain)), granule_(granule) {}

  std::uint64_t size_bytes() const override { return plain_.size(); }
  std::uint64_t granule() const override { return granule_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t end = offset + out.size();
    if (offset % granule_ != 0 || (end % granule_ != 0 && end != plain_.size())) ++cut_reads_;
    std::memcpy(out.data(), plain_.data() + offset, out.size());
  }
  unsigned cut_reads() const { return cut_reads_; }

 private:
  std::vector<std::byte> plain_;
  std::uint64_t granule_;
  mutable std::atomic<unsigned> cut_reads_ = 0;
};

// Needs preparation: nothing can be read before prepare(), which may be called several times.
class PreparedStorage final : public Storage {
 public:
  explicit PreparedStorage(std::vector<std::byte> plain) : plain_(std::move(plain)) {}

  std::uint64_t size_bytes() const override { return plain_.size(); }
  void prepare(const Progress&) const override {
    std::call_once(once_, [this] { ready_ = true; });
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!ready_) throw std::logic_error("read before prepare");
    std::memcpy(out.data(), plain_.data() + offset, out.size());
  }

 private:
  std::vector<std::byte> plain_;
  mutable std::once_flag once_;
  mutable std::atomic<bool> ready_ = false;
};

// Bytes that nobody will read, of any size.
class VastStorage final : public Storage {
 public:
  explicit VastStorage(std::uint64_t size) : size_(size) {}
  std::uint64_t size_bytes() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte>) const override {}

 private:
  std::uint64_t size_;
};

// Slow and remote: each request costs a round trip, however many ranges it asks for.
class RemoteStorage final : public Storage {
 public:
  explicit RemoteStorage(std::vector<std::byte> plain) : plain_(std::move(plain)) {}

  std::uint64_t size_bytes() const override { return plain_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const Range one[] = {{offset, out}};
    read_many(one);
  }
  void read_many(std::span<const Range> ranges) const override {
    ++requests_;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    for (const Range& range : ranges) std::memcpy(range.out.data(), plain_.data() + range.offset, range.out.size());
  }
  unsigned requests() const { return requests_; }

 private:
  std::vector<std::byte> plain_;
  mutable std::atomic<unsigned> requests_ = 0;
};

}  // namespace ballast::test
