#include "llamacpp/names/mxfp4.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "layout/names_values.hpp"
#include "layout/reshape.hpp"
#include "tensor/concat_storage.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast::names {
namespace {

// Sixteen bytes with the codes of 32 elements: at Hugging Face neighbours share a byte, in ggml element i and i + 16.
void repack_codes(std::span<std::byte> bytes, bool to_gguf) {
  for (std::size_t first = 0; first < bytes.size(); first += 16) {
    std::uint8_t codes[32];
    auto* block = reinterpret_cast<std::uint8_t*>(bytes.data() + first);
    for (std::size_t i = 0; i < 16; ++i) {
      codes[to_gguf ? 2 * i : i] = block[i] & 15;
      codes[to_gguf ? 2 * i + 1 : i + 16] = block[i] >> 4;
    }
    for (std::size_t i = 0; i < 16; ++i) {
      const int low = codes[to_gguf ? i : 2 * i], high = codes[to_gguf ? i + 16 : 2 * i + 1];
      block[i] = static_cast<std::uint8_t>(low | high << 4);
    }
  }
}

Tensor repacked(const Tensor& codes, bool to_gguf) {
  const auto change = [to_gguf](std::span<std::byte> bytes) { repack_codes(bytes, to_gguf); };
  return Tensor(DType::u8, codes.shape(), transformed_storage(codes, 16, "repack MXFP4", change));
}

}  // namespace

Tensor mxfp4_to_gguf(const Tensor& codes, const Tensor& scales) {
  const bool is_mxfp4 = codes.dtype() == DType::u8 && scales.dtype() == DType::u8 && codes.rank() == 4 &&
                        codes.shape()[3] == 16 && scales.rank() == 3 &&
                        std::equal(scales.shape().begin(), scales.shape().end(), codes.shape().begin());
  if (!is_mxfp4)
    throw Error(Errc::mismatch, fmt::format("codes {} and scales {} are no MXFP4", to_string(codes.shape()),
                                            to_string(scales.shape())));
  Dims thick = dims_of(scales), whole = thick;
  thick.push_back(1);
  whole[2] = ballast::fits(checked_mul(whole[2], std::uint64_t{32}), "the size of a row");
  const Tensor bytes = concatenated({shaped(scales, thick), repacked(codes, true)}, 3);
  return Tensor(DType::mxfp4, Shape(whole), gathered_storage(bytes));
}

std::vector<Tensor> mxfp4_to_huggingface(const Tensor& blocks) {
  Dims dims = dims_of(blocks);
  if (blocks.dtype() != DType::mxfp4 || dims.size() != 3)
    throw Error(Errc::mismatch, fmt::format("{} {} are no MXFP4", name(blocks.dtype()), to_string(blocks.shape())));
  dims[2] /= 32;
  dims.push_back(17);
  const Tensor bytes(DType::u8, Shape(dims), gathered_storage(blocks));
  const Tensor codes = part_of(bytes, 3, 1, 16), scales = part_of(bytes, 3, 0, 1);
  return {repacked(in_order(codes, codes.shape()), false), in_order(scales, Shape(Dims(dims.begin(), dims.end() - 1)))};
}

std::vector<Tensor> mxfp4_alternating(const Tensor& codes, const Tensor& scales) {
  const std::vector<Tensor> both = alternating(codes, 1), both_scales = alternating(scales, 1);
  return {mxfp4_to_gguf(both[0], both_scales[0]), mxfp4_to_gguf(both[1], both_scales[1])};
}

std::vector<Tensor> mxfp4_alternated(const Tensor& even, const Tensor& odd) {
  const std::vector<Tensor> evens = mxfp4_to_huggingface(even), odds = mxfp4_to_huggingface(odd);
  return {alternated(evens[0], odds[0], 1), alternated(evens[1], odds[1], 1)};
}

}  // namespace ballast::names
