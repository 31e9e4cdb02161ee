// Source: the bytes of a file, read at any offset, wherever the file lies. Files: such files by their names.
//
// Both can be implemented by a program that keeps its files elsewhere than in a file system: open(SourcePtr) opens one
// file, and OpenOptions::files finds the others that belong to it (shards, an index, the parts of a split GGUF, the
// configuration of an adapter).
//
// Ownership: both are shared. A checkpoint and its tensors keep the sources that they came from.
// Threads: every member function of both may be called from several threads at once. A source has no cursor.
// Cost: a call of read() or read_many() may be a network round trip. Opening a file takes a handful of calls, whatever
// its size.
// Errors: everything throws Error. A source itself repeats requests that are worth repeating: an error that it throws
// is final.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ballast/range.hpp>

namespace ballast {

struct OpenFile;

// A byte of a file.
struct FileLocation {
  std::string file;  // as it was opened
  std::uint64_t offset = 0;
  const OpenFile* open_file = nullptr;  // for the library itself: a local file, as long as its source lives
};

class Source {
 public:
  virtual ~Source() = default;

  virtual const std::string& name() const = 0;  // a path, a URL, "<memory>": for messages, and for Files

  // The size when the source was opened. If only the first answer tells the size, this call waits for that answer.
  virtual std::uint64_t size_bytes() const = 0;

  // Fills `out` from `offset`. A range past the end is Errc::malformed ("ends early"), or Errc::changed if the source
  // had those bytes when it was opened.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // Many ranges in one call, so that a remote source can ask once. By default one read() after the other.
  virtual void read_many(std::span<const ReadRange> ranges) const;

  // Says that these ranges will be read soon, about in this order. Returns at once and throws nothing: an error shows
  // when the ranges are read. Calls come in bursts, one for each tensor at worst, and the first read() ends a burst. By
  // default nothing is done.
  virtual void prefetch(std::span<const ByteRange> ranges) const;

  // The bytes that arrive in the time that one more request takes; 0 for sources that are near. Readers prefer reading
  // that many bytes in vain to one more request, and put off checks (of the local header of a zip member) until they
  // read the data.
  virtual std::uint64_t bytes_per_round_trip() const { return 0; }

  // All the bytes in place, or nothing. The bytes may be those of a file that somebody truncates: reading past its new
  // end is then a SIGBUS. read() and visit() give an error instead.
  virtual std::span<const std::byte> mapped() const { return {}; }

  // Calls `look` with the bytes in place, protected against the file shrinking meanwhile, and returns true; or returns
  // false without a call if nothing is in place. `look` may be abandoned half-way: it must own nothing.
  virtual bool visit(std::uint64_t offset, std::uint64_t size,
                     const std::function<void(std::span<const std::byte>)>& look) const;

  // Says that the bytes will not be needed again soon, so that a map can give its pages back.
  virtual void release(std::uint64_t offset, std::uint64_t size) const;

  // Throws Errc::changed if the source is no longer what it was when it was opened: by size and time, by an ETag.
  virtual void check_unchanged() const {}

  // A text that tells these bytes from all others without reading them: an inode and its times, an ETag. Empty if there
  // is none: a job that reads such a source cannot be continued after it was killed.
  virtual std::string identity() const { return {}; }

  // Where the byte at `offset` lies in a file, unchanged; nothing if it lies in no file. By default, in name().
  virtual std::optional<FileLocation> location(std::uint64_t offset) const;
};

using SourcePtr = std::shared_ptr<const Source>;

// A regular file, which is mapped if that pays. FIFOs, devices, sockets and directories are refused at once
// (Errc::invalid_argument), never waited for; Errc::not_found if there is no such file.
SourcePtr file_source(const std::string& path);

// Bytes in memory. They lie in no file, whatever the name.
SourcePtr memory_source(std::vector<std::byte> bytes, std::string name = "<memory>");

// Files by names. A name is what open() was given, or such a name with another last component, or with one more
// component.
class Files {
 public:
  virtual ~Files() = default;

  // Errc::not_found if there is no such file. Shards are opened by several threads at once.
  virtual SourcePtr open(const std::string& name) const = 0;

  // Whether there is a file of this name. Asked for small files beside a checkpoint, not for every file that is opened.
  virtual bool exists(const std::string& name) const = 0;

  // The names of the files and folders in a folder, without the folder, in any order. Nothing if `name` is not a
  // folder, or if folders cannot be listed.
  virtual std::optional<std::vector<std::string>> list(const std::string& name) const = 0;

  // The name of a file in a folder, and of a file beside another one. By default, inside() joins the two with a slash,
  // and beside() replaces what follows the last slash. `file` is one component: nothing in an index or a configuration
  // leads out of its folder.
  virtual std::string inside(const std::string& folder, const std::string& file) const;
  virtual std::string beside(const std::string& name, const std::string& file) const;

  // How many files are worth opening at once, if the caller does not say how many threads there may be; 0 means one for
  // each core.
  virtual unsigned opens_at_once() const { return 0; }

  // Whether, in a folder that has a whole file and an index of shards as well, the whole file is meant.
  virtual bool prefers_whole(const std::string& /*folder*/) const { return false; }

  // What a user should know about how a target was found: the network was away, a server sends no ranges. Asked after
  // the target was opened.
  virtual std::vector<std::string> notes(const std::string& /*name*/) const { return {}; }

  // Whether the file is a link to a file in another folder; such a link gets a note.
  virtual bool leaves_its_folder(const std::string& /*name*/) const { return false; }
};

using FilesPtr = std::shared_ptr<const Files>;

// The file system of this machine; names are paths. Always the same object.
const FilesPtr& local_files();

}  // namespace ballast
