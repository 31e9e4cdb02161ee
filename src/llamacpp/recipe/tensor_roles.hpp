// What a tensor is for, by its name in llama.cpp: recipes of types go by this.
#pragma once

#include <cstdint>
#include <string_view>

#include <ballast/shape.hpp>

namespace ballast::llamacpp {

// Values and whatever is fused with them are one role: nothing suffers more from few bits.
enum class Role : std::uint8_t {
  output,
  embedding,
  attention_values,
  attention_keys,
  attention_queries,
  attention_output,
  ffn_up,
  ffn_gate,
  ffn_down,
  other,
};
inline constexpr std::size_t kRoleCount = static_cast<std::size_t>(Role::other) + 1;

Role role_of(std::string_view name) noexcept;

// The number in "blk.7.ffn_up.weight"; -1 for a tensor that belongs to no block.
std::int64_t block_of(std::string_view name) noexcept;

// The order in which llama-quantize writes tensors: by block, then by name.
bool is_written_before(std::string_view a, std::string_view b) noexcept;

// The dimensions as ggml counts them: without those of 1 that vary slowest.
std::size_t ggml_rank(const Shape& shape) noexcept;

// Elements of a row, and matrices of a stack of experts.
std::uint64_t columns_of(const Shape& shape) noexcept;
std::uint64_t matrices_of(const Shape& shape) noexcept;

// Whether llama-quantize changes the type of such a tensor at all.
bool is_quantized(std::string_view name, const Shape& shape) noexcept;

// Whether the converter writes such a tensor as F32, whatever type was asked for.
bool is_always_f32(std::string_view name, const Shape& shape, std::string_view architecture) noexcept;

}  // namespace ballast::llamacpp
