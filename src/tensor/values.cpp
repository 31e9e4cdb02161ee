#include <ballast/error.hpp>
#include <ballast/tensor.hpp>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

namespace ballast {
namespace {

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T>;

template <class T>
constexpr DType floating_dtype() {
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, float16>) return DType::f16;
  if constexpr (std::is_same_v<T, bfloat16>) return DType::bf16;
  return DType::f32;
}

template <class From, class To>
void copy_integers(const Tensor& tensor, std::vector<To>& values) {
  constexpr std::size_t kBlock = 4096;
  std::array<From, kBlock> block;
  for (std::size_t done = 0; done < values.size();) {
    const std::size_t count = std::min(kBlock, values.size() - done);
    tensor.read(done * sizeof(From), std::as_writable_bytes(std::span(block).first(count)));
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::in_range<To>(block[i]))
        throw Error(Errc::mismatch, "the value at " + std::to_string(done + i) + " is " + std::to_string(block[i]) +
                                        ", which does not fit the type that is asked for");
      values[done + i] = static_cast<To>(block[i]);
    }
    done += count;
  }
}

template <class To>
void read_integers(const Tensor& tensor, std::vector<To>& values) {
  switch (tensor.dtype()) {
    case DType::boolean:
    case DType::u8: return copy_integers<std::uint8_t>(tensor, values);
    case DType::i8: return copy_integers<std::int8_t>(tensor, values);
    case DType::u16: return copy_integers<std::uint16_t>(tensor, values);
    case DType::i16: return copy_integers<std::int16_t>(tensor, values);
    case DType::u32: return copy_integers<std::uint32_t>(tensor, values);
    case DType::i32: return copy_integers<std::int32_t>(tensor, values);
    case DType::u64: return copy_integers<std::uint64_t>(tensor, values);
    case DType::i64: return copy_integers<std::int64_t>(tensor, values);
    default:
      throw Error(Errc::unsupported,
                  "a tensor of dtype " + std::string(name(tensor.dtype())) + " cannot be read as integers")
          .hint("call values<float>() or values<double>()");
  }
}

}  // namespace

template <class T>
std::vector<T> Tensor::values() const {
  std::vector<T> values(static_cast<std::size_t>(numel()));
  if constexpr (kIsInteger<T>) {
    read_integers(*this, values);
  } else {
    to(floating_dtype<T>()).read(0, std::as_writable_bytes(std::span(values)));
  }
  return values;
}

template std::vector<float> Tensor::values() const;
template std::vector<double> Tensor::values() const;
template std::vector<float16> Tensor::values() const;
template std::vector<bfloat16> Tensor::values() const;
template std::vector<std::int8_t> Tensor::values() const;
template std::vector<std::uint8_t> Tensor::values() const;
template std::vector<std::int16_t> Tensor::values() const;
template std::vector<std::uint16_t> Tensor::values() const;
template std::vector<std::int32_t> Tensor::values() const;
template std::vector<std::uint32_t> Tensor::values() const;
template std::vector<std::int64_t> Tensor::values() const;
template std::vector<std::uint64_t> Tensor::values() const;

}  // namespace ballast
