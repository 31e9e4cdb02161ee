#include "kernels/planes.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/planes.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// These interleave two or four streams of T, or take them apart again. `stride` is the distance between the streams in
// bytes. They return how many elements of each stream are done: whole vectors.
template <class T, std::size_t kStreams>
std::size_t interleave(const std::uint8_t* streams, std::size_t stride, std::uint8_t* out, std::size_t count) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto load = [&](std::size_t stream, std::size_t i) {
    return hn::LoadU(d, reinterpret_cast<const T*>(streams + stream * stride) + i);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    T* to = reinterpret_cast<T*>(out) + i * kStreams;
    if constexpr (kStreams == 2)
      hn::StoreInterleaved2(load(0, i), load(1, i), d, to);
    else
      hn::StoreInterleaved4(load(0, i), load(1, i), load(2, i), load(3, i), d, to);
  }
  return i;
}

template <class T, std::size_t kStreams>
std::size_t deinterleave(const std::uint8_t* in, std::uint8_t* streams, std::size_t stride, std::size_t count) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto store = [&](auto values, std::size_t stream, std::size_t i) {
    hn::StoreU(values, d, reinterpret_cast<T*>(streams + stream * stride) + i);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const T* from = reinterpret_cast<const T*>(in) + i * kStreams;
    hn::Vec<decltype(d)> a, b, c, e;
    if constexpr (kStreams == 2) {
      hn::LoadInterleaved2(d, from, a, b);
    } else {
      hn::LoadInterleaved4(d, from, a, b, c, e);
      store(c, 2, i);
      store(e, 3, i);
    }
    store(a, 0, i);
    store(b, 1, i);
  }
  return i;
}

// Elements of 8 and 16 bytes are four parts of 2 or 4 bytes, and each part is made of its own planes. A tile of the
// four streams of parts stays in the first-level cache.
constexpr std::size_t kTile = 512;  // elements

template <class Part>
std::size_t join_parts(const std::uint8_t* planes, std::uint8_t* out, std::size_t count) {
  constexpr std::size_t kStride = kTile * sizeof(Part);
  alignas(64) std::uint8_t parts[4 * kStride];
  std::size_t done = 0;
  for (; done + kTile <= count; done += kTile) {
    for (std::size_t p = 0; p < 4; ++p) {
      const std::uint8_t* from = planes + p * sizeof(Part) * count + done;
      interleave<std::uint8_t, sizeof(Part)>(from, count, parts + p * kStride, kTile);
    }
    interleave<Part, 4>(parts, kStride, out + done * 4 * sizeof(Part), kTile);
  }
  return done;
}

template <class Part>
std::size_t split_parts(const std::uint8_t* in, std::uint8_t* planes, std::size_t count) {
  constexpr std::size_t kStride = kTile * sizeof(Part);
  alignas(64) std::uint8_t parts[4 * kStride];
  std::size_t done = 0;
  for (; done + kTile <= count; done += kTile) {
    deinterleave<Part, 4>(in + done * 4 * sizeof(Part), parts, kStride, kTile);
    for (std::size_t p = 0; p < 4; ++p) {
      std::uint8_t* to = planes + p * sizeof(Part) * count + done;
      deinterleave<std::uint8_t, sizeof(Part)>(parts + p * kStride, to, count, kTile);
    }
  }
  return done;
}

// Both return how many elements are done; plain loops do the rest, and elements of other sizes.
std::size_t join(const std::uint8_t* planes, std::size_t element_bytes, std::uint8_t* out, std::size_t count) {
  switch (element_bytes) {
    case 2: return interleave<std::uint8_t, 2>(planes, count, out, count);
    case 4: return interleave<std::uint8_t, 4>(planes, count, out, count);
    case 8: return join_parts<std::uint16_t>(planes, out, count);
    case 16: return join_parts<std::uint32_t>(planes, out, count);
    default: return 0;
  }
}

std::size_t split(const std::uint8_t* in, std::size_t element_bytes, std::uint8_t* planes, std::size_t count) {
  switch (element_bytes) {
    case 2: return deinterleave<std::uint8_t, 2>(in, planes, count, count);
    case 4: return deinterleave<std::uint8_t, 4>(in, planes, count, count);
    case 8: return split_parts<std::uint16_t>(in, planes, count);
    case 16: return split_parts<std::uint32_t>(in, planes, count);
    default: return 0;
  }
}

