#include <ballast/source.hpp>

#include <cstring>
#include <utility>

#include "io/section.hpp"

namespace ballast {

void Source::read_many(std::span<const ReadRange> ranges) const {
  for (const ReadRange& range : ranges) read(range.offset, range.out);
}

void Source::prefetch(std::span<const ByteRange>) const {}

bool Source::visit(std::uint64_t, std::uint64_t, const std::function<void(std::span<const std::byte>)>&) const {
  return false;
}

void Source::release(std::uint64_t, std::uint64_t) const {}

std::optional<FileLocation> Source::location(std::uint64_t offset) const { return FileLocation{name(), offset}; }

namespace {

class MemorySource final : public Source {
 public:
  MemorySource(std::vector<std::byte> bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  std::span<const std::byte> mapped() const override { return bytes_; }
  std::optional<FileLocation> location(std::uint64_t) const override { return std::nullopt; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    io::require_inside(*this, offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    io::require_inside(*this, offset, size);
    look(std::span(bytes_).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
};

}  // namespace

SourcePtr memory_source(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

}  // namespace ballast
