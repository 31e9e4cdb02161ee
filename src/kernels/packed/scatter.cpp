#include "kernels/packed/scatter.hpp"

#include <array>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed/scatter.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Eight elements of two bytes for each byte of the mask. `orders` has, for each byte, from which of the next 16 bytes
// each byte of the result comes; a number above 127 gives zero. Returns how many bytes of the mask were used.
std::size_t scatter_pairs(const std::uint8_t* mask, std::size_t count, const std::uint8_t* values, std::uint8_t* out,
                          const std::uint8_t* orders) {
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<std::uint8_t, 16> d;
  if (hn::Lanes(d) != 16) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto order = hn::LoadU(d, orders + std::size_t{mask[i]} * 16);
    hn::StoreU(hn::TableLookupBytesOr0(hn::LoadU(d, values), order), d, out + i * 16);
    values += 2 * std::popcount(mask[i]);
  }
  return count;
#else
  static_cast<void>(mask), static_cast<void>(count), static_cast<void>(values), static_cast<void>(out);
  static_cast<void>(orders);
  return 0;
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {

HWY_EXPORT(scatter_pairs);

struct Orders {
  alignas(16) std::array<std::uint8_t, std::size_t{256} * 16> bytes;
};

constexpr Orders make_orders() {
  constexpr std::uint8_t kZero = 0x80;
  Orders orders{};
  for (unsigned mask = 0; mask < 256; ++mask) {
    std::uint8_t next = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      const bool is_set = (mask >> bit & 1) != 0;
      for (std::uint8_t byte = 0; byte < 2; ++byte)
        orders.bytes[mask * 16 + bit * 2 + byte] = is_set ? static_cast<std::uint8_t>(next + byte) : kZero;
      if (is_set) next = static_cast<std::uint8_t>(next + 2);
    }
  }
  return orders;
}

constexpr Orders kOrders = make_orders();

}  // namespace

std::uint64_t count_bits(std::span<const std::byte> mask) noexcept {
  std::uint64_t count = 0;
  for (; mask.size() >= 8; mask = mask.subspan(8)) {
    std::uint64_t word;
    std::memcpy(&word, mask.data(), sizeof word);
    count += static_cast<std::uint64_t>(std::popcount(word));
  }
  for (const std::byte byte : mask) count += static_cast<std::uint64_t>(std::popcount(std::to_integer<unsigned>(byte)));
  return count;
}

void scatter(std::span<const std::byte> mask, const std::byte* values, std::size_t width,
             std::span<std::byte> out) noexcept {
  const std::size_t count = out.size() / width;
  std::size_t i = 0;
  if (width == 2) {
    const std::size_t used = HWY_DYNAMIC_DISPATCH(scatter_pairs)(
        reinterpret_cast<const std::uint8_t*>(mask.data()), count / 8, reinterpret_cast<const std::uint8_t*>(values),
        reinterpret_cast<std::uint8_t*>(out.data()), kOrders.bytes.data());
    values += count_bits(mask.first(used)) * width;
    i = used * 8;
  }
  std::memset(out.data() + i * width, 0, (count - i) * width);
  for (; i < count; ++i) {
    if ((std::to_integer<unsigned>(mask[i / 8]) >> (i % 8) & 1) == 0) continue;
    std::memcpy(out.data() + i * width, values, width);
    values += width;
  }
}

}  // namespace ballast::kernels
#endif  // HWY_ONCE
