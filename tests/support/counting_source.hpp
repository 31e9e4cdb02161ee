// A source that counts what is asked of it, and files out of a map in memory: what a program would bring along.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/source.hpp>

namespace ballast::test {

inline SourcePtr source_named(const std::string& name, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source({bytes.begin(), bytes.end()}, name);
}

// Nothing is in place: every byte is asked for. With `bytes_per_round_trip`, it lies far away.
class CountingSource final : public Source {
 public:
  explicit CountingSource(SourcePtr source, std::uint64_t bytes_per_round_trip = 0)
      : source_(std::move(source)), far_(bytes_per_round_trip) {}

  const std::string& name() const override { return source_->name(); }
  std::uint64_t size_bytes() const override { return source_->size_bytes(); }
  std::uint64_t bytes_per_round_trip() const override { return far_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads;
    bytes += out.size();
    source_->read(offset, out);
  }
  void read_many(std::span<const ReadRange> ranges) const override {
    ++batches;
    for (const ReadRange& range : ranges) bytes += range.out.size();
    source_->read_many(ranges);
  }
  void prefetch(std::span<const ByteRange> ranges) const override {
    const std::lock_guard lock(mutex_);
    ++bursts;
    announced_.insert(announced_.end(), ranges.begin(), ranges.end());
  }

  std::uint64_t requests() const { return reads + batches; }
  std::vector<ByteRange> announced() const {
    const std::lock_guard lock(mutex_);
    return announced_;
  }
  void forget() const {
    const std::lock_guard lock(mutex_);
    reads = batches = bytes = bursts = 0;
    announced_.clear();
  }

  mutable std::atomic<std::uint64_t> reads = 0, batches = 0, bytes = 0, bursts = 0;

 private:
  SourcePtr source_;
  std::uint64_t far_;
  mutable std::mutex mutex_;
  mutable std::vector<ByteRange> announced_;
};

// A folder is what the names of files begin with.
class MemoryFiles final : public Files {
 public:
  void add(const std::string& name, std::string_view text) {
    files_[name] = std::make_shared<CountingSource>(source_named(name, text));
  }
  const CountingSource& at(const std::string& name) const { return *files_.at(name); }

  SourcePtr open(const std::string& name) const override {
    const auto found = files_.find(name);
    if (found == files_.end()) throw Error(Errc::not_found, "is not in the map").in(name);
    return found->second;
  }
  bool exists(const std::string& name) const override { return files_.contains(name); }
  std::optional<std::vector<std::string>> list(const std::string& name) const override {
    std::vector<std::string> names;
    for (const auto& [file, source] : files_) {
      if (file.starts_with(name + "/")) names.push_back(file.substr(name.size() + 1));
    }
    return names.empty() ? std::nullopt : std::optional(std::move(names));
  }

 private:
  std::map<std::string, std::shared_ptr<const CountingSource>> files_;
};

}  // namespace ballast::test
