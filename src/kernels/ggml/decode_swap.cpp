#include <algorithm>
#include <cstdint>

#include "kernels/ggml/decode.hpp"

namespace ballast::kernels {
namespace {

// `count` numbers of `width` bytes, one after the other.
struct Field {
  std::uint16_t offset, width, count;
};

struct Fields {
  DType type;
  Field field;
};

// The fields that ggml's structures declare as wider than a byte. Fields that are declared as bytes keep their order,
// even if ggml reads several of them at once.
constexpr Fields kWideFields[] = {
    {DType::q4_0, {0, 2, 1}},    {DType::q4_1, {0, 2, 2}},   {DType::q5_0, {0, 2, 1}},    {DType::q5_1, {0, 2, 2}},
    {DType::q8_0, {0, 2, 1}},    {DType::q8_1, {0, 2, 2}},   {DType::q2_k, {80, 2, 2}},   {DType::q3_k, {108, 2, 1}},
    {DType::q4_k, {0, 2, 2}},    {DType::q5_k, {0, 2, 2}},   {DType::q6_k, {208, 2, 1}},  {DType::q8_k, {0, 4, 1}},
    {DType::q8_k, {260, 2, 16}}, {DType::iq1_s, {0, 2, 1}},  {DType::iq1_s, {34, 2, 8}},  {DType::iq2_xxs, {0, 2, 33}},
    {DType::iq2_xs, {0, 2, 33}}, {DType::iq2_s, {0, 2, 1}},  {DType::iq3_xxs, {0, 2, 1}}, {DType::iq3_s, {0, 2, 1}},
    {DType::iq4_nl, {0, 2, 1}},  {DType::iq4_xs, {0, 2, 2}}, {DType::tq1_0, {52, 2, 1}},  {DType::tq2_0, {64, 2, 1}},
    {DType::q1_0, {0, 2, 1}},    {DType::q2_0, {0, 2, 1}},
};

void swap_field(const Field& field, std::byte* block) {
  std::byte* number = block + field.offset;
  for (unsigned i = 0; i < field.count; ++i, number += field.width) std::reverse(number, number + field.width);
}

void swap_in_each(const Field& field, std::size_t block_bytes, std::span<std::byte> blocks) {
  for (; blocks.size() >= block_bytes; blocks = blocks.subspan(block_bytes)) swap_field(field, blocks.data());
}

}  // namespace

void swap_block_scales(DType type, std::span<std::byte> blocks) {
  const DTypeInfo& block = info(type);
  if (block.kind != DTypeKind::ggml) return swap_in_each({0, block.block_bytes, 1}, block.block_bytes, blocks);
  for (const auto& [of, field] : kWideFields) {
    if (of == type) swap_in_each(field, block.block_bytes, blocks);
  }
}

}  // namespace ballast::kernels
