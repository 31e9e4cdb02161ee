// DType: every element type of safetensors, PyTorch and ggml, in one table.
//
// Names are those of safetensors and ggml, upper case. A type packs `block_elements` elements into `block_bytes`
// bytes: 1 and 4 for F32, 2 and 1 for F4, 4 and 3 for F6_*, 256 and 144 for Q4_K.
//
// The table is constant and lives as long as the program. Every function may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ballast {

// clang-format off
enum class DType : std::uint8_t {
  // safetensors, in its own order (a file stores its tensors in the reverse order)
  boolean, f4, f6_e2m3, f6_e3m2, u8, i8, f8_e5m2, f8_e4m3, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz,
  i16, u16, f16, bf16, i32, u32, f32, c64, f64, i64, u64,
  // further types of PyTorch
  c32, c128, bc32, bits8, bits16, bits1x8, bits2x4, bits4x2, qi8, qu8, qi32, qu4x2, qu2x4,
  // ggml blocks
  q4_0, q4_1, q5_0, q5_1, q8_0, q8_1, q2_k, q3_k, q4_k, q5_k, q6_k, q8_k,
  iq2_xxs, iq2_xs, iq3_xxs, iq1_s, iq4_nl, iq3_s, iq2_s, iq4_xs, iq1_m, tq1_0, tq2_0, mxfp4, nvfp4, q1_0, q2_0,
};
// clang-format on

enum class DTypeKind : std::uint8_t {
  boolean,
  floating,
  signed_integer,
  unsigned_integer,
  complex,
  bits,
  quantized,
  ggml
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  DTypeKind kind;
  std::uint16_t block_elements;
  std::uint16_t block_bytes;
  bool in_safetensors;
  std::string_view torch_name;  // "float32"; empty if torch has none
  std::string_view numpy_name;  // "<f4"; empty if NumPy has none
  std::int16_t ggml_id;         // -1 if ggml has none
};

namespace detail {
extern const DTypeInfo dtype_table[];
}

std::span<const DTypeInfo> all_dtypes() noexcept;
inline const DTypeInfo& info(DType dtype) noexcept { return detail::dtype_table[static_cast<std::size_t>(dtype)]; }
inline std::string_view name(DType dtype) noexcept { return info(dtype).name; }

// The dtype of exactly this name ("BF16").
std::optional<DType> dtype_from_name(std::string_view name) noexcept;

// The dtype that a person means, in upper or lower case: a name here ("bf16"), torch's ("torch.bfloat16", "half"),
// NumPy's ("float32", "<f4") or another usual one ("fp16", "fp8").
std::optional<DType> parse_dtype(std::string_view text);

inline bool is_floating(DType dtype) noexcept { return info(dtype).kind == DTypeKind::floating; }

// The bytes of `count` elements stored one after the other. Empty if the number overflows, or if the elements end
// inside a byte or a block.
inline std::optional<std::uint64_t> bytes_of(DType dtype, std::uint64_t count) noexcept {
  const DTypeInfo& type = info(dtype);
  if (type.block_elements != 1) {  // nearly always it is 1, and dividing is slow
    if (count % type.block_elements != 0) return std::nullopt;
    count /= type.block_elements;
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, std::uint64_t{type.block_bytes}, &bytes)) return std::nullopt;
  return bytes;
}

// Whether T is the C++ type of one element: Tensor::as<T>() accepts the types for which this is true.
template <class T>
bool stores(DType dtype) noexcept;

}  // namespace ballast
