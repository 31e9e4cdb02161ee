// Sink: where a file is written to. Sized first, then written at offsets from several threads, then committed once.
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
  virtual ~Sink() = default;  // what was not committed leaves no trace

  virtual void reserve(std::uint64_t size_bytes) = 0;  // the final size; fails early when the disk is too small
  virtual void write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;  // thread-safe
  virtual void commit() = 0;

  // Bytes of another file, from `first` on, that are to be at `offset`: as many of them as the file system lets both
  // files share, without a copy. Says which: those are written. Thread-safe.
  virtual ByteRange share(int /*descriptor*/, std::uint64_t /*first*/, std::uint64_t /*offset*/,
                          std::uint64_t /*size*/) {
    return {};
  }

  // The bytes that were written, as they come back from where they were written to.
  virtual void read_back(std::uint64_t offset, std::span<std::byte> out) const = 0;  // thread-safe
  // What was written so far is where it belongs, and not only on its way there.
  virtual void settle() {}

  // All bytes are there. Should this process die before it commits, the next one that has the same key (see
  // OutputOptions) is told `mark`, by which it can tell whether they are still what they were.
  virtual void keep(std::uint64_t /*mark*/) {}
  // The mark of such a file, which now is this one's: write it anew, or commit it.
  virtual std::optional<std::uint64_t> kept() const { return std::nullopt; }
  // Whether nobody can have written to that file since, by all that the system knows: then its bytes are as they were
  // marked, and need not be read.
  virtual bool is_untouched() const { return false; }
  // This process will not commit. What was kept stays for the next one, as if this one had died; whether there is
  // something that stays.
  virtual bool leave_to_next_run() { return false; }

  virtual std::uint64_t free_bytes() const { return UINT64_MAX; }  // that can still be reserved
};

// What a file is a part of, by their names.
using WholeOf = std::string (*)(std::string_view name);

struct OutputOptions {
  bool overwrite = false;  // else an existing file is Errc::invalid_argument, found before anything is written
  bool durable = true;     // fsync the file before the rename and the folder after it
  std::string key{};       // 16 hexadecimal digits that stand for what will be written; empty: nothing is kept
  WholeOf whole_of =
      nullptr;  // what abandoned runs left of files of the same whole is removed; by default, of the file
};

// A file that appears under its name whole or not at all: a temporary sibling, preallocated, written, synced and
// renamed.
std::unique_ptr<Sink> create_file(const std::string& path, const OutputOptions& options = {});

}  // namespace ballast::io
