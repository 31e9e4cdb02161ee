// DerivedStorage: bytes that are made from tensors as they are read. If the storage itself does not answer a question,
// its tensors do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ballast/overflows.hpp>
#include <ballast/storage.hpp>
#include <ballast/tensor.hpp>

namespace ballast {

class DerivedStorage : public Storage {
 public:
  bool is_sequential() const override;  // if one of the tensors is
  bool has_data() const override;       // if all of the tensors have
  Derivation derivation() const override;
  void prepare(const Progress& progress) const override;
  void check_unchanged() const override;

 protected:
  // `step` says what is done to the tensors, as in Derivation.
  DerivedStorage(std::vector<Tensor> from, std::string step) : from_(std::move(from)), step_(std::move(step)) {}

  const std::vector<Tensor>& from() const noexcept { return from_; }

 private:
  std::vector<Tensor> from_;
  std::string step_;
};

// How the blocks of a result are made.
enum class Making : std::uint8_t {
  from_map,  // directly from the source's mapped bytes, if it has them; else as in_steps. make() owns nothing.
  in_steps,  // from aligned copies of the source's blocks, some at a time
  in_place,  // the source's blocks are as large as the result's, and are changed in the memory that they were read into
};

// Whole blocks of the result, made of whole blocks of the first tensor's contiguous form. Any range of the result is
// made from just the blocks that it touches. Nothing is kept. A block may be a whole row, which is then held in memory.
class BlockwiseStorage : public DerivedStorage {
 public:
  std::uint64_t size_bytes() const override { return source().nbytes() / in_block_ * out_block_; }
  std::uint64_t granule() const override;  // as much as is worth reading of the source, in blocks of the result
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  void read_many(std::span<const Range> ranges) const override;
  void prefetch(std::span<const ByteRange> ranges) const override;
  void release(std::uint64_t offset, std::uint64_t size) const override;

 protected:
  static constexpr std::size_t kSmallBlock = 1024;  // 256 floats: a larger block is not made on the stack

  BlockwiseStorage(std::vector<Tensor> from, std::string step, std::size_t in_block, std::size_t out_block,
                   Making making);

  const Tensor& source() const noexcept { return from().front(); }

  // Makes the blocks from number `first` on. With Making::in_place, `in` and `out` are the same bytes.
  virtual Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const = 0;

 private:
  ByteRange needed(ByteRange range) const;  // the range of the source that a range of the result needs
  Overflows place(std::uint64_t offset, std::span<const std::byte> in, std::span<std::byte> out) const;
  Overflows read_in_steps(std::uint64_t offset, std::span<std::byte> out) const;
  Overflows read_in_place(std::uint64_t offset, std::span<std::byte> out) const;
  void read_batch(std::span<const Range> ranges, std::uint64_t total) const;

  std::size_t in_block_, out_block_;
  Making making_;
};

}  // namespace ballast
