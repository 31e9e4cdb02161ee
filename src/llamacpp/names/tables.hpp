// The names of tensors in GGUF and at Hugging Face, and what llama.cpp's converter does to their values in between.
//
// To add an architecture, add a table of its rows and a line in tables.cpp. A row names a module, and so both its
// ".weight" and its ".bias", or a whole tensor. {} is the number of the block, # the number of one of several tensors
// that are stacked in GGUF. Several names, with spaces between them, are tensors that the row makes of the other side.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ballast::names {

// Changes on the way to GGUF; they are undone on the way back.
enum class Change : std::uint8_t {
  none,
  permute_queries,      // interleaves the two halves of each head's rows, since llama.cpp rotates neighbours
  permute_keys,         // the same, with the number of heads of keys and values
  add_one,              // to a norm's weight, which its architecture keeps as the difference from 1
  transpose,            // a matrix that Hugging Face keeps as [in, out]
  transpose_each,       // the same for every matrix of a stack
  squeeze,              // [channels, 1, width] to [channels, width]
  negated_exponential,  // -exp(x), since Hugging Face keeps the logarithm
  qkv_of_heads,         // rows [heads, 3, size] to [3, heads, size]
  qkv_of_groups,        // rows of groups (queries, a key, a value) to all queries, all keys, all values
  split_groups,         // the same, with a tensor for each of the three, permuted as those of llama
  split_latent,         // keys and values of every head, made of the latent: keys transposed, values as they are
  split_qkvz,           // rows of heads (query, key, values, gates) to all queries, keys and values; and all gates
  split_halves,         // the first and the second half of the rows
  split_alternating,    // the even and the odd numbers of the last dimension
  split_transposed,     // [in, 2 * out] of every expert: transposed, then the even and the odd rows
  mxfp4,                // codes and scales to ggml's blocks
  mxfp4_alternating,    // the same; the even and the odd rows apart
  stack,                // the tensors of all numbers, one after the other
  stack_rows,           // [experts * rows, columns] seen as a stack
  stack_transposed,     // the same, then every matrix is transposed
  tile_values,          // heads of values from the order (key head, value) to the order (value, key head): the rows,
  tile_values_of_qkv,   // the last rows, behind queries and keys,
  tile_values_of_conv,  // the same for [channels, 1, width], squeezed,
  tile_value_columns,   // the columns,
  tile_value_logs,      // or one number for each head, as -exp(x)
};

// Whether a row names a module with its weight and bias, or a tensor.
enum class Names : std::uint8_t { module, whole };

struct Row {
  std::string_view gguf, huggingface;
  Change change = Change::none;
  Names names = Names::module;
};

// Another beginning of Hugging Face's names: inside a larger model, or without the head around it.
struct Prefix {
  std::string_view found, usual;
};

// Where the blocks behind the last one of the model are, which predict further tokens.
enum class ExtraBlocks : std::uint8_t {
  none,      // nowhere
  in_line,   // among the blocks, on both sides
  mtp,       // at Hugging Face they are mtp.layers.0 and so on
  left_out,  // GGUF has no place for them
};

struct Architecture {
  std::string_view name;                       // the usual name
  std::string_view gguf;                       // as in general.architecture and in the keys of its numbers
  std::span<const std::span<const Row>> rows;  // the first row that matches counts
  std::span<const Prefix> prefixes;
  std::span<const std::string_view> left_out;  // whole names at Hugging Face of tensors that GGUF cannot hold
  ExtraBlocks extra_blocks = ExtraBlocks::none;
};

std::span<const Architecture> architectures() noexcept;

}  // namespace ballast::names
