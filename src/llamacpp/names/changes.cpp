#include "llamacpp/names/changes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "layout/dimension_range.hpp"
#include "layout/names_values.hpp"
#include "tensor/concat_storage.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast::names {
namespace {

using Tensors = std::vector<Tensor>;
using Dims = std::vector<std::uint64_t>;

Dims dims_of(const Tensor& tensor) { return {tensor.shape().begin(), tensor.shape().end()}; }

// The same values in another shape, whatever the strides.
Tensor shaped(const Tensor& tensor, Dims dims) {
  const Shape shape(dims);
  return tensor.is_contiguous() ? tensor.reshape(shape) : in_order(tensor, shape);
}

// The dimension `axis` as several dimensions.
Tensor unfolded(const Tensor& tensor, std::size_t axis, const Dims& into) {
  Dims dims = dims_of(tensor);
  std::uint64_t product = 1;
  bool fits = axis < dims.size();
  for (const std::uint64_t size : into) fits = fits && !__builtin_mul_overflow(product, size, &product);
  if (!fits || product != dims[axis] || product == 0) {
    throw Error(Errc::mismatch,
                fmt::format("{} cannot be cut into {}", to_string(tensor.shape()), to_string(Shape(into))))
        .hint("do the numbers in config.json belong to this model?");
  }
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), into.begin(), into.end());
  return shaped(tensor, dims);
}

// Dimensions `axis` to `axis + count - 1` as one.
Tensor folded(const Tensor& tensor, std::size_t axis, std::size_t count) {
  Dims dims = dims_of(tensor);
  const auto first = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  const std::uint64_t product = std::accumulate(first, last, std::uint64_t{1}, std::multiplies<>());
  dims.erase(first + 1, last);
  dims[axis] = product;
  return shaped(tensor, dims);
}

