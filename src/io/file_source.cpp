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
#include <ballast/source.hpp>

#include "core/checked.hpp"
#include "core/once.hpp"
#include "core/read_counter.hpp"
#include "io/fault_guard.hpp"
#include "io/identity.hpp"
#include "io/open_file.hpp"
#include "io/page_cache.hpp"
#include "io/posix.hpp"
#include "io/section.hpp"

namespace ballast::io {
namespace {

std::span<const std::byte> part_of(std::span<const std::byte> all, std::uint64_t offset, std::uint64_t size) {
  return all.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

// From some size on, a read is a copy from the map. Its speed depends on how much of the file is in memory, and it is
// never slower than pread by more than its page faults. As a share of memcpy from a map whose pages are all present
// (one thread, Linux 6.18, the file in memory):
//     bytes a read            4 KiB   64 KiB   1 MiB   16 MiB   64 MiB
//     pread, ext4              0.24     0.79    0.91     0.95     0.96
//     pread, tmpfs             0.30     0.51    0.60     0.62     0.67
//     the map, pages present   0.95     0.98    1.00     1.02     0.99
//     the map, first touch     0.92     0.92    0.96     0.98     0.95
// If the file is not in memory, both wait for the disk alike. To make the map, fault its pages in and remove it again
// costs more than it gains for a header that is read once. So only large reads make a map, and smaller ones use a map
// that is there.
constexpr std::size_t kWorthMapping = 1 << 20;
constexpr std::size_t kWorthTheMap = 4 << 10;

constexpr std::uint64_t kWorthReadingThrough = 64 << 10;  // bytes between two ranges

// The descriptor stays open: it pins the file that was opened, whatever is later renamed over its name.
class FileSource final : public Source {
 public:
  FileSource(std::string path, UniqueFd fd, const struct stat& opened)
      : path_(std::move(path)), file_{std::move(fd)}, opened_(identify(opened)), size_(opened_.size_bytes) {}

  ~FileSource() override {
    if (!map_.empty()) munmap(const_cast<std::byte*>(map_.data()), map_.size());
  }

  const std::string& name() const override { return path_; }
  std::uint64_t size_bytes() const override { return size_; }
  std::optional<FileLocation> location(std::uint64_t offset) const override {
    return FileLocation{path_, offset, &file_};
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    require_inside(*this, offset, out.size());
    count_read(out.size());
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
    count_read(size);
    if (const auto fault = look_guarded(offset, size, look)) explain_fault(*fault);
    return true;
  }

  void release(std::uint64_t offset, std::uint64_t size) const override {
    const std::uint64_t page = page_size();
    const auto map = mapped();
    if (map.empty() || !is_inside(offset, size, map.size())) return;
    // The pages at both ends may also hold bytes of other ranges, so they stay; the last page of the file has no
    // neighbour.
    const std::uint64_t first = (offset + page - 1) / page * page;
    const std::uint64_t last = offset + size == map.size() ? map.size() : (offset + size) / page * page;
    if (first < last)
      madvise(const_cast<std::byte*>(map.data()) + first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
  }

  void check_unchanged() const override {
    const FileIdentity now = identify(stat_now());
    if (now.size_bytes != size_ || now.modified_ns != opened_.modified_ns) throw_changed();
  }

  std::string identity() const override {
    return fmt::format("{}-{}-{}-{}-{}", opened_.device, opened_.inode, size_, opened_.modified_ns, opened_.changed_ns);
  }

  // Asks the system to read what is not in memory yet. One page is looked at for each run of ranges: most files are in
  // memory, and then nothing else is done.
  void prefetch(std::span<const ByteRange> ranges) const override {
    for (std::size_t i = 0; i < ranges.size();) {
      const std::uint64_t first = ranges[i].offset;
      std::uint64_t end = first + ranges[i].size;
      while (++i < ranges.size() && ranges[i].offset >= end && ranges[i].offset - end <= kWorthReadingThrough)
        end = ranges[i].offset + ranges[i].size;
      if (is_absent(file_.fd.get(), first))
        posix_fadvise(file_.fd.get(), static_cast<off_t>(first), static_cast<off_t>(end - first), POSIX_FADV_WILLNEED);
    }
  }

 private:
  struct stat stat_now() const {
    struct stat now = {};
    if (fstat(file_.fd.get(), &now) != 0) throw system_error("cannot be examined", errno).in(path_);
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
    void* address = mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ, MAP_PRIVATE, file_.fd.get(), 0);
    if (address == MAP_FAILED) return {};
    return {static_cast<const std::byte*>(address), static_cast<std::size_t>(size_)};
  }

  bool copy_from_map(std::uint64_t offset, std::span<std::byte> out) const {
    if (mapped().empty()) return false;
    const auto copy = [out](std::span<const std::byte> from) { std::memcpy(out.data(), from.data(), out.size()); };
    return !look_guarded(offset, out.size(), copy);  // if false, pread says why
  }

  // Returns nothing, or the offset of a byte that could not be read.
  //
  // If a file shrank, the rest of the page in which it now ends reads as zeros and does not fault. But the kernel
  // removes the pages behind that page before it writes the zeros. So if the page after the last one looked at is still
  // there, all bytes were right. The last page of the file has no page after it, so there the size is asked for (which
  // takes twenty times as long as the guard).
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
      const ssize_t n =
          retry([&] { return pread(file_.fd.get(), out.data(), out.size(), static_cast<off_t>(offset)); });
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

  // The map says only that a byte cannot be read; a plain read of the byte says whether the file shrank or the disk
  // failed.
  [[noreturn]] void explain_fault(std::uint64_t offset) const {
    std::byte probe;
    pread_all(offset, {&probe, 1});
    throw_changed();  // the file has grown again
  }

  [[noreturn]] void throw_changed() const {
    throw Error(Errc::changed, "the file was changed while it was being read")
        .in(path_)
        .hint("try again when nothing writes to it");
  }

  std::string path_;
  OpenFile file_;
  FileIdentity opened_;
  std::uint64_t size_;

  mutable Once map_once_;
  mutable std::atomic<bool> has_map_ = false;  // whether mapping was tried
  mutable std::span<const std::byte> map_;
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

SourcePtr opened_file(const std::string& path) {
  // O_NONBLOCK, because open() would wait for a writer of a named pipe; O_NOCTTY, because a terminal could become ours.
  UniqueFd fd(retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!fd) throw_cannot_open(path, errno);

  struct stat opened = {};
  if (fstat(fd.get(), &opened) != 0) throw system_error("cannot be examined", errno).in(path);
  if (!S_ISREG(opened.st_mode)) refuse_kind(path, opened.st_mode);
  return std::make_shared<FileSource>(path, std::move(fd), opened);
}

}  // namespace
}  // namespace ballast::io

ballast::SourcePtr ballast::file_source(const std::string& path) { return io::opened_file(path); }
