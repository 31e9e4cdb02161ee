// The table of the schemes in which other programs keep weights quantized: how each is recognized, and what reads it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <ballast/dtype.hpp>
#include <ballast/json.hpp>

#include "checkpoint/quantization/weights/readers.hpp"

namespace ballast {

class DTypes {
 public:
  constexpr DTypes(std::initializer_list<DType> dtypes) {
    for (const DType dtype : dtypes) bits_ |= std::uint64_t{1} << static_cast<unsigned>(dtype);
  }
  constexpr bool contain(DType dtype) const { return (bits_ >> static_cast<unsigned>(dtype) & 1) != 0; }

 private:
  std::uint64_t bits_ = 0;
};

// A scheme is recognized by two tensors whose names begin alike and have these endings, the first of which has one of
// these dtypes. The common beginning of their names is a module, of which everything but the bias is packed, or a
// parameter ("weight"), with the endings that is_ending_of_parameter() knows. The first row that fits counts.
struct PackingScheme {
  std::string_view name, ending;
  DTypes dtypes;
  std::string_view partner;
  enum class Of : std::uint8_t { module, parameter } of;
  WeightReader read;  // null if the scheme is known and not decoded
};

std::span<const PackingScheme> packing_schemes() noexcept;

// Whether weights may be packed in a dtype. In every scheme but one at least one part of a weight has such a dtype.
inline constexpr DTypes kPackedDTypes = {DType::i8,      DType::u8,      DType::i16,         DType::u16,
                                         DType::i32,     DType::u32,     DType::f4,          DType::f8_e4m3,
                                         DType::f8_e5m2, DType::f8_e8m0, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz};
constexpr bool is_packed_dtype(DType dtype) noexcept { return kPackedDTypes.contain(dtype); }

// Whether a tensor may be one of the two that tell a scheme. Codes of QuIP# are integers of 64 bits, as positions and
// counters of other models are.
inline bool may_tell_scheme(std::string_view name, DType dtype) noexcept {
  return is_packed_dtype(dtype) || (dtype == DType::i64 && name.ends_with(".Qidxs"));
}

// The scheme, or the layout of one, that a configuration names and no reader knows; empty if there is none.
std::string undecoded_scheme(std::string_view scheme, const Json& config);

// The word of a configuration by which codes are laid out for a kernel, and not in the order of their matrix; empty if
// there is none.
std::string layout_of_kernel(const Json& config);

// The weight of which a tensor of this name must be a part, by its ending alone: of its codes, or of what goes with
// them. Empty if the ending tells nothing.
std::string weight_of_codes(std::string_view name);
std::string weight_of_partner(std::string_view name);

// Whether such a name is that of a part of bitsandbytes, whose codes may lie in elements that are called floats.
bool is_of_4_bits(std::string_view name) noexcept;

// What may follow the name of a packed parameter in the name of a part.
std::span<const std::string_view> endings_of_parameters() noexcept;

// Whether a name is that of a number for the activations of a module whose weight is packed: of a part of the module,
// or of keys and values, which may stand one level higher.
bool is_of_activations(std::string_view name) noexcept;
bool is_of_cached_keys(std::string_view name) noexcept;

}  // namespace ballast
