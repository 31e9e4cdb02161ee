#include "kernels/stream.hpp"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stream.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void stream_line(std::byte* out, const std::byte* in) {
  const hn::CappedTag<std::uint8_t, kCacheLine> d;
  for (std::size_t j = 0; j < kCacheLine; j += hn::Lanes(d))
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(in + j)), d,
               reinterpret_cast<std::uint8_t*>(out + j));
}

// Copies four pages side by side: the hardware prefetcher stops at the end of a page, and treats each of the four as a
// stream of its own. One page after the other took a seventh longer.
std::size_t stream_pages(std::byte* out, const std::byte* in, std::size_t size) {
  constexpr std::size_t kPage = 4096, kPages = 4;
  std::size_t done = 0;
  for (; done + kPages * kPage <= size; done += kPages * kPage) {
    for (std::size_t line = done; line < done + kPage; line += kCacheLine) {
      for (std::size_t at = line; at < line + kPages * kPage; at += kPage) stream_line(out + at, in + at);
    }
  }
  return done;
}

void stream_copy_on_target(std::byte* out, const std::byte* in, std::size_t size) {
  const std::size_t head = std::min(size, (0 - reinterpret_cast<std::uintptr_t>(out)) % kCacheLine);
  copy_short(out, in, head);
  std::size_t i = head + stream_pages(out + head, in + head, size - head);
  for (; i + kCacheLine <= size; i += kCacheLine) stream_line(out + i, in + i);
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
