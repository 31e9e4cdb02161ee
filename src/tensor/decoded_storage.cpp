#include "tensor/decoded_storage.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/once.hpp"
#include "core/overflow_counter.hpp"
#include "kernels/cast.hpp"
#include "kernels/ggml_decode.hpp"

namespace ballast {
namespace {

constexpr std::size_t kLargestBlock = 1024;  // 256 floats; no ggml block has more bytes

// Whole blocks of one storage made of whole blocks of another.
class BlockStorage : public Storage {
 public:
  std::uint64_t size_bytes() const override { return source_.nbytes() / in_block_ * out_block_; }
  bool is_sequential() const override { return under() && under()->is_sequential(); }
  bool has_data() const override { return source_.has_data(); }
  void check_unchanged() const override {
    if (under()) under()->check_unchanged();
  }
  void prepare(const Progress& progress) const override {
    if (under()) under()->prepare(progress);
  }

  // What is worth reading of the source, in blocks of the result.
  std::uint64_t granule() const override {
    if (!under() || !source_.is_contiguous()) return out_block_;
    return std::max<std::uint64_t>((under()->granule() + in_block_ - 1) / in_block_, 1) * out_block_;
  }

  void release(std::uint64_t offset, std::uint64_t size) const override {
    if (!under() || !source_.is_contiguous()) return;
    under()->release(source_.offset() + offset / out_block_ * in_block_, size / out_block_ * in_block_);
  }

  // A range may begin or end inside a block: those two are made aside.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (const std::uint64_t skip = offset % out_block_; skip != 0 && !out.empty()) {
      const auto part = out.first(std::min<std::size_t>(out_block_ - skip, out.size()));
      read_part(offset / out_block_, skip, part);  // whoever reads the beginning of a block counts its overflows
      offset += part.size();
      out = out.subspan(part.size());
    }
    const std::size_t whole = out.size() - out.size() % out_block_;
    Overflows overflows;
    if (whole != 0) overflows = read_blocks(offset / out_block_, out.first(whole));
    if (whole != out.size()) overflows.add(read_part((offset + whole) / out_block_, 0, out.subspan(whole)));
    count_overflows(overflows);
  }

 protected:
  BlockStorage(Tensor source, std::size_t out_block)
      : source_(std::move(source)), in_block_(info(source_.dtype()).block_bytes), out_block_(out_block) {}

  // Blocks from number `first` on. May be abandoned half-way: owns nothing.
  virtual Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const = 0;

  const Tensor& source() const noexcept { return source_; }
  std::string decoding_to(DType out) const { return fmt::format("decode {} to {}", name(source_.dtype()), name(out)); }

 private:
  static constexpr std::size_t kStepBytes = 64 << 10;  // of the source: in the second-level cache with its result

  const Storage* under() const noexcept { return source_.storage().get(); }

  Overflows read_part(std::uint64_t block, std::uint64_t skip, std::span<std::byte> part) const {
    std::array<std::byte, kLargestBlock> whole;
    const Overflows overflows = read_blocks(block, std::span(whole).first(out_block_));
    std::memcpy(part.data(), whole.data() + skip, part.size());
    return overflows;
  }

  Overflows read_blocks(std::uint64_t first, std::span<std::byte> out) const {
    Overflows overflows;
    const std::uint64_t begin = first * in_block_, size = out.size() / out_block_ * in_block_;
    if (source_.is_contiguous()) {
      const auto look = [&](std::span<const std::byte> in) { overflows = make(first, in, out); };
      if (under()->visit(source_.offset() + begin, size, std::ref(look))) return overflows;
    }
    const std::uint64_t blocks_at_once =
        std::max<std::uint64_t>(std::max<std::uint64_t>(kStepBytes, under()->granule()) / in_block_, 1);
    const std::size_t step = static_cast<std::size_t>(std::min(blocks_at_once * in_block_, size));
    std::vector<std::byte> buffer(step);
    for (std::uint64_t done = 0; done < size; done += step) {
      const auto in = std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(step, size - done)));
      source_.read(begin + done, in);
      overflows.add(make(first + done / in_block_, in,
                         out.subspan(done / in_block_ * out_block_, in.size() / in_block_ * out_block_)));
    }
    return overflows;
  }

  Tensor source_;
  std::size_t in_block_, out_block_;
};

std::size_t decoded_block_bytes(DType type, DType out) noexcept {
  return std::size_t{info(type).block_elements} * info(out).block_bytes;
}

class DecodedStorage final : public BlockStorage {
 public:
  DecodedStorage(Tensor blocks, DType out)
      : BlockStorage(blocks, decoded_block_bytes(blocks.dtype(), out)), out_(out) {}

