#include <ballast/error.hpp>
#include <ballast/storage.hpp>

#include <cstring>
#include <utility>

namespace ballast {

void Storage::read_many(std::span<const Range> ranges) const {
  for (const Range& range : ranges) read(range.offset, range.out);
}

void Storage::prefetch(std::span<const ByteRange>) const {}

void Storage::prepare(const Progress&) const {}

bool Storage::visit(std::uint64_t, std::uint64_t, const std::function<void(std::span<const std::byte>)>&) const {
  return false;
}

void Storage::release(std::uint64_t, std::uint64_t) const {}

namespace {

class MemoryStorage final : public Storage {
 public:
  MemoryStorage(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  std::uint64_t size_bytes() const override { return bytes_.size(); }
  std::span<const std::byte> mapped() const override { return bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    look(bytes_.subspan(offset, size));
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

class MetaStorage final : public Storage {
 public:
  explicit MetaStorage(std::uint64_t size) : size_(size) {}

  std::uint64_t size_bytes() const override { return size_; }
  bool has_data() const override { return false; }
  void read(std::uint64_t, std::span<std::byte>) const override {
    throw Error(Errc::unsupported, "a meta tensor has a dtype and a shape, but no data");
  }

 private:
  std::uint64_t size_;
};

}  // namespace

StoragePtr memory_storage(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  return std::make_shared<MemoryStorage>(bytes, std::move(owner));
}

StoragePtr memory_storage(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*owner);
  return memory_storage(view, std::move(owner));
}

StoragePtr meta_storage(std::uint64_t size_bytes) { return std::make_shared<MetaStorage>(size_bytes); }

}  // namespace ballast
