#include "tensor/source_storage.hpp"

#include <cassert>
#include <utility>

#include "io/section.hpp"

namespace ballast {
namespace {

class SourceStorage final : public Storage {
 public:
  SourceStorage(io::Position first, std::uint64_t size)
      : source_(std::move(first.source)), offset_(first.offset), size_(size) {
    assert(offset_ <= source_->size_bytes() && size_ <= source_->size_bytes() - offset_);
  }

  std::uint64_t size_bytes() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { source_->read(offset_ + offset, out); }

  void read_many(std::span<const Range> ranges) const override { source_->read_many(io::shifted(ranges, offset_)); }
  void prefetch(std::span<const ByteRange> ranges) const override { source_->prefetch(io::shifted(ranges, offset_)); }

  std::span<const std::byte> mapped() const override {
    const auto whole = source_->mapped();
    return whole.empty() ? whole : whole.subspan(offset_, size_);
  }
  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    return source_->visit(offset_ + offset, size, look);
  }
  void release(std::uint64_t offset, std::uint64_t size) const override { source_->release(offset_ + offset, size); }

  void check_unchanged() const override { source_->check_unchanged(); }
  std::optional<Location> location() const override { return source_->location(offset_); }

 private:
  SourcePtr source_;
  std::uint64_t offset_, size_;
};

}  // namespace

StoragePtr source_storage(SourcePtr source, std::uint64_t offset, std::uint64_t size_bytes) {
  return std::make_shared<SourceStorage>(io::behind_sections(std::move(source), offset), size_bytes);
}

}  // namespace ballast
