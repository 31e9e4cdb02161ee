#include "tensor/element_layout.hpp"

#include <ballast/error.hpp>

#include <limits>
#include <string>

namespace ballast {
namespace {

[[noreturn]] void throw_cut_block(DType dtype) {
  const DTypeInfo& type = info(dtype);
  throw Error(Errc::unsupported, "a view of " + std::string(type.name) + " may not cut its blocks of " +
                                     std::to_string(type.block_elements) + " elements")
      .hint("slice along another dimension, or cast first");
}

[[noreturn]] void throw_too_large() { throw Error(Errc::malformed, "a view reaches past what 64 bits can count"); }

}  // namespace

ElementLayout element_layout(DType dtype, const Shape& shape, const Strides& strides) {
  const DTypeInfo& type = info(dtype);
  const std::int64_t block = type.block_elements;
  ElementLayout layout{{shape.begin(), shape.end()}, {}, type.block_bytes, 0, 0, 0};

  if (block > 1) {
    const std::uint64_t last = shape.empty() ? 1 : shape[shape.rank() - 1];
    if (last % type.block_elements != 0 || (last != 0 && strides.back() != 1)) throw_cut_block(dtype);
    layout.shape.back() /= type.block_elements;
  }
  for (std::size_t i = 0; i < strides.size(); ++i) {
    std::int64_t units = strides[i];
    if (block > 1 && i + 1 == strides.size()) {
      units = 1;
    } else if (block > 1) {
      if (units % block != 0 && shape[i] > 1) throw_cut_block(dtype);
      units /= block;
    }
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(units, std::int64_t{type.block_bytes}, &bytes)) throw_too_large();
    layout.byte_strides.push_back(bytes);
  }

  const auto units = Shape(layout.shape).numel();
  if (!units) throw_too_large();
  layout.unit_count = *units;
  if (layout.unit_count == 0) return layout;

  __extension__ using Wide = __int128;
  Wide low = 0, high = type.block_bytes;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    const Wide reach = static_cast<Wide>(layout.shape[i] - 1) * layout.byte_strides[i];
    (reach < 0 ? low : high) += reach;
    if (-low > std::numeric_limits<std::int64_t>::max() || high > std::numeric_limits<std::int64_t>::max()) {
      throw_too_large();
    }
  }
  layout.low_bytes = static_cast<std::uint64_t>(-low);
  layout.high_bytes = static_cast<std::uint64_t>(high);
  return layout;
}

}  // namespace ballast
