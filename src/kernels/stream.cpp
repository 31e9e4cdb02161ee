#include "kernels/stream.hpp"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stream.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// After it, because it depends on the target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void stream_copy_on_target(std::byte* out, const std::byte* in, std::size_t size) {
  const hn::CappedTag<std::uint8_t, kCacheLine> d;
  const std::size_t head = std::min(size, (0 - reinterpret_cast<std::uintptr_t>(out)) % kCacheLine);
  copy_short(out, in, head);
  std::size_t i = head;
  for (; i + kCacheLine <= size; i += kCacheLine) {
    for (std::size_t j = i; j < i + kCacheLine; j += hn::Lanes(d)) {
      const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(in + j));
      hn::Stream(bytes, d, reinterpret_cast<std::uint8_t*>(out + j));
    }
  }
  copy_short(out + i, in + i, size - i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(stream_copy_on_target);

void stream_copy(std::byte* out, const std::byte* in, std::size_t size) noexcept {
  HWY_DYNAMIC_DISPATCH(stream_copy_on_target)(out, in, size);
}

void finish_streaming() noexcept { hwy::FlushStream(); }

}  // namespace ballast::kernels
#endif
