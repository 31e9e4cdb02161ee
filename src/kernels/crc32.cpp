#include "kernels/crc32.hpp"

#include <libdeflate.h>
#include <zlib.h>

namespace ballast::kernels {

std::uint32_t crc32(std::uint32_t before, std::span<const std::byte> bytes) noexcept {
  // An empty span may have a null address, for which libdeflate returns the initial value instead.
  return bytes.empty() ? before : libdeflate_crc32(before, bytes.data(), bytes.size());
}

std::uint32_t combine_crc32(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) noexcept {
  static_assert(sizeof(z_off_t) == sizeof second_bytes);
  return static_cast<std::uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

}  // namespace ballast::kernels
