#include "io/byte_source.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/once.hpp"
#include "io/fault_guard.hpp"
#include "io/posix.hpp"

namespace ballast::io {

bool ByteSource::visit(std::uint64_t, std::uint64_t, const std::function<void(std::span<const std::byte>)>&) const {
  return false;
}

void ByteSource::release(std::uint64_t, std::uint64_t) const {}

namespace {

void require_inside(const ByteSource& source, std::uint64_t offset, std::uint64_t size) {
  if (is_inside(offset, size, source.size_bytes())) return;
  throw Error(Errc::malformed,
              fmt::format("ends early: {} bytes are needed here, but it ends at byte {}", size, source.size_bytes()))
      .in(source.name())
      .at_byte(offset);
}

std::span<const std::byte> part_of(std::span<const std::byte> all, std::uint64_t offset, std::uint64_t size) {
  return all.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::vector<std::byte> bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  std::span<const std::byte> mapped() const override { return bytes_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    require_inside(*this, offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    require_inside(*this, offset, size);
    look(part_of(bytes_, offset, size));
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
};

// From some size on a read is a copy from the map, which is as fast as the file is warm and never slower than pread by
// more than its page faults. As a share of memcpy from a map whose pages are all present (one thread, Linux 6.18, the
// file in memory):
//     bytes a read            4 KiB   64 KiB   1 MiB   16 MiB   64 MiB
//     pread, ext4              0.24     0.79    0.91     0.95     0.96
//     pread, tmpfs             0.30     0.51    0.60     0.62     0.67
//     the map, pages present   0.95     0.98    1.00     1.02     0.99
//     the map, first touch     0.92     0.92    0.96     0.98     0.95
// Where the file is not in memory, both wait for the disk alike. To make the map, fault its pages in and take it away
// again costs more than it gains for a header that is read once: so only large reads make one, and others use one that
// is there.
constexpr std::size_t kWorthMapping = 1 << 20;
constexpr std::size_t kWorthTheMap = 4 << 10;

// The descriptor stays open: it pins the file that was opened, whatever is later renamed over its name.
class FileSource final : public ByteSource {
 public:
  FileSource(std::string path, UniqueFd fd, const struct stat& opened)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        size_(static_cast<std::uint64_t>(opened.st_size)),
        mtime_(opened.st_mtim) {}

  ~FileSource() override {
    if (!map_.empty()) munmap(const_cast<std::byte*>(map_.data()), map_.size());
  }

  const std::string& name() const override { return path_; }
  std::uint64_t size_bytes() const override { return size_; }
  std::optional<FilePosition> file_position(std::uint64_t offset) const override {
    return FilePosition{path_, offset, fd_.get()};
  }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    require_inside(*this, offset, out.size());
    const std::size_t worth_it = has_map_.load(std::memory_order_acquire) ? kWorthTheMap : kWorthMapping;
    if (out.size() >= worth_it && copy_from_map(offset, out)) return;
    pread_all(offset, out);
  }

  std::span<const std::byte> mapped() const override {
    map_once_.run([this] {
      map_ = map_all();
      has_map_.store(true, std::memory_order_release);
    });
    return map_;
  }

  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    require_inside(*this, offset, size);
    if (size == 0) {
      look({});
      return true;
    }
    if (mapped().empty()) return false;
    if (const auto fault = look_guarded(offset, size, look)) explain_fault(*fault);
    return true;
  }

  void release(std::uint64_t offset, std::uint64_t size) const override {
    const std::uint64_t page = page_size();
    const auto map = mapped();
    if (map.empty() || !is_inside(offset, size, map.size())) return;
    // Pages that the range only touches may be somebody else's; the last page of the file has no neighbour.
    const std::uint64_t first = (offset + page - 1) / page * page;
    const std::uint64_t last = offset + size == map.size() ? map.size() : (offset + size) / page * page;
    if (first < last)
      madvise(const_cast<std::byte*>(map.data()) + first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
  }

  void check_unchanged() const override {
    const struct stat now = stat_now();
    const bool is_same = static_cast<std::uint64_t>(now.st_size) == size_ && now.st_mtim.tv_sec == mtime_.tv_sec &&
                         now.st_mtim.tv_nsec == mtime_.tv_nsec;
    if (!is_same) throw_changed();
  }

 private:
  struct stat stat_now() const {
    struct stat now = {};
    if (fstat(fd_.get(), &now) != 0) throw system_error("cannot be examined", errno).in(path_);
    return now;
  }

  std::uint64_t size_now() const { return static_cast<std::uint64_t>(stat_now().st_size); }

  static std::uint64_t page_size() {
    static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return size;
  }

  // MAP_PRIVATE, because some file systems (FUSE with direct_io, 9p) refuse a shared map; for pages that are only read
  // there is no other difference. A file that cannot be mapped at all is read.
  std::span<const std::byte> map_all() const {
    if (size_ == 0 || size_ > SIZE_MAX) return {};
    void* address = mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ, MAP_PRIVATE, fd_.get(), 0);
    if (address == MAP_FAILED) return {};
    return {static_cast<const std::byte*>(address), static_cast<std::size_t>(size_)};
  }

  bool copy_from_map(std::uint64_t offset, std::span<std::byte> out) const {
    if (mapped().empty()) return false;
    const auto copy = [out](std::span<const std::byte> from) { std::memcpy(out.data(), from.data(), out.size()); };
    return !look_guarded(offset, out.size(), copy);  // if not, pread says why
  }

  // Nothing, or the offset of a byte that could not be read.
  //
  // Of the page in which a shrunk file now ends, the rest reads as zeros and not as a fault. But the kernel takes the
  // pages behind it away before it writes the zeros, so where the page after the last one looked at is still there, all
  // was well. The last page of the file has none, and there the size is asked for (which takes twenty times as long as
  // the guard).
  template <class Look>
  std::optional<std::uint64_t> look_guarded(std::uint64_t offset, std::uint64_t size, const Look& look) const {
    const std::uint64_t end = offset + size;
    const std::uint64_t next_page = (end + page_size() - 1) / page_size() * page_size();
    const bool has_next_page = next_page < size_;
    const auto bytes = part_of(map_, offset, size);
    const auto guarded = part_of(map_, offset, has_next_page ? next_page + 1 - offset : size);

    const auto fault = fault_while(guarded, [&] {
      look(bytes);
      if (has_next_page) static_cast<void>(*static_cast<const volatile std::byte*>(&guarded.back()));
    });
    if (fault) return offset + *fault;
    if (has_next_page) return std::nullopt;
    const std::uint64_t end_now = size_now();
    return end_now < end ? std::optional(end_now) : std::nullopt;
  }

  void pread_all(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t n = retry([&] { return pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset)); });
      if (n < 0) throw system_error("cannot be read", errno).in(path_).at_byte(offset);
      if (n == 0) throw_shrunk(offset);
      out = out.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
  }