  Derivation derivation() const override { return {decoding_to(out_), {&source()}}; }

 private:
  Overflows make(std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out) const override {
    return kernels::decode_blocks(source().dtype(), in, out_, out);
  }

  DType out_;
};

// Decoded, and multiplied by the factor of the index of the first dimension that each element has. Rows are whole
// blocks, so every element of a block has the same.
class ScaledStorage final : public BlockStorage {
 public:
  ScaledStorage(Tensor blocks, DType out, Tensor scale)
      : BlockStorage(blocks, decoded_block_bytes(blocks.dtype(), out)),
        out_(out),
        scale_(scale.to(DType::f32)),
        blocks_per_factor_(blocks.numel() / scale.numel() / info(blocks.dtype()).block_elements) {}

  Derivation derivation() const override { return {decoding_to(out_) + " with scales", {&source(), &scale_}}; }
  void prepare(const Progress& progress) const override {
    BlockStorage::prepare(progress);
    factors();
  }
  void check_unchanged() const override {
    BlockStorage::check_unchanged();
    if (scale_.storage()) scale_.storage()->check_unchanged();
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    factors();  // before anything that may be abandoned half-way
    BlockStorage::read(offset, out);
  }

 private:
  const std::vector<float>& factors() const {
    read_once_.run([this] {
      std::vector<float> factors(scale_.numel());
      scale_.read(0, std::as_writable_bytes(std::span(factors)));
      factors_ = std::move(factors);
    });
    return factors_;
  }

  Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const override {
    Overflows overflows;
    const std::size_t elements = info(source().dtype()).block_elements, in_block = info(source().dtype()).block_bytes;
    const std::size_t out_block = decoded_block_bytes(source().dtype(), out_);
    std::array<float, kLargestBlock / sizeof(float)> values;
    const auto block = std::span(values).first(elements);
    for (; !in.empty(); ++first, in = in.subspan(in_block), out = out.subspan(out_block)) {
      kernels::decode_blocks(source().dtype(), in.first(in_block), block);
      const float factor = factors_[static_cast<std::size_t>(first / blocks_per_factor_)];
      for (float& value : block) value *= factor;
      overflows.add(kernels::cast(DType::f32, out_, std::as_bytes(block), out.first(out_block)));
    }
    return overflows;
  }

  DType out_;
  Tensor scale_;
  std::uint64_t blocks_per_factor_;
  mutable Once read_once_;
  mutable std::vector<float> factors_;
};

class SwappedStorage final : public BlockStorage {
 public:
  explicit SwappedStorage(Tensor source) : BlockStorage(source, info(source.dtype()).block_bytes) {}

  Derivation derivation() const override { return {"swap bytes of blocks", {&source()}}; }

 private:
  Overflows make(std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out) const override {
    std::memcpy(out.data(), in.data(), in.size());
    kernels::swap_block_scales(source().dtype(), out);
    return {};
  }
};

bool is_decoded_to(DType out) noexcept { return out == DType::f32 || out == DType::f16 || out == DType::bf16; }

void check_scale(const Tensor& blocks, const Tensor& scale) {
  const std::uint64_t count = scale.numel();
  const bool one_each = blocks.rank() > 1 && count == blocks.shape()[0];
  if (kernels::can_cast(scale.dtype(), DType::f32) && (count == 1 || one_each)) return;
  throw Error(Errc::mismatch, fmt::format("a scale of {} {} is none for blocks of shape {}", name(scale.dtype()),
                                          to_string(scale.shape()), to_string(blocks.shape())));
}

}  // namespace

StoragePtr decoded_storage(Tensor blocks, DType out, std::optional<Tensor> scale) {
  if (!kernels::can_decode(blocks.dtype()) || !is_decoded_to(out)) {
    throw Error(Errc::unsupported, fmt::format("{} cannot be decoded to {}", name(blocks.dtype()), name(out)))
        .hint("ask for F32, F16 or BF16");
  }
  if (!scale || blocks.numel() == 0) return std::make_shared<DecodedStorage>(std::move(blocks), out);
  check_scale(blocks, *scale);
  return std::make_shared<ScaledStorage>(std::move(blocks), out, *std::move(scale));
}

Tensor decoded(const Tensor& tensor, DType out, std::optional<Tensor> scale) {
  if (info(tensor.dtype()).kind != DTypeKind::ggml && !scale) return tensor.to(out);
  return {out, tensor.shape(), decoded_storage(tensor, out, std::move(scale))};
}

StoragePtr swapped_storage(Tensor source) { return std::make_shared<SwappedStorage>(std::move(source)); }

}  // namespace ballast
