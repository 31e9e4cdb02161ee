#include "elements.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/float16.hpp>

namespace ballast::cli {

struct ElementDecoder {
  DType dtype;
  DType read_as;  // the type that the tensor is cast to before it is read
  std::size_t size;
  Element (*decode)(const std::byte* bytes);
};

namespace {

template <class Stored>
Stored load(const std::byte* bytes) {
  Stored value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class Stored, class Shown>
Element decode(const std::byte* bytes) {
  return static_cast<Shown>(load<Stored>(bytes));
}

template <class Part, class Shown>
Element decode_complex(const std::byte* bytes) {
  return std::complex<Shown>(static_cast<Shown>(load<Part>(bytes)),
                             static_cast<Shown>(load<Part>(bytes + sizeof(Part))));
}

Element decode_boolean(const std::byte* bytes) { return *bytes != std::byte{0}; }

template <class Stored>
constexpr ElementDecoder integer(DType dtype) {
  using Shown = std::conditional_t<std::is_signed_v<Stored>, std::int64_t, std::uint64_t>;
  return {dtype, dtype, sizeof(Stored), decode<Stored, Shown>};
}

constexpr ElementDecoder small_float(DType dtype) { return {dtype, DType::f32, 4, decode<float, float>}; }

constexpr ElementDecoder kDecoders[] = {
    {DType::boolean, DType::boolean, 1, decode_boolean},
    integer<std::uint8_t>(DType::u8),
    integer<std::uint16_t>(DType::u16),
    integer<std::uint32_t>(DType::u32),
    integer<std::uint64_t>(DType::u64),
    integer<std::int8_t>(DType::i8),
    integer<std::int16_t>(DType::i16),
    integer<std::int32_t>(DType::i32),
    integer<std::int64_t>(DType::i64),
    integer<std::uint8_t>(DType::bits8),
    integer<std::uint16_t>(DType::bits16),
    integer<std::int8_t>(DType::qi8),
    integer<std::uint8_t>(DType::qu8),
    integer<std::int32_t>(DType::qi32),
    small_float(DType::f32),
    small_float(DType::f16),
    small_float(DType::bf16),
    small_float(DType::f8_e5m2),
    small_float(DType::f8_e4m3),
    small_float(DType::f8_e8m0),
    small_float(DType::f8_e4m3fnuz),
    small_float(DType::f8_e5m2fnuz),
    small_float(DType::f6_e2m3),
    small_float(DType::f6_e3m2),
    small_float(DType::f4),
    {DType::f64, DType::f64, 8, decode<double, double>},
    {DType::c32, DType::c32, 4, decode_complex<float16, float>},
    {DType::bc32, DType::bc32, 4, decode_complex<bfloat16, float>},
    {DType::c64, DType::c64, 8, decode_complex<float, float>},
    {DType::c128, DType::c128, 16, decode_complex<double, double>},
};

const ElementDecoder& decoder_of(DType dtype) {
  const auto* decoder =
      std::find_if(std::begin(kDecoders), std::end(kDecoders), [&](const auto& d) { return d.dtype == dtype; });
  if (decoder != std::end(kDecoders)) return *decoder;
  throw Error(Errc::unsupported, fmt::format("values of dtype {} cannot be shown as numbers", name(dtype)))
      .hint("take the raw bytes with -o FILE, or -o - for standard output");
}

}  // namespace

Elements::Elements(const Tensor& tensor, std::uint64_t window)
    : decoder_(decoder_of(tensor.dtype())),
      tensor_(tensor.dtype() == decoder_.read_as ? tensor : tensor.to(decoder_.read_as)),
      window_(window) {}

Element Elements::operator[](std::uint64_t i) {
  const bool in_buffer = i >= first_ && (i - first_) * decoder_.size < buffer_.size();
  if (!in_buffer) {
    buffer_.resize(std::min(window_, count() - i) * decoder_.size);
    tensor_.read(i * decoder_.size, buffer_);
    first_ = i;
  }
  return decoder_.decode(buffer_.data() + (i - first_) * decoder_.size);
}

}  // namespace ballast::cli
