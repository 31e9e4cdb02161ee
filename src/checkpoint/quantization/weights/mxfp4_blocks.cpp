// gpt-oss: experts in MXFP4. Transformers holds them with the last two dimensions exchanged.
//
//   part      holds
//   _blocks   [experts, out, groups, 16]: 32 values in 16 bytes, the low half of a byte first
//   _scales   [experts, out, groups]: bytes x, for 2^(x - 127)
#include <fmt/format.h>

#include "checkpoint/quantization/weights/readers.hpp"
#include "core/checked.hpp"
#include "tensor/packed/transposed_storage.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kGroup = 32, kGroupBytes = 16;

class Mxfp4Decoder final : public StripDecoder {
 public:
  Mxfp4Decoder(const PackedRows& rows, const Tensor& bytes, const ColumnStrip& strip, std::uint64_t matrix_rows)
      : rows_(rows), bytes_(bytes), strip_(strip), first_row_(strip.matrix * matrix_rows) {}

  Overflows decode(std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out) override {
    const auto range = [](std::uint64_t from, std::uint64_t size) {
      return SliceIndex::range(static_cast<std::int64_t>(from), static_cast<std::int64_t>(from + size));
    };
    const std::uint64_t row = first_row_ + first_row;
    const Tensor part = bytes_.slice({range(row, rows), range(strip_.first_column / 2, strip_.columns / 2)});
    read_.resize(static_cast<std::size_t>(part.nbytes()));
    part.read(0, read_);
    return unpack_part(rows_, {row, rows, strip_.first_column, strip_.columns}, read_, out);
  }

 private:
  const PackedRows& rows_;
  const Tensor& bytes_;
  ColumnStrip strip_;
  std::uint64_t first_row_;
  std::vector<std::byte> read_;
};

class Mxfp4Strips final : public StripSource {
 public:
  Mxfp4Strips(PackedRows packed, Tensor bytes, std::uint64_t experts)
      : packed_(std::move(packed)), bytes_(std::move(bytes)) {
    from = {packed_.packed, packed_.scale.values};
    scheme = packed_.scheme;
    matrices = experts;
    rows = bytes_.shape()[0] / experts;
    columns = packed_.columns;
    column_unit = kGroup;
    dtype = packed_.dtype;
  }

  std::unique_ptr<StripDecoder> decoder(const ColumnStrip& strip) const override {
    return std::make_unique<Mxfp4Decoder>(packed_, bytes_, strip, rows);
  }

 private:
  PackedRows packed_;
  Tensor bytes_;  // [rows of all experts, bytes of a row]
};

}  // namespace

Tensor read_mxfp4_blocks(PackedModule& module) {
  const Tensor blocks = module.need("_blocks"), scales = module.need("_scales");
  const Shape& shape = blocks.shape();
  const std::size_t rank = shape.rank();
  const bool has_experts = rank == 4;
  if ((rank != 3 && rank != 4) || shape[rank - 1] != kGroupBytes)
    module.complain(fmt::format("has blocks of shape {}", to_string(shape)));
  module.check_shape("_scales", scales, Shape(std::span(shape.begin(), rank - 1)));
  if (scales.dtype() != DType::u8) module.complain(fmt::format("has scales of {}", name(scales.dtype())));
  const std::uint64_t experts = has_experts ? shape[0] : 1, rows = shape[rank - 3], groups = shape[rank - 2];
  const auto columns = checked_mul(groups, kGroup);
  if (!columns) module.complain(fmt::format("of shape {} does not fit 64 bits", to_string(shape)));
  const Shape result = has_experts ? Shape{experts, *columns, rows} : Shape{*columns, rows};
  if (blocks.numel() == 0) return Tensor(DType::bf16, result, nullptr);

  PackedRows packed;
  packed.packed = byte_view(module, blocks);
  packed.row_bytes = groups * kGroupBytes;
  packed.columns = *columns;
  packed.scheme = module.scheme();
  packed.weight = module.weight();
  packed.dtype = DType::bf16;
  // A scale of 255 stands for 2^128, which is no float: so the values are doubled, and the scales halved.
  packed.codes = doubled_fp4_codes();
  packed.scale = {
      .values = scales.reshape({scales.numel()}), .in_line = groups, .columns_each = kGroup, .exponent_bias = 128};
  const Tensor bytes = packed.packed.reshape({experts * rows, packed.row_bytes});
  return transposed_strips(std::make_unique<Mxfp4Strips>(std::move(packed), bytes, experts), has_experts);
}

}  // namespace ballast
