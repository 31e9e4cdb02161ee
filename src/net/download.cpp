#include "net/download.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "core/once.hpp"
#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "io/posix.hpp"
#include "kernels/digest.hpp"
#include "net/session.hpp"

namespace ballast::net {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPieceBytes = 16 << 20;
constexpr std::uint64_t kMostBytes = std::uint64_t{1}
                                     << 44;       // more than any file system that people use has for a file
constexpr std::uint64_t kWriteBytes = 256 << 10;  // written while they are in the processor's cache

// Of the bytes as they come, from the first to the last.
class FileDigest {
 public:
  FileDigest(std::string_view like, std::uint64_t size) {
    if (like.size() == 64) sha256_.emplace();
    if (like.size() != 40) return;
    const std::string head = fmt::format("blob {}", size) + '\0';
    sha1_.emplace().update(std::as_bytes(std::span(head)));
  }

  bool is_wanted() const { return sha256_ || sha1_; }
  void update(std::span<const std::byte> bytes) {
    if (sha256_) sha256_->update(bytes);
    if (sha1_) sha1_->update(bytes);
  }
  std::string hex() { return sha256_ ? sha256_->hex() : sha1_ ? sha1_->hex() : std::string(); }

 private:
  std::optional<kernels::Sha256> sha256_;
  std::optional<kernels::Sha1> sha1_;
};

io::UniqueFd open_file(const std::string& path) {
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  io::UniqueFd file(io::retry([&] { return ::open(path.c_str(), flags, 0666); }));
  struct stat info = {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) throw io::system_error("cannot be written", errno).in(path);
  if (!S_ISREG(info.st_mode) || info.st_nlink > 1)
    throw Error(Errc::unsafe, "is no file that was left by an earlier run").in(path);
  return file;
}

// Whether what an earlier run left can only be its own.
bool is_private(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & S_IWOTH) == 0;
}

bool is_same_file(int fd, const std::string& path) {
  struct stat here = {}, there = {};
  return fstat(fd, &here) == 0 && stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino &&
         here.st_dev == there.st_dev;
}

// A file that is being fetched. It is open only from its first piece to its last one: a repository may have more files
// than a process may open.
class Partial {
 public:
  explicit Partial(Download& download)
      : download_(download),
        piece_bytes_(download.remote.ignores_ranges ? std::max<std::uint64_t>(size(), 1) : kPieceBytes),
        digest_(download.remote.digest, *download.remote.total),
        is_done_(static_cast<std::size_t>((size() + piece_bytes_ - 1) / piece_bytes_)) {}

  // Waits until nobody else is fetching the same file, and looks at what is there already.
  void begin(const HttpOptions& http) {
    once_.run([&] {
      take_lock(http);
      if (!download_.replaces && io::is_name_taken(download_.path)) {
        // Somebody else was faster. Only a digest tells that it is the same file.
        if (!is_there()) throw Error(Errc::invalid_argument, "already exists").of_system(EEXIST).in(download_.path);
        return is_done_.assign(pieces(), true);
      }
      is_ours_ = true;
      file_ = open_file(download_.partial);
      read_record();
      make_room();
    });
  }

  std::uint64_t size() const { return *download_.remote.total; }
  std::size_t pieces() const { return is_done_.size(); }
  bool is_done(std::size_t piece) {
    const std::lock_guard lock(mutex_);
    return is_done_[piece];
  }

  ByteRange range(std::size_t piece) const {
    const std::uint64_t first = piece * piece_bytes_;
    return {first, std::min(piece_bytes_, size() - first)};
  }

  Remote remote() {
    const std::lock_guard lock(mutex_);
    return download_.remote;
  }

  // The first answer of the server stands for those that follow.
  void learn(const Remote& remote) {
    const std::lock_guard lock(mutex_);
    if (!download_.remote.is_known) download_.remote = remote;
    download_.remote.final_url = remote.final_url;
  }

  void write(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (const int failed = io::write_all_at(file_.get(), offset, bytes); failed != 0)
      throw io::system_error("cannot be written", failed).in(download_.partial);
  }

  // All bytes of the piece are written.
  void note(std::size_t piece) {
    constexpr char kDone = '1';
    if (record_.get() >= 0 && pwrite(record_.get(), &kDone, 1, static_cast<off_t>(record_begin_ + piece)) != 1)
      throw io::system_error("cannot be written", errno).in(download_.partial);
    {
      const std::lock_guard lock(mutex_);
      is_done_[piece] = true;
    }
    follow(false);
  }

