// Sink: where a file is written to. Sized first, then written at offsets from several threads, then committed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ballast::io {

class Sink {
 public:
  virtual ~Sink() = default;  // what was not committed leaves no trace

  virtual void reserve(std::uint64_t size_bytes) = 0;  // the final size; fails early when the disk is too small
  virtual void write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;  // thread-safe
  virtual void commit() = 0;
};

struct OutputOptions {
  bool overwrite = false;  // else an existing file is Errc::invalid_argument, found before anything is written
  bool durable = true;     // fsync the file before the rename and the folder after it
};

// A file that appears under its name whole or not at all: a temporary sibling, preallocated, written, synced and
// renamed.
std::unique_ptr<Sink> create_file(const std::string& path, const OutputOptions& options = {});

}  // namespace ballast::io