  [[noreturn]] void throw_shrunk(std::uint64_t offset) const {
    throw Error(Errc::changed,
                fmt::format("the file shrank from {} to {} bytes while it was being read", size_, size_now()))
        .in(path_)
        .at_byte(offset)
        .hint("try again when nothing writes to it");
  }

  // The map says only that a byte is not to be had; a plain read of it says whether the file shrank or the disk failed.
  [[noreturn]] void explain_fault(std::uint64_t offset) const {
    std::byte probe;
    pread_all(offset, {&probe, 1});
    throw_changed();  // it has grown again
  }

  [[noreturn]] void throw_changed() const {
    throw Error(Errc::changed, "the file was changed while it was being read")
        .in(path_)
        .hint("try again when nothing writes to it");
  }

  std::string path_;
  UniqueFd fd_;
  std::uint64_t size_;
  struct timespec mtime_;

  mutable Once map_once_;
  mutable std::atomic<bool> has_map_ = false;  // whether it was tried
  mutable std::span<const std::byte> map_;
};

class Section final : public ByteSource {
 public:
  Section(ByteSourcePtr whole, std::uint64_t first, std::uint64_t size, std::string name)
      : whole_(std::move(whole)), first_(first), size_(size), name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return size_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    require_inside(*this, offset, out.size());
    whole_->read_at(first_ + offset, out);
  }
  std::span<const std::byte> mapped() const override {
    const auto map = whole_->mapped();
    return map.empty() ? map : part_of(map, first_, size_);
  }
  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    require_inside(*this, offset, size);
    return whole_->visit(first_ + offset, size, look);
  }
  void release(std::uint64_t offset, std::uint64_t size) const override { whole_->release(first_ + offset, size); }
  void check_unchanged() const override { whole_->check_unchanged(); }
  std::optional<FilePosition> file_position(std::uint64_t offset) const override {
    return whole_->file_position(first_ + offset);
  }

 private:
  ByteSourcePtr whole_;
  std::uint64_t first_, size_;
  std::string name_;
};

[[noreturn]] void refuse_kind(const std::string& path, mode_t mode) {
  throw Error(Errc::invalid_argument, fmt::format("is {}, not a file", kind_of_file(mode))).in(path);
}

[[noreturn]] void throw_cannot_open(const std::string& path, int error) {
  struct stat found = {};
  // A socket cannot even be opened (ENXIO), so its kind is asked for only here.
  if (error == ENXIO && stat(path.c_str(), &found) == 0) refuse_kind(path, found.st_mode);
  throw system_error("cannot be opened", error).in(path);
}

}  // namespace

ByteSourcePtr open_file(const std::string& path) {
  // O_NONBLOCK, or a named pipe without a writer would be waited for; O_NOCTTY, or a terminal could become ours.
  UniqueFd fd(retry([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!fd) throw_cannot_open(path, errno);

  struct stat opened = {};
  if (fstat(fd.get(), &opened) != 0) throw system_error("cannot be examined", errno).in(path);
  if (!S_ISREG(opened.st_mode)) refuse_kind(path, opened.st_mode);
  return std::make_shared<FileSource>(path, std::move(fd), opened);
}

ByteSourcePtr from_memory(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

ByteSourcePtr section(ByteSourcePtr source, std::uint64_t offset, std::uint64_t size, std::string name) {
  require_inside(*source, offset, size);
  return std::make_shared<Section>(std::move(source), offset, size, std::move(name));
}

std::shared_ptr<const PaddedText> read_text_file(const std::string& path, std::uint64_t limit) {
  const ByteSourcePtr file = open_file(path);
  if (file->size_bytes() > limit)
    throw Error(Errc::limit, fmt::format("has {} bytes, more than the {} allowed", file->size_bytes(), limit)).in(path);
  auto text = std::make_shared<PaddedText>(static_cast<std::size_t>(file->size_bytes()));
  file->read_at(0, text->bytes());
  return text;
}

}  // namespace ballast::io