  // Called after each piece: if it was the last one, checks all of them and gives the file its name.
  void finish_if_whole(bool is_durable) {
    {
      const std::lock_guard lock(mutex_);
      const bool is_whole = std::find(is_done_.begin(), is_done_.end(), false) == is_done_.end();
      if (!is_whole || std::exchange(is_finished_, true)) return;
    }
    if (is_ours_) finish(is_durable);
    file_ = io::UniqueFd();
    record_ = io::UniqueFd();
    if (download_.removes_lock) unlink(download_.lock.c_str());
    lock_ = io::UniqueFd();
  }

 private:
  bool is_there() const {
    struct stat info = {};
    return !download_.remote.digest.empty() && stat(download_.path.c_str(), &info) == 0 &&
           static_cast<std::uint64_t>(info.st_size) == size();
  }

  void finish(bool is_durable) {
    follow(true);
    if (const std::string& wanted = download_.remote.digest; digest_.is_wanted()) {
      const std::string found = digest_.hex();
      if (found != wanted) {
        remove();
        throw Error(Errc::mismatch,
                    fmt::format("the bytes that came are not those of the file: their digest is {}, not {}",
                                found.substr(0, 16), wanted.substr(0, 16)))
            .in(download_.remote.name)
            .hint("fetch it again; if that does not help, the server has a damaged file");
      }
    }
    if (is_durable && fdatasync(file_.get()) != 0)
      throw io::system_error("cannot be written", errno).in(download_.partial);
    std::error_code ignored;
    fs::create_directories(fs::path(download_.path).parent_path(), ignored);
    if (rename(download_.partial.c_str(), download_.path.c_str()) != 0)
      throw io::system_error("cannot get its name", errno).in(download_.path);
    unlink(record_path().c_str());
  }

  std::string record_path() const { return download_.partial + ".pieces"; }

