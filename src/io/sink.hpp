// Sink: where a file is written to. It is sized first, then written at offsets from several threads, then committed
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <ballast/range.hpp>

namespace ballast::io {

class Sink {
 public:
  virtual ~Sink() = default;  // without commit(), leaves no trace

  virtual void reserve(std::uint64_t size_bytes) = 0;  // the final size; fails early if the disk is too small
  // Instead of reserve(), for bytes that take long to get: the file has `record_bytes` more behind its end, in which
  // the caller notes what is written (with write_at), and is kept for the next run as it is, until keep() or commit()
  // cuts the record off. Returns whether this is the file of an earlier run, with its record.
  virtual bool resume(std::uint64_t size_bytes, std::uint64_t /*record_bytes*/) {
    reserve(size_bytes);
    return false;
  }
  virtual void write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;  // thread-safe
  virtual void commit() = 0;

  // Asks the file system to share bytes of another file, from `first` on, as the bytes at `offset`, without a copy.
  // Returns which bytes are shared, and so written. Thread-safe.
  virtual ByteRange share(int /*descriptor*/, std::uint64_t /*first*/, std::uint64_t /*offset*/,
                          std::uint64_t /*size*/) {
    return {};
  }

  // Reads back the bytes that were written.
  virtual void read_back(std::uint64_t offset, std::span<std::byte> out) const = 0;  // thread-safe
  // Makes sure that the bytes written so far, by this process, are on the disk.
  virtual void sync() {}
  // The same, and lets read_back() read the disk, and not what this machine remembers of it.
  virtual void settle() {}

  // Where the file is until it is committed, for join_file(); until anything is written to it, reserve() and resume()
  // may still move it.
  virtual std::string temporary_path() const { return {}; }

  // All bytes are written. If this process dies before it commits, the next process with the same key (see
  // OutputOptions) is told `mark`, by which it can tell whether the bytes are still the same.
  virtual void keep(std::uint64_t /*mark*/) {}
  // The mark of a file that an earlier process kept and that this sink has taken over: write it anew, or commit it.
  // kUnfinished for one that can be resumed.
  static constexpr std::uint64_t kUnfinished = 0;
  virtual std::optional<std::uint64_t> kept() const { return std::nullopt; }
  // Whether nobody can have written to the file that was taken over since it was kept, by all that the system knows:
  // then its bytes are as they were marked, and need not be read.
  virtual bool is_untouched() const { return false; }
  // Says that this process will not commit. A file that was kept stays for the next process, as if this one had died.
  // Returns whether there is such a file.
  virtual bool leave_to_next_run() { return false; }

  virtual std::uint64_t free_bytes() const { return UINT64_MAX; }  // bytes that can still be reserved
};

// Maps the name of a file to the name of the whole that it is a part of, such as a set of shards.
using WholeOf = std::string (*)(std::string_view name);

struct OutputOptions {
  bool overwrite = false;  // else an existing file is Errc::invalid_argument, found before anything is written
  bool durable = true;     // fsync the file before the rename and the folder after it
  std::string key{};       // 16 hexadecimal digits that stand for what will be written; empty: nothing is kept
  WholeOf whole_of =
      nullptr;  // removes what abandoned runs left of files of the same whole; without it, only of this file
};

// A file that appears under its name whole or not at all: a temporary sibling, preallocated, written, synced and
// renamed.
std::unique_ptr<Sink> create_file(const std::string& path, const OutputOptions& options = {});

// The same file in another process, by its temporary_path() there: it is written at offsets, read back and synced here,
// and sized, kept and committed only there. `path` is the name that it will have.
std::unique_ptr<Sink> join_file(const std::string& path, const std::string& temporary, bool durable);

}  // namespace ballast::io