Tensor swapped(const Tensor& tensor, std::size_t a, std::size_t b) {
  std::vector<std::size_t> order(tensor.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (std::max(a, b) >= order.size())
    throw Error(Errc::mismatch, fmt::format("{} has too few dimensions", to_string(tensor.shape())));
  std::swap(order[a], order[b]);
  return tensor.permute(order);
}

std::size_t last_but_one(const Tensor& tensor) {
  if (tensor.rank() >= 2) return tensor.rank() - 2;
  throw Error(Errc::mismatch, fmt::format("{} has no rows", to_string(tensor.shape())));
}

Tensor transposed_each(const Tensor& tensor) {
  const std::size_t rows = last_but_one(tensor);
  const Tensor view = swapped(tensor, rows, rows + 1);
  return in_order(view, view.shape());
}

// Reorders [a, b, rest] along one dimension to [b, a, rest].
Tensor turned(const Tensor& tensor, std::size_t axis, const Dims& into) {
  const Tensor view = swapped(unfolded(tensor, axis, into), axis, axis + 1);
  return in_order(view, tensor.shape());
}

Tensor part_of(const Tensor& tensor, std::size_t axis, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t size = axis < tensor.rank() ? tensor.shape()[axis] : 0;
  if (count > size || first > size - count)
    throw Error(Errc::mismatch, fmt::format("{} is too small", to_string(tensor.shape())));
  return dimension_range(tensor, axis, first, count);
}

std::uint64_t divided(std::uint64_t a, std::uint64_t b, std::string_view what) {
  if (b != 0 && a % b == 0) return a / b;
  throw Error(Errc::mismatch, fmt::format("{} {} are no multiple of {}", a, what, b));
}

// How queries, keys and values of attention with grouped queries lie in one matrix.
struct Groups {
  std::uint64_t count, queries, size;  // groups, queries of each, rows of a head
};

Groups groups_of(std::uint64_t rows, const Numbers& numbers, std::uint64_t block) {
  const std::uint64_t heads = numbers.heads(block), keys = numbers.heads_of_keys(block);
  const std::uint64_t queries = divided(heads, keys, "heads");
  return {keys, queries, divided(rows, keys * (queries + 2), "rows")};
}

// Rows of groups (queries, a key, a value) as all queries, all keys and all values.
Tensors ungrouped(const Tensor& tensor, const Groups& groups) {
  const Tensor view = unfolded(tensor, 0, {groups.count, groups.queries + 2, groups.size});
  return {folded(part_of(view, 1, 0, groups.queries), 0, 3), folded(part_of(view, 1, groups.queries, 1), 0, 3),
          folded(part_of(view, 1, groups.queries + 1, 1), 0, 3)};
}

Tensor grouped(const Tensor& q, const Tensor& k, const Tensor& v, const Groups& groups) {
  const auto in_groups = [&](const Tensor& tensor, std::uint64_t heads) {
    return unfolded(tensor, 0, {groups.count, heads, groups.size});
  };
  return folded(concatenated({in_groups(q, groups.queries), in_groups(k, 1), in_groups(v, 1)}, 1), 0, 3);
}

std::uint64_t rows_of(const Tensor& tensor) { return tensor.rank() == 0 ? 0 : tensor.shape()[0]; }

Tensor groups_to_gguf(const Tensor& tensor, const Groups& groups) { return concatenated(ungrouped(tensor, groups), 0); }

Tensor groups_to_huggingface(const Tensor& tensor, const Groups& groups) {
  const std::uint64_t keys = groups.count * groups.size, queries = keys * groups.queries;
  return grouped(part_of(tensor, 0, 0, queries), part_of(tensor, 0, queries, keys),
                 part_of(tensor, 0, queries + keys, keys), groups);
}

Tensors split_groups(const Tensor& tensor, const Numbers& numbers, std::uint64_t block) {
  Tensors parts = ungrouped(tensor, groups_of(rows_of(tensor), numbers, block));
  parts[0] = interleave_halves(parts[0], numbers.heads(block));
  parts[1] = interleave_halves(parts[1], numbers.heads_of_keys(block));
  return parts;
}

Tensor join_groups(const Tensors& parts, const Numbers& numbers, std::uint64_t block) {
  const std::uint64_t rows = rows_of(parts[0]) + rows_of(parts[1]) + rows_of(parts[2]);
  const Groups groups = groups_of(rows, numbers, block);
  return grouped(separate_halves(parts[0], numbers.heads(block)),
                 separate_halves(parts[1], numbers.heads_of_keys(block)), parts[2], groups);
}

// The rows of a head of a latent attention: those of its key without the part that is rotated, and those of its value.
struct Latent {
  std::uint64_t heads, key, value;
};

Latent latent_of(const Numbers& numbers, std::uint64_t block) {
  const std::uint64_t key = numbers.get("attention.key_length_mla"), rotated = numbers.get("rope.dimension_count");
  if (rotated >= key) throw Error(Errc::mismatch, fmt::format("{} of {} rows are rotated", rotated, key));
  return {numbers.heads(block), key - rotated, numbers.get("attention.value_length_mla")};
}

Tensors split_latent(const Tensor& tensor, const Latent& latent) {
  const Tensor view = unfolded(tensor, 0, {latent.heads, latent.key + latent.value});
  const Tensor keys = part_of(view, 1, 0, latent.key), values = part_of(view, 1, latent.key, latent.value);
  return {transposed_each(keys), in_order(values, values.shape())};
}

Tensor join_latent(const Tensors& parts) {
  return folded(concatenated({transposed_each(parts[0]), parts[1]}, 1), 0, 2);
}

// The heads of a linear attention: each head of a key has several of values.
struct LinearHeads {
  std::uint64_t keys, values, key_size, value_size;
};

LinearHeads linear_heads(const Numbers& numbers) {
  const std::uint64_t keys = numbers.get("ssm.group_count"), values = numbers.get("ssm.time_step_rank");
  return {keys, divided(values, keys, "heads of values"), numbers.get("ssm.state_size"),
          divided(numbers.get("ssm.inner_size"), values, "rows of values")};
}

Tensors split_qkvz(const Tensor& tensor, const LinearHeads& heads) {
  const std::uint64_t key = heads.key_size, value = heads.values * heads.value_size;
  const Tensor view = unfolded(tensor, 0, {heads.keys, 2 * key + 2 * value});
  const auto rows = [&](std::uint64_t first, std::uint64_t count) {
    return folded(part_of(view, 1, first, count), 0, 2);
  };
  return {concatenated({rows(0, key), rows(key, key), rows(2 * key, value)}, 0), rows(2 * key + value, value)};
}

Tensor join_qkvz(const Tensors& parts, const LinearHeads& heads) {
  const std::uint64_t key = heads.key_size, value = heads.values * heads.value_size;
  const auto rows = [&](const Tensor& tensor, std::uint64_t first, std::uint64_t size) {
    return unfolded(part_of(tensor, 0, first, heads.keys * size), 0, {heads.keys, size});
  };
  const std::uint64_t keys = heads.keys * key;
  return folded(concatenated({rows(parts[0], 0, key), rows(parts[0], keys, key), rows(parts[0], 2 * keys, value),
                              rows(parts[1], 0, value)},
                             1),
                0, 2);
}

// Heads of values in the order (value, key head), or back. `size` is the number of rows of a head.
Tensor tiled(const Tensor& tensor, std::size_t axis, const LinearHeads& heads, std::uint64_t size, bool to_gguf) {
  if (heads.values == 1) return tensor;
  if (to_gguf) return turned(tensor, axis, {heads.keys, heads.values, size});
  return turned(tensor, axis, {heads.values, heads.keys, size});
}

Tensor tiled_rows(const Tensor& tensor, const LinearHeads& heads, bool to_gguf) {
  return tiled(tensor, 0, heads, divided(rows_of(tensor), heads.keys * heads.values, "rows"), to_gguf);
}

Tensor tiled_behind_keys(const Tensor& tensor, const LinearHeads& heads, bool to_gguf) {
  const std::uint64_t before = 2 * heads.keys * heads.key_size, rows = rows_of(tensor);
  if (rows <= before) throw Error(Errc::mismatch, fmt::format("{} is too small", to_string(tensor.shape())));
  return concatenated(
      {part_of(tensor, 0, 0, before), tiled_rows(part_of(tensor, 0, before, rows - before), heads, to_gguf)}, 0);
}

Tensor squeezed(const Tensor& tensor) {
  Dims dims = dims_of(tensor);
  if (dims.size() != 3 || dims[1] != 1) return tensor;
  dims.erase(dims.begin() + 1);
  return shaped(tensor, dims);
}

Tensor unsqueezed(const Tensor& tensor) {
  Dims dims = dims_of(tensor);
  if (dims.size() == 2) dims.insert(dims.begin() + 1, 1);
  return shaped(tensor, dims);
}

// Every value by a function, in F32.
Tensor mapped(const Tensor& tensor, std::string step, float (*function)(float)) {
  const auto change = [function](std::span<std::byte> bytes) {
    const std::span values(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
    for (float& value : values) value = function(value);
  };
  return Tensor(DType::f32, tensor.shape(),
                transformed_storage(tensor.to(DType::f32), sizeof(float), std::move(step), change));
}

// The exponential as torch computes it, to the bit: by SLEEF's polynomial, whose last bit is not always the nearest.
float exponential(float x) {
  if (std::isnan(x)) return x;
  if (x > 100) return std::numeric_limits<float>::infinity();
  if (x < -104) return 0;
  const float power = std::nearbyint(x * 1.44269504F);
  const float rest = std::fma(power, -1.428606765330187045e-06F, std::fma(power, -0.693145751953125F, x));
  float sum = 0.000198527617612853646278381F;
  for (const float term : {0.00139304355252534151077271F, 0.00833336077630519866943359F, 0.0416664853692054748535156F,
                           0.166666671633720397949219F, 0.5F})
    sum = std::fma(sum, rest, term);
  return std::ldexp(1 + std::fma(rest * rest, sum, rest), static_cast<int>(power));
}

Tensor negated_exponential(const Tensor& tensor) {
  return mapped(tensor, "-exp", [](float x) { return -exponential(x); });
}
// The logarithm, or a neighbour of it whose exponential is the very value, so that it comes out again.
float exact_logarithm(float value) {
  constexpr int kNeighbours = 4;
  const float near = std::log(value);
  float above = near, below = near;
  for (int i = 0; i <= kNeighbours && std::isfinite(near); ++i) {
    if (exponential(above) == value) return above;
    if (exponential(below) == value) return below;
    above = std::nextafter(above, INFINITY);
    below = std::nextafter(below, -INFINITY);
  }
  return near;
}
Tensor logarithm_of_negated(const Tensor& tensor) {
  return mapped(tensor, "log of the negated", [](float x) { return exact_logarithm(-x); });
}

Tensors halves(const Tensor& tensor) {
  const std::size_t axis = last_but_one(tensor);
  const std::uint64_t half = divided(tensor.shape()[axis], 2, "rows");
  return {part_of(tensor, axis, 0, half), part_of(tensor, axis, half, half)};
}

// The even and the odd positions of a dimension.
Tensors alternating(const Tensor& tensor, std::size_t axis) {
  divided(axis < tensor.rank() ? tensor.shape()[axis] : 1, 2, "rows");
  Slice slice(axis, SliceIndex::range({}, {}));
  const auto every_second = [&](std::int64_t first) {
    Slice at = slice;
    at.push_back(SliceIndex::range(first, {}, 2));
    const Tensor view = tensor.slice(at);
    return in_order(view, view.shape());
  };
  return {every_second(0), every_second(1)};
}

Tensor alternated(const Tensor& even, const Tensor& odd, std::size_t axis) {
  const auto thick = [&](const Tensor& tensor) {
    Dims dims = dims_of(tensor);
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
    return shaped(tensor, dims);
  };
  return folded(concatenated({thick(even), thick(odd)}, axis + 1), axis, 2);
}

Tensor stacked(const Tensors& parts) {
  Tensors thick;
  for (const Tensor& part : parts) {
    Dims dims = dims_of(part);
    dims.insert(dims.begin(), 1);
    thick.push_back(shaped(part, dims));
  }
  return concatenated(std::move(thick), 0);
}

Tensors unstacked(const Tensor& tensor) {
  Tensors parts;
  for (std::uint64_t i = 0; i < rows_of(tensor); ++i)
    parts.push_back(tensor.slice({SliceIndex::at(static_cast<std::int64_t>(i))}));
  return parts;
}

Tensor stacked_rows(const Tensor& tensor, const Numbers& numbers) {
  const std::uint64_t experts = numbers.get("expert_count");
  return unfolded(tensor, 0, {experts, divided(rows_of(tensor), experts, "rows")});
}

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

// [experts, rows, blocks, 16] and [experts, rows, blocks] as a stack of matrices of ggml's blocks.
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

Tensors mxfp4_to_huggingface(const Tensor& blocks) {
  Dims dims = dims_of(blocks);
  if (blocks.dtype() != DType::mxfp4 || dims.size() != 3)
    throw Error(Errc::mismatch, fmt::format("{} {} are no MXFP4", name(blocks.dtype()), to_string(blocks.shape())));
  dims[2] /= 32;
  dims.push_back(17);
  const Tensor bytes(DType::u8, Shape(dims), gathered_storage(blocks));
  const Tensor codes = part_of(bytes, 3, 1, 16), scales = part_of(bytes, 3, 0, 1);
  return {repacked(in_order(codes, codes.shape()), false), in_order(scales, Shape(Dims(dims.begin(), dims.end() - 1)))};
}

Tensors mxfp4_alternating(const Tensor& codes, const Tensor& scales) {
  const Tensors both = alternating(codes, 1), both_scales = alternating(scales, 1);
  return {mxfp4_to_gguf(both[0], both_scales[0]), mxfp4_to_gguf(both[1], both_scales[1])};
}

}  // namespace

Tensors to_gguf(Change change, const Tensors& tensors, const Numbers& numbers, std::uint64_t block) {
  const Tensor& first = tensors.at(0);
  switch (change) {
    case Change::none: return {first};
    case Change::permute_queries: return {interleave_halves(first, numbers.heads(block))};
    case Change::permute_keys: return {interleave_halves(first, numbers.heads_of_keys(block))};
    case Change::add_one: return {add_one(first)};
    case Change::transpose: return {first.transpose()};
    case Change::transpose_each: return {transposed_each(first)};
    case Change::squeeze: return {squeezed(first)};
    case Change::negated_exponential: return {negated_exponential(first)};
    case Change::qkv_of_heads: {
      const std::uint64_t heads = numbers.heads(block);
      return {turned(first, 0, {heads, 3, divided(rows_of(first), 3 * heads, "rows")})};
    }
    case Change::qkv_of_groups: return {groups_to_gguf(first, groups_of(rows_of(first), numbers, block))};
    case Change::split_groups: return split_groups(first, numbers, block);
    case Change::split_latent: return split_latent(first, latent_of(numbers, block));
    case Change::split_qkvz: return split_qkvz(first, linear_heads(numbers));
    case Change::split_halves: return halves(first);
    case Change::split_alternating: return alternating(first, first.rank() - 1);
    case Change::split_transposed: return alternating(transposed_each(first), first.rank() - 2);
    case Change::mxfp4: return {mxfp4_to_gguf(first, tensors.at(1))};
    case Change::mxfp4_alternating: return mxfp4_alternating(first, tensors.at(1));
    case Change::stack: return {stacked(tensors)};
    case Change::stack_rows: return {stacked_rows(first, numbers)};
    case Change::stack_transposed: return {transposed_each(stacked_rows(first, numbers))};
    case Change::tile_values: return {tiled_rows(first, linear_heads(numbers), true)};
    case Change::tile_values_of_qkv: return {tiled_behind_keys(first, linear_heads(numbers), true)};
    case Change::tile_values_of_conv: return {tiled_behind_keys(squeezed(first), linear_heads(numbers), true)};
    case Change::tile_value_columns: {
      const LinearHeads heads = linear_heads(numbers);
      return {tiled(first, 1, heads, heads.value_size, true)};
    }
    case Change::tile_value_logs: return {negated_exponential(tiled_rows(first, linear_heads(numbers), true))};
  }
  return {first};
}

Tensors to_huggingface(Change change, const Tensors& tensors, const Numbers& numbers, std::uint64_t block) {
  const Tensor& first = tensors.at(0);
  switch (change) {
    case Change::none: return {first};
    case Change::permute_queries: return {separate_halves(first, numbers.heads(block))};
    case Change::permute_keys: return {separate_halves(first, numbers.heads_of_keys(block))};
    case Change::add_one: return {subtract_one(first)};
    case Change::transpose: return {first.transpose()};
    case Change::transpose_each: return {transposed_each(first)};
    case Change::squeeze: return {unsqueezed(first)};
    case Change::negated_exponential: return {logarithm_of_negated(first)};
    case Change::qkv_of_heads: {
      const std::uint64_t heads = numbers.heads(block);
      return {turned(first, 0, {3, heads, divided(rows_of(first), 3 * heads, "rows")})};
    }
    case Change::qkv_of_groups: return {groups_to_huggingface(first, groups_of(rows_of(first), numbers, block))};
    case Change::split_groups: return {join_groups(tensors, numbers, block)};
    case Change::split_latent: return {join_latent(tensors)};
    case Change::split_qkvz: return {join_qkvz(tensors, linear_heads(numbers))};
    case Change::split_halves: return {concatenated(tensors, last_but_one(first))};
    case Change::split_alternating: return {alternated(first, tensors.at(1), first.rank() - 1)};
    case Change::split_transposed: return {transposed_each(alternated(first, tensors.at(1), first.rank() - 2))};
    case Change::mxfp4: return mxfp4_to_huggingface(first);
    case Change::mxfp4_alternating: {
      const Tensors even = mxfp4_to_huggingface(first), odd = mxfp4_to_huggingface(tensors.at(1));
      return {alternated(even[0], odd[0], 1), alternated(even[1], odd[1], 1)};
    }
    case Change::stack: return unstacked(first);
    case Change::stack_rows: return {folded(first, 0, 2)};
    case Change::stack_transposed: return {folded(transposed_each(first), 0, 2)};
    case Change::tile_values: return {tiled_rows(first, linear_heads(numbers), false)};
    case Change::tile_values_of_qkv: return {tiled_behind_keys(first, linear_heads(numbers), false)};
    case Change::tile_values_of_conv: return {unsqueezed(tiled_behind_keys(first, linear_heads(numbers), false))};
    case Change::tile_value_columns: {
      const LinearHeads heads = linear_heads(numbers);
      return {tiled(first, 1, heads, heads.value_size, false)};
    }
    case Change::tile_value_logs: return {tiled_rows(logarithm_of_negated(first), linear_heads(numbers), false)};
  }
  return {first};
}

}  // namespace ballast::names
