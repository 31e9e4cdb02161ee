#include "kernels/add.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "kernels/cast.hpp"

namespace ballast::kernels {
namespace {

using Add = Overflows (*)(std::span<std::byte> total, std::span<const std::byte> more);

template <class T>
Overflows add_each(std::span<std::byte> total, std::span<const std::byte> more) {
  for (std::size_t at = 0; at < total.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, total.data() + at, sizeof a);
    std::memcpy(&b, more.data() + at, sizeof b);
    a = static_cast<T>(a + b);
    std::memcpy(total.data() + at, &a, sizeof a);
  }
  return {};
}

Overflows or_each(std::span<std::byte> total, std::span<const std::byte> more) {
  for (std::size_t i = 0; i < total.size(); ++i)
    total[i] = std::byte{total[i] != std::byte{0} || more[i] != std::byte{0}};
  return {};
}

// Adds through F32, a block on the stack at a time.
template <DType kType>
Overflows add_narrow(std::span<std::byte> total, std::span<const std::byte> more) {
  Overflows overflows;
  constexpr std::size_t kElements = 256;
  const std::size_t step = kElements * info(kType).block_bytes;
  float a[kElements], b[kElements];
  for (std::size_t first = 0; first < total.size(); first += step) {
    const std::size_t size = std::min(step, total.size() - first), count = size / info(kType).block_bytes;
    cast(kType, DType::f32, total.subspan(first, size), std::as_writable_bytes(std::span(a, count)));
    cast(kType, DType::f32, more.subspan(first, size), std::as_writable_bytes(std::span(b, count)));
    for (std::size_t i = 0; i < count; ++i) a[i] += b[i];
    overflows.add(cast(DType::f32, kType, std::as_bytes(std::span(a, count)), total.subspan(first, size)));
  }
  return overflows;
}

struct Sum {
  DType dtype;
  Add add;
};

// Signed integers wrap like the unsigned integers of their width; a complex number is two real numbers.
constexpr Sum kSums[] = {
    {DType::f32, add_each<float>},
    {DType::f64, add_each<double>},
    {DType::c64, add_each<float>},
    {DType::c128, add_each<double>},
    {DType::i8, add_each<std::uint8_t>},
    {DType::u8, add_each<std::uint8_t>},
    {DType::i16, add_each<std::uint16_t>},
    {DType::u16, add_each<std::uint16_t>},
    {DType::i32, add_each<std::uint32_t>},
    {DType::u32, add_each<std::uint32_t>},
    {DType::i64, add_each<std::uint64_t>},
    {DType::u64, add_each<std::uint64_t>},
    {DType::boolean, or_each},
    {DType::f16, add_narrow<DType::f16>},
    {DType::bf16, add_narrow<DType::bf16>},
    {DType::c32, add_narrow<DType::f16>},
    {DType::bc32, add_narrow<DType::bf16>},
    {DType::f8_e4m3, add_narrow<DType::f8_e4m3>},
    {DType::f8_e5m2, add_narrow<DType::f8_e5m2>},
    {DType::f8_e4m3fnuz, add_narrow<DType::f8_e4m3fnuz>},
    {DType::f8_e5m2fnuz, add_narrow<DType::f8_e5m2fnuz>},
};

const Sum* find(DType dtype) noexcept {
  const auto* found =
      std::find_if(std::begin(kSums), std::end(kSums), [&](const Sum& sum) { return sum.dtype == dtype; });
  return found == std::end(kSums) ? nullptr : found;
}

}  // namespace

bool can_add(DType dtype) noexcept { return find(dtype) != nullptr; }

Overflows add(DType dtype, std::span<std::byte> total, std::span<const std::byte> more) noexcept {
  assert(total.size() == more.size() && total.size() % info(dtype).block_bytes == 0);
  return find(dtype)->add(total, more);
}

}  // namespace ballast::kernels
