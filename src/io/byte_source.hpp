// ByteSource: bytes at positions. A file (read or mapped), memory, later an HTTP range.
//
// Every member function is thread-safe. Positional reads only: there is no cursor to fight over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/padded_text.hpp"

namespace ballast::io {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual const std::string& name() const = 0;   // a path, a URL, "<memory>"
  virtual std::uint64_t size_bytes() const = 0;  // as it was when opened

  // Fills `out` from `offset`. A range past the end is Errc::malformed ("ends early"), or Errc::changed
  // when the file had those bytes when it was opened.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // See Storage: the same contract, for the whole source.
  virtual std::span<const std::byte> mapped() const { return {}; }
  virtual bool visit(std::uint64_t offset, std::uint64_t size,
                     const std::function<void(std::span<const std::byte>)>& look) const;
  virtual void release(std::uint64_t offset, std::uint64_t size) const;

  // Throws Errc::changed if the source is no longer what it was when it was opened.
  virtual void check_unchanged() const {}

  // Where the byte at `offset` lies in a file, as it is; nothing for memory.
  struct FilePosition {
    std::string file;
    std::uint64_t offset;
    int descriptor = -1;  // as long as the source lives
  };
  virtual std::optional<FilePosition> file_position(std::uint64_t) const { return std::nullopt; }
};

using ByteSourcePtr = std::shared_ptr<const ByteSource>;

// A regular file. FIFOs, devices, sockets and directories are refused at once, never waited for.
ByteSourcePtr open_file(const std::string& path);

ByteSourcePtr from_memory(std::vector<std::byte> bytes, std::string name = "<memory>");

// A part of another source, as a source of its own: a stored member of an archive. It must lie inside.
ByteSourcePtr section(ByteSourcePtr source, std::uint64_t offset, std::uint64_t size, std::string name);

// A whole small file; `limit` is a cap on its size (Errc::limit).
std::shared_ptr<const PaddedText> read_text_file(const std::string& path, std::uint64_t limit);

}  // namespace ballast::io
