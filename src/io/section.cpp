#include "io/section.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/json_parse.hpp"
#include "core/remedy.hpp"

namespace ballast::io {
namespace {

class Section final : public Source {
 public:
  Section(SourcePtr whole, std::uint64_t first, std::uint64_t size, std::string name, std::uint64_t kept_bytes = 0)
      : whole_(std::move(whole)), first_(first), size_(size), name_(std::move(name)) {
    kept_.resize(static_cast<std::size_t>(kept_bytes));
    if (!kept_.empty()) whole_->read(first_, kept_);
  }

  const SourcePtr& whole() const noexcept { return whole_; }
  std::uint64_t first() const noexcept { return first_; }
  std::uint64_t kept_bytes() const noexcept { return kept_.size(); }

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return size_; }
  std::uint64_t bytes_per_round_trip() const override { return whole_->bytes_per_round_trip(); }
  std::string identity() const override { return whole_->identity(); }
  void check_unchanged() const override { whole_->check_unchanged(); }
  std::optional<FileLocation> location(std::uint64_t offset) const override {
    return whole_->location(first_ + offset);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    require_inside(*this, offset, out.size());
    const auto rest = take_kept(offset, out);
    if (!rest.out.empty()) whole_->read(first_ + rest.offset, rest.out);
  }
  void read_many(std::span<const ReadRange> ranges) const override {
    std::vector<ReadRange> wanted;
    for (const ReadRange& range : ranges) {
      require_inside(*this, range.offset, range.out.size());
      const auto rest = take_kept(range.offset, range.out);
      if (!rest.out.empty()) wanted.push_back({first_ + rest.offset, rest.out});
    }
    if (!wanted.empty()) whole_->read_many(wanted);
  }
  void prefetch(std::span<const ByteRange> ranges) const override { whole_->prefetch(shifted(ranges, first_)); }

  std::span<const std::byte> mapped() const override {
    const auto map = whole_->mapped();
    return map.empty() ? map : map.subspan(static_cast<std::size_t>(first_), static_cast<std::size_t>(size_));
  }
  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    require_inside(*this, offset, size);
    return whole_->visit(first_ + offset, size, look);
  }
  void release(std::uint64_t offset, std::uint64_t size) const override { whole_->release(first_ + offset, size); }

 private:
  // Copies the bytes that are in memory, and returns the range that is still wanted.
  ReadRange take_kept(std::uint64_t offset, std::span<std::byte> out) const {
    if (offset >= kept_.size() || out.empty()) return {offset, out};
    const auto known = std::span(kept_).subspan(static_cast<std::size_t>(offset));
    const std::size_t size = std::min(known.size(), out.size());
    std::memcpy(out.data(), known.data(), size);
    return {offset + size, out.subspan(size)};
  }

  SourcePtr whole_;
  std::uint64_t first_, size_;
  std::string name_;
  std::vector<std::byte> kept_;  // the first bytes
};

}  // namespace

void require_inside(const Source& source, std::uint64_t offset, std::uint64_t size) {
  if (is_inside(offset, size, source.size_bytes())) return;
  throw Error(Errc::malformed,
              fmt::format("ends early: {} bytes are needed here, but it ends at byte {}", size, source.size_bytes()))
      .in(source.name())
      .at_byte(offset);
}

SourcePtr section(SourcePtr source, std::uint64_t offset, std::uint64_t size, std::string name) {
  require_inside(*source, offset, size);
  return std::make_shared<Section>(std::move(source), offset, size, std::move(name));
}

SourcePtr with_beginning(SourcePtr source, std::uint64_t size) {
  const std::uint64_t all = source->size_bytes();
  const auto* section = dynamic_cast<const Section*>(source.get());
  if (section != nullptr && section->kept_bytes() >= std::min(size, all)) return source;
  std::string name = source->name();
  return std::make_shared<Section>(std::move(source), 0, all, std::move(name), std::min(size, all));
}

Position behind_sections(SourcePtr source, std::uint64_t offset) {
  while (const auto* section = dynamic_cast<const Section*>(source.get())) {
    offset += section->first();
    source = SourcePtr(section->whole());
  }
  return {std::move(source), offset};
}

std::shared_ptr<const PaddedText> read_text(const Source& source, std::uint64_t limit) {
  const std::uint64_t size = source.size_bytes();
  if (size > limit)
    throw Error(Errc::limit, fmt::format("has {} bytes, more than the {} allowed", size, limit)).in(source.name());
  auto text = std::make_shared<PaddedText>(static_cast<std::size_t>(size));
  source.read(0, text->bytes());
  return text;
}

std::shared_ptr<const PaddedText> read_text_file(const std::string& path, std::uint64_t limit) {
  return read_text(*file_source(path), limit);
}

std::shared_ptr<const PaddedText> read_text(const Source& source, const Limits& limits) try {
  return read_text(source, limits.max_index_bytes);
} catch (Error& error) {
  if (error.code() == Errc::limit) error.hint(raise_limit("max_index_bytes"));
  throw;
}

std::shared_ptr<const PaddedText> read_text_file(const std::string& path, const Limits& limits) {
  return read_text(*file_source(path), limits);
}

Json read_configuration(const Source& source, const Limits& limits) {
  const auto text = read_text(source, limits);
  return Json::parse_python(without_byte_order_mark(text->view()));
}

}  // namespace ballast::io
