// Storage: bytes that can be read in ranges, and what is worth knowing before reading them.
//
// This is the one idea of Ballast. A tensor is a dtype, a shape and a Storage; the Storage alone knows where the bytes
// come from (a mapped file, a zip member, a block decoded on the fly, a sum computed on the fly). Tensors share a
// storage and keep it alive. Every member function may be called from several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ballast/progress.hpp>
#include <ballast/source.hpp>

namespace ballast {

class Tensor;

class Storage {
 public:
  using Range = ReadRange;
  using Location = FileLocation;  // where the storage's first byte lies

  // How bytes are made that do not lie in a file as they are.
  struct Derivation {
    std::string step;                  // everything that is done, with its numbers: "cast to BF16"; empty if nothing is
    std::vector<const Tensor*> from;   // the tensors it is done to, which live as long as the storage
    std::optional<Location> packed{};  // or the location of the packed bytes that it is done to
  };

  virtual ~Storage() = default;

  virtual std::uint64_t size_bytes() const = 0;

  // Fills `out` from `offset`; the range lies inside size_bytes(). Throws Error.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // Many ranges in one call, so that remote storage can ask once. The default reads one after the other.
  virtual void read_many(std::span<const Range> ranges) const;

  // Says that these ranges will be read soon: see Source::prefetch(). A storage that is made of others passes this on
  // to them.
  virtual void prefetch(std::span<const ByteRange> ranges) const;

  // The smallest range worth reading: a ggml row, a zstd frame. Readers split on multiples of it.
  virtual std::uint64_t granule() const { return 1; }

  // Whether ranges must be read in ascending order by one reader to be cheap (an inflate stream).
  virtual bool is_sequential() const { return false; }

  // Does once what must be done before the first byte can be read. Idempotent.
  virtual void prepare(const Progress& progress) const;

  // Bytes of memory that the storage keeps from prepare() on, besides those that it is asked for: plans count them.
  virtual std::uint64_t memory_bytes() const { return 0; }

  // All the bytes in place, or nothing. The bytes are those of a file that somebody may truncate: reading past its new
  // end is then a SIGBUS. read() and visit() give an error instead.
  virtual std::span<const std::byte> mapped() const { return {}; }

  // Calls `look` with the bytes in place, protected against the file shrinking meanwhile, and returns true; or returns
  // false without a call if nothing is in place. `look` may be abandoned half-way: it must own nothing.
  virtual bool visit(std::uint64_t offset, std::uint64_t size,
                     const std::function<void(std::span<const std::byte>)>& look) const;

  // Says that the bytes will not be needed again soon, so that a map can give its pages back.
  virtual void release(std::uint64_t offset, std::uint64_t size) const;

  // Where the bytes lie in a file, plain and in order; nothing if they are compressed, computed or in memory.
  virtual std::optional<Location> location() const { return std::nullopt; }

  // How the bytes are made, for code that shows a plan or compares two plans; see provenance.hpp.
  virtual Derivation derivation() const { return {}; }

  // Throws Errc::changed if the file behind the bytes is no longer what was opened.
  virtual void check_unchanged() const {}

  // The CRC-32 that the file declares for all of the bytes, if it declares one. Whoever reads all bytes compares it.
  virtual std::optional<std::uint32_t> declared_crc32() const { return std::nullopt; }

  // False for a tensor that has a dtype and a shape only (meta): reading it is an error.
  virtual bool has_data() const { return true; }
};

using StoragePtr = std::shared_ptr<const Storage>;

// Bytes in memory that the storage owns, or that `owner` keeps alive.
StoragePtr memory_storage(std::vector<std::byte> bytes);
StoragePtr memory_storage(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

// A size without bytes.
StoragePtr meta_storage(std::uint64_t size_bytes);

}  // namespace ballast
