#include "kernels/stream.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

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
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t head = std::min(size, (0 - reinterpret_cast<std::uintptr_t>(out)) % lanes);
  std::memcpy(out, in, head);
  std::size_t i = head;
  for (; i + lanes <= size; i += lanes) {
    const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(in + i));
    hn::Stream(bytes, d, reinterpret_cast<std::uint8_t*>(out + i));
  }
  std::memcpy(out + i, in + i, size - i);
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
