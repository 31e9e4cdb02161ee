#include "tensor/decoded_storage.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/once.hpp"
#include "kernels/cast.hpp"
#include "kernels/ggml/decode.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

std::size_t decoded_block_bytes(DType type, DType out) noexcept {
  return std::size_t{info(type).block_elements} * info(out).block_bytes;
}

std::string decoding(DType type, DType out) { return fmt::format("decode {} to {}", name(type), name(out)); }

class DecodedStorage final : public BlockwiseStorage {
 public:
  DecodedStorage(Tensor blocks, DType out)
      : BlockwiseStorage({blocks}, decoding(blocks.dtype(), out), info(blocks.dtype()).block_bytes,
                         decoded_block_bytes(blocks.dtype(), out), Making::from_map),
        out_(out) {}

 private:
  Overflows make(std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out) const override {
    return kernels::decode_blocks(source().dtype(), in, out_, out);
  }

  DType out_;
};

// Decodes, and multiplies each element by the factor of its index in the first dimension. Rows are whole blocks, so all
// elements of a block have the same factor.
class ScaledStorage final : public BlockwiseStorage {
 public:
  ScaledStorage(Tensor blocks, DType out, Tensor scale)
      : BlockwiseStorage({blocks, scale.to(DType::f32)}, decoding(blocks.dtype(), out) + " with scales",
                         info(blocks.dtype()).block_bytes, decoded_block_bytes(blocks.dtype(), out), Making::from_map),
        out_(out),
        blocks_per_factor_(blocks.numel() / scale.numel() / info(blocks.dtype()).block_elements) {}

  void prepare(const Progress& progress) const override {
    BlockwiseStorage::prepare(progress);
    read_factors();
  }
  // Reads the factors first, before anything that may be abandoned half-way.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_factors();
    BlockwiseStorage::read(offset, out);
  }
  void read_many(std::span<const Range> ranges) const override {
    read_factors();
    BlockwiseStorage::read_many(ranges);
  }

 private:
  void read_factors() const {
    read_once_.run([this] {
      const Tensor& scale = from()[1];
      std::vector<float> factors(scale.numel());
      scale.read(0, std::as_writable_bytes(std::span(factors)));
      factors_ = std::move(factors);
    });
  }

  Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const override {
    Overflows overflows;
    const std::size_t elements = info(source().dtype()).block_elements, in_block = info(source().dtype()).block_bytes;
    const std::size_t out_block = decoded_block_bytes(source().dtype(), out_);
    std::array<float, kSmallBlock / sizeof(float)> values;
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
  std::uint64_t blocks_per_factor_;
  mutable Once read_once_;
  mutable std::vector<float> factors_;
};

class SwappedStorage final : public BlockwiseStorage {
 public:
  explicit SwappedStorage(Tensor source)
      : BlockwiseStorage({source}, "swap bytes of blocks", info(source.dtype()).block_bytes,
                         info(source.dtype()).block_bytes, Making::in_place) {}

 private:
  Overflows make(std::uint64_t, std::span<const std::byte>, std::span<std::byte> out) const override {
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