  void take_lock(const HttpOptions& http) {
    do {  // whoever had the lock may have removed its file
      lock_ = open_file(download_.lock);
      while (io::retry([&] { return flock(lock_.get(), LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK) {
        require_wanted(http);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    } while (!is_same_file(lock_.get(), download_.lock));
  }

  // What the pieces are pieces of; empty if a later run could not be sure.
  std::string key() const {
    const Remote& remote = download_.remote;
    if (!remote.digest.empty()) return fmt::format("ballast.pieces/1 {} {} {}\n", remote.digest, size(), piece_bytes_);
    if (remote.etag.empty()) return {};
    return fmt::format("ballast.pieces/1 {} {} {} {} {}\n", remote.name, remote.etag, size(), piece_bytes_,
                       io::run_of_the_system());
  }

  void read_record() {
    const std::string head = key();
    if (head.empty()) return;
    record_ = open_file(record_path());
    record_begin_ = head.size();
    std::string text(head.size() + pieces(), '\0');
    std::size_t done = 0;
    const int failed = io::read_all_at(record_.get(), 0, std::as_writable_bytes(std::span(text)), done);
    struct stat info = {};
    const bool is_sized = fstat(file_.get(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) == size();
    const bool is_ours = is_private(file_.get()) && is_private(record_.get());
    if (failed == 0 && done == text.size() && is_sized && is_ours && text.starts_with(head)) {
      for (std::size_t i = 0; i < pieces(); ++i) is_done_[i] = text[head.size() + i] == '1';
      return;
    }
    const std::string fresh = head + std::string(pieces(), '0');
    const bool is_written =
        ftruncate(record_.get(), 0) == 0 && io::write_all_at(record_.get(), 0, std::as_bytes(std::span(fresh))) == 0;
    if (!is_written) throw io::system_error("cannot be written", errno).in(record_path());
  }

  // A disk that is too small says so now, not in an hour.
  void make_room() {
    if (ftruncate(file_.get(), static_cast<off_t>(size())) != 0)
      throw io::system_error("cannot be written", errno).in(download_.partial);
    if (size() == 0 || fallocate(file_.get(), 0, 0, static_cast<off_t>(size())) == 0) return;
    if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT) {
      throw io::system_error(fmt::format("there is no room for its {}", format_bytes(size())), errno)
          .in(download_.partial);
    }
  }

  // Hashes the pieces that are there in a row, from the page cache. One thread does it; others only if they must.
  void follow(bool must) {
    if (!digest_.is_wanted()) return;
    std::unique_lock hashing(hash_mutex_, std::defer_lock);
    if (must)
      hashing.lock();
    else if (!hashing.try_lock())
      return;
    std::vector<std::byte> buffer;
    for (;; ++hashed_) {
      {
        const std::lock_guard lock(mutex_);
        if (hashed_ == pieces() || !is_done_[hashed_]) return;
      }
      buffer.resize(static_cast<std::size_t>(range(hashed_).size));
      std::size_t done = 0;
      const int failed = io::read_all_at(file_.get(), range(hashed_).offset, buffer, done);
      if (failed != 0 || done != buffer.size())
        throw io::system_error("cannot be read", failed == 0 ? EIO : failed).in(download_.partial);
      digest_.update(buffer);
    }
  }

  void remove() {
    unlink(download_.partial.c_str());
    unlink(record_path().c_str());
  }

  Download& download_;
  std::uint64_t piece_bytes_;  // all, of a server that sends no ranges
  Once once_;
  bool is_ours_ = false;  // to be fetched
  io::UniqueFd lock_, file_, record_;
  std::size_t record_begin_ = 0;
  std::mutex hash_mutex_;  // guards digest_ and hashed_
  FileDigest digest_;
  std::size_t hashed_ = 0;
  std::mutex mutex_;  // guards download_.remote and what follows
  std::vector<bool> is_done_;
  bool is_finished_ = false;
};

struct PieceOfFile {
  Partial* file;
  std::size_t number;
};

}  // namespace

void download(HttpClient& client, std::vector<Download>& downloads, const DownloadOptions& options) {
  // Everybody takes the locks in the same order.
  std::sort(downloads.begin(), downloads.end(), [](const Download& a, const Download& b) { return a.lock < b.lock; });
  std::deque<Partial> files;
  std::vector<PieceOfFile> pieces;
  std::uint64_t total = 0;
  for (Download& one : downloads) {
    if (*one.remote.total > kMostBytes) throw Error(Errc::limit, "the file is too large").in(one.remote.name);
    Partial& file = files.emplace_back(one);
    total += file.size();
    for (std::size_t i = 0; i < std::max<std::size_t>(file.pieces(), 1); ++i) pieces.push_back({&file, i});
  }
  ProgressMeter meter(options.progress, "fetching", total);
  ThreadPool pool(std::max(options.in_flight, 1u));
  std::vector<std::vector<std::byte>> buffers(pool.size());
  pool.run(pieces.size(), [&](std::size_t item, unsigned worker) {
    Partial* const file = pieces[item].file;
    const std::size_t number = pieces[item].number;
    file->begin(client.options());
    const bool is_empty = file->size() == 0;
    if (is_empty || file->is_done(number)) {
      if (!is_empty) meter.add(file->range(number).size);
      return file->finish_if_whole(options.is_durable);
    }
    const ByteRange range = file->range(number);
    auto& buffer = buffers[worker];
    buffer.clear();
    std::uint64_t written = 0;
    const auto flush = [&] {
      file->write(range.offset + written, buffer);
      written += buffer.size();
      buffer.clear();
    };
    Fetch fetch{{range.offset, range.size, false}, {}};
    fetch.sink = [&](std::span<const std::byte> bytes) {
      meter.add(bytes.size());
      buffer.insert(buffer.end(), bytes.begin(), bytes.end());
      if (buffer.size() >= kWriteBytes) flush();
    };
    Remote remote = file->remote();
    client.fetch(remote, {&fetch, 1});
    flush();
    if (written != range.size) throw changed("it is shorter now").in(remote.name);
    file->learn(remote);
    file->note(number);
    file->finish_if_whole(options.is_durable);
  });
}

std::string digest_of_file(const std::string& path, std::string_view like) {
  const io::UniqueFd file(io::retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  struct stat info = {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) throw io::system_error("cannot be read", errno).in(path);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  FileDigest digest(like, size);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(size, kPieceBytes)));
  for (std::uint64_t at = 0; at < size;) {
    std::size_t done = 0;
    const int failed = io::read_all_at(file.get(), at, buffer, done);
    if (failed != 0 || done == 0) throw io::system_error("cannot be read", failed == 0 ? EIO : failed).in(path);
    digest.update(std::span(buffer).first(done));
    at += done;
  }
  return digest.hex();
}

}  // namespace ballast::net