// One vector of elements: each plane takes the highest bit of the plane below it, and the lowest plane takes the
// highest bit of the highest plane.
template <class D>
void rotate_left_some(D d, std::uint8_t* planes, std::size_t element_bytes, std::size_t stride) {
  auto below = hn::LoadU(d, planes + (element_bytes - 1) * stride);
  for (std::size_t k = 0; k < element_bytes; ++k) {
    const auto bytes = hn::LoadU(d, planes + k * stride);
    hn::StoreU(hn::Or(hn::ShiftLeft<1>(bytes), hn::ShiftRight<7>(below)), d, planes + k * stride);
    below = bytes;
  }
}

template <class D>
void rotate_right_some(D d, std::uint8_t* planes, std::size_t element_bytes, std::size_t stride) {
  auto above = hn::LoadU(d, planes);
  for (std::size_t k = element_bytes; k-- > 0;) {
    const auto bytes = hn::LoadU(d, planes + k * stride);
    hn::StoreU(hn::Or(hn::ShiftRight<1>(bytes), hn::ShiftLeft<7>(above)), d, planes + k * stride);
    above = bytes;
  }
}

void rotate_left(std::uint8_t* planes, std::size_t element_bytes, std::size_t count) {
  const hn::ScalableTag<std::uint8_t> d;
  const hn::CappedTag<std::uint8_t, 1> single;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) rotate_left_some(d, planes + i, element_bytes, count);
  for (; i < count; ++i) rotate_left_some(single, planes + i, element_bytes, count);
}

void rotate_right(std::uint8_t* planes, std::size_t element_bytes, std::size_t count) {
  const hn::ScalableTag<std::uint8_t> d;
  const hn::CappedTag<std::uint8_t, 1> single;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) rotate_right_some(d, planes + i, element_bytes, count);
  for (; i < count; ++i) rotate_right_some(single, planes + i, element_bytes, count);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ballast::kernels {

HWY_EXPORT(join);
HWY_EXPORT(split);
HWY_EXPORT(rotate_left);
HWY_EXPORT(rotate_right);

void split_planes(std::span<const std::byte> elements, std::size_t element_bytes,
                  std::span<std::byte> planes) noexcept {
  assert(elements.size() == planes.size() && elements.size() % element_bytes == 0);
  if (elements.empty()) return;
  if (element_bytes == 1) {
    std::memcpy(planes.data(), elements.data(), elements.size());
    return;
  }
  const auto* in = reinterpret_cast<const std::uint8_t*>(elements.data());
  auto* out = reinterpret_cast<std::uint8_t*>(planes.data());
  const std::size_t count = elements.size() / element_bytes;
  for (std::size_t i = HWY_DYNAMIC_DISPATCH(split)(in, element_bytes, out, count); i < count; ++i) {
    for (std::size_t k = 0; k < element_bytes; ++k) out[k * count + i] = in[i * element_bytes + k];
  }
}

void join_planes(std::span<const std::byte> planes, std::size_t element_bytes, std::span<std::byte> elements) noexcept {
  assert(elements.size() == planes.size() && elements.size() % element_bytes == 0);
  if (elements.empty()) return;
  if (element_bytes == 1) {
    std::memcpy(elements.data(), planes.data(), planes.size());
    return;
  }
  const auto* in = reinterpret_cast<const std::uint8_t*>(planes.data());
  auto* out = reinterpret_cast<std::uint8_t*>(elements.data());
  const std::size_t count = elements.size() / element_bytes;
  for (std::size_t i = HWY_DYNAMIC_DISPATCH(join)(in, element_bytes, out, count); i < count; ++i) {
    for (std::size_t k = 0; k < element_bytes; ++k) out[i * element_bytes + k] = in[k * count + i];
  }
}

void rotate_left_in_planes(std::span<std::byte> planes, std::size_t element_bytes) noexcept {
  assert(planes.size() % element_bytes == 0);
  HWY_DYNAMIC_DISPATCH(rotate_left)
  (reinterpret_cast<std::uint8_t*>(planes.data()), element_bytes, planes.size() / element_bytes);
}

void rotate_right_in_planes(std::span<std::byte> planes, std::size_t element_bytes) noexcept {
  assert(planes.size() % element_bytes == 0);
  HWY_DYNAMIC_DISPATCH(rotate_right)
  (reinterpret_cast<std::uint8_t*>(planes.data()), element_bytes, planes.size() / element_bytes);
}

}  // namespace ballast::kernels

#endif  // HWY_ONCE
