// The file types of llama-quantize: a name, the number in general.file_type, and the type of most tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <ballast/dtype.hpp>

namespace ballast::llamacpp {

// Sets of file types, one bit for each number.
using FileTypes = std::uint64_t;

// clang-format off
namespace types {
inline constexpr FileTypes f32 = 1ull << 0, f16 = 1ull << 1, q4_0 = 1ull << 2, q4_1 = 1ull << 3, q8_0 = 1ull << 7,
    q5_0 = 1ull << 8, q5_1 = 1ull << 9, q2_k = 1ull << 10, q3_k_s = 1ull << 11, q3_k_m = 1ull << 12,
    q3_k_l = 1ull << 13, q4_k_s = 1ull << 14, q4_k_m = 1ull << 15, q5_k_s = 1ull << 16, q5_k_m = 1ull << 17,
    q6_k = 1ull << 18, iq2_xxs = 1ull << 19, iq2_xs = 1ull << 20, q2_k_s = 1ull << 21, iq3_xs = 1ull << 22,
    iq3_xxs = 1ull << 23, iq1_s = 1ull << 24, iq4_nl = 1ull << 25, iq3_s = 1ull << 26, iq3_m = 1ull << 27,
    iq2_s = 1ull << 28, iq2_m = 1ull << 29, iq4_xs = 1ull << 30, iq1_m = 1ull << 31, bf16 = 1ull << 32,
    tq1_0 = 1ull << 36, tq2_0 = 1ull << 37, mxfp4_moe = 1ull << 38, q1_0 = 1ull << 40, q2_0 = 1ull << 41;
inline constexpr FileTypes all = ~0ull;
// These have the fewest bits, and rules of their own.
inline constexpr FileTypes lowest = iq1_s | iq1_m | iq2_xxs | iq2_xs | iq2_s | iq2_m;
}  // namespace types
// clang-format on

struct FileType {
  std::string_view name;
  std::uint32_t number;
  DType type;

  FileTypes bit() const noexcept { return FileTypes{1} << number; }
};

// The numbers that a file has if its experts came in blocks already.
inline constexpr std::uint32_t kMxfp4Moe = 38, kNvfp4 = 39;

std::span<const FileType> file_types() noexcept;

// The file type of this name, in upper or lower case, or of this number. Errc::invalid_argument if there is none.
const FileType& file_type(std::string_view name);

}  // namespace ballast::llamacpp
