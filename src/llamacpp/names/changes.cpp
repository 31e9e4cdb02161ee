#include "llamacpp/names/changes.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "layout/names_values.hpp"
#include "layout/reshape.hpp"
#include "llamacpp/names/mxfp4.hpp"
#include "tensor/concat_storage.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast::names {
namespace {

using Tensors = std::vector<Tensor>;

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

Tensor stacked_rows(const Tensor& tensor, const Numbers& numbers) {
  const std::uint64_t experts = numbers.get("expert_count");
  return unfolded(tensor, 0, {experts, divided(rows_of(tensor), experts, "rows")});
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
    case Change::stack: return {stacked(tensors, 0)};
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
    case Change::mxfp4_alternating: return mxfp4_alternated(first, tensors.at(1));
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
