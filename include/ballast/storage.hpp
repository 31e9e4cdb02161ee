// Storage: bytes that can be read in ranges, and what is worth knowing before reading them.
//
// This is the one idea of Ballast. A tensor is a name, a dtype, a shape and a Storage; where the bytes come from
// (a mapped file, a zip member, a block decoded on the fly, a sum computed on the fly) is the Storage's own business.
// Every member function may be called from several threads at once.
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
  using Location = FileLocation;  // of the storage's first byte

  // What makes bytes that do not lie in a file as they are.
  struct Derivation {
    std::string step;                  // all that is done, with its numbers: "cast to BF16"; empty where nothing is
    std::vector<const Tensor*> from;   // of these, which live as long as the storage
    std::optional<Location> packed{};  // or of what lies here, in another form
  };

  virtual ~Storage() = default;

  virtual std::uint64_t size_bytes() const = 0;

  // Fills `out` from `offset`; the range lies inside size_bytes(). Throws Error.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // Many ranges in one call, so that remote storage can ask once. The default reads one after the other.
  virtual void read_many(std::span<const Range> ranges) const;

  // These ranges will be read soon: see Source::prefetch(). What is made of other bytes says so of those.
  virtual void prefetch(std::span<const ByteRange> ranges) const;

  // The smallest range worth reading: a ggml row, a zstd frame. Readers split on multiples of it.
  virtual std::uint64_t granule() const { return 1; }

  // Whether ranges must be read in ascending order by one reader to be cheap (an inflate stream).
  virtual bool is_sequential() const { return false; }

  // What must be done once before the first byte can be read. Idempotent.
  virtual void prepare(const Progress& progress) const;

  // Bytes of memory that the storage keeps from prepare() on, beside those that it is asked for: plans count them.
  virtual std::uint64_t memory_bytes() const { return 0; }

  // All the bytes in place, or nothing. What lies behind them is a file that somebody may truncate: reading
  // past its new end is then a SIGBUS. read() and visit() give an error instead.
  virtual std::span<const std::byte> mapped() const { return {}; }

  // Calls `look` with the bytes in place, protected against the file shrinking meanwhile, and returns true; or returns
  // false without a call where there is nothing in place. `look` may be abandoned half-way: it must own nothing.
  virtual bool visit(std::uint64_t offset, std::uint64_t size,
                     const std::function<void(std::span<const std::byte>)>& look) const;

  // The bytes will not be needed again soon: lets a map give its pages back.
  virtual void release(std::uint64_t offset, std::uint64_t size) const;

  // Where the bytes lie in a file, plain and in order; nothing where they are compressed, computed or in memory.
  virtual std::optional<Location> location() const { return std::nullopt; }

  // How the bytes are made, for whoever shows a plan or compares two; see provenance.hpp.
  virtual Derivation derivation() const { return {}; }

  // Throws Errc::changed if what lies behind the bytes is no longer what was opened.
  virtual void check_unchanged() const {}

  // The CRC-32 that the file declares for all of the bytes, where it does: to be compared by whoever reads them all.
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
