#include "kernels/key_counts.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/blocks.hpp"
#include "kernels/cast.hpp"

namespace ballast::kernels {
namespace {

// The bits of a float have the order of its magnitude. All bits of a negative number are inverted, and the sign of
// others is set, so that negative numbers come first.
template <class Bits>
constexpr Bits sortable(Bits bits) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  return static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
}

template <class Bits>
constexpr Bits unsorted(Bits key) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  return static_cast<Bits>((key & kSign) != 0 ? key ^ kSign : ~key);
}

std::uint64_t key_of(float value) { return sortable(std::bit_cast<std::uint32_t>(value)); }
std::uint64_t key_of(double value) { return sortable(std::bit_cast<std::uint64_t>(value)); }

// Types of 16 bits: their own bits are the key, without a cast.
struct OwnKey {
  DType dtype;
  std::uint16_t (*code_of)(std::uint16_t key);
  void (*count)(std::uint64_t* counts, std::span<const std::byte> bytes);
};

constexpr std::uint16_t same(std::uint16_t code) { return code; }
constexpr std::uint16_t from_signed(std::uint16_t code) { return code ^ 0x8000U; }

// Magnitudes above `kMost` are NaN.
template <std::uint16_t (*kKey)(std::uint16_t), unsigned kMost>
void count_codes(std::uint64_t* counts, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    std::uint16_t code = 0;
    std::memcpy(&code, &bytes[at], sizeof code);
    counts[kKey(code)] += (code & 0x7FFFU) <= kMost ? 1U : 0U;
  }
}

constexpr OwnKey kOwnKeys[] = {
    {DType::bf16, unsorted<std::uint16_t>, count_codes<sortable<std::uint16_t>, 0x7F80>},
    {DType::f16, unsorted<std::uint16_t>, count_codes<sortable<std::uint16_t>, 0x7C00>},
    {DType::i16, from_signed, count_codes<from_signed, 0x7FFF>},
    {DType::u16, same, count_codes<same, 0x7FFF>},
};

const OwnKey* own_key(DType dtype) {
  const auto* found = std::ranges::find(kOwnKeys, dtype, &OwnKey::dtype);
  return found == std::end(kOwnKeys) ? nullptr : found;
}

// `used_digits` of the digits that a key of Number has are enough to tell the values of the type apart.
template <class Number>
void count_block(std::span<std::uint64_t> counts, const KeyPrefixes& prefixes, unsigned used_digits,
                 const Number* values, std::size_t count) {
  const unsigned unused_bits = static_cast<unsigned>(sizeof(Number) * 8) - used_digits * kKeyDigitBits;
  const unsigned shift = (used_digits - prefixes.length() - 1) * kKeyDigitBits;
  const std::size_t none = prefixes.all().size();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) continue;
    const std::uint64_t key = key_of(values[i]) >> unused_bits;
    const std::size_t prefix = prefixes.length() == 0 ? 0 : prefixes.find(key, used_digits);
    if (prefix != none) ++counts[prefix * kKeyDigits + (key >> shift) % kKeyDigits];
  }
}

}  // namespace

// Every type of up to 8 bits fits BF16, the upper half of an F32.
unsigned key_length(DType dtype) noexcept {
  if (!fits_f32(dtype)) return 4;
  return dtype == DType::f32 ? 2 : 1;
}

double value_of_key(DType dtype, std::uint64_t key) noexcept {
  if (const OwnKey* own = own_key(dtype)) {
    const std::uint16_t code = own->code_of(static_cast<std::uint16_t>(key));
    double value = 0;
    cast(dtype, DType::f64, std::as_bytes(std::span(&code, 1)), std::as_writable_bytes(std::span(&value, 1)));
    return value + 0.0;
  }
  if (!fits_f32(dtype)) return std::bit_cast<double>(unsorted(key)) + 0.0;
  const auto key32 = static_cast<std::uint32_t>(dtype == DType::f32 ? key : key << kKeyDigitBits);
  // The lower half of the key of a negative number was inverted, too.
  const auto lost = dtype == DType::f32 || (key32 & 0x8000'0000U) != 0 ? 0U : 0xFFFFU;
  return static_cast<double>(std::bit_cast<float>(unsorted(key32 | lost))) + 0.0;
}

KeyPrefixes::KeyPrefixes(unsigned length, std::vector<std::uint64_t> prefixes)
    : length_(length), prefixes_(std::move(prefixes)), begins_(kKeyDigits) {
  for (const std::uint64_t prefix : prefixes_) begins_[prefix >> ((length - 1) * kKeyDigitBits)] = true;
}

std::size_t KeyPrefixes::find(std::uint64_t key, unsigned digits) const noexcept {
  if (!begins_[key >> ((digits - 1) * kKeyDigitBits)]) return prefixes_.size();
  const std::uint64_t wanted = key >> ((digits - length_) * kKeyDigitBits);
  const auto found = std::ranges::lower_bound(prefixes_, wanted);
  if (found == prefixes_.end() || *found != wanted) return prefixes_.size();
  return static_cast<std::size_t>(found - prefixes_.begin());
}

void count_keys(std::span<std::uint64_t> counts, const KeyPrefixes& prefixes, DType dtype,
                std::span<const std::byte> bytes) noexcept {
  if (const OwnKey* own = own_key(dtype)) return own->count(counts.data(), bytes);
  for_each_narrow_block(dtype, bytes, [&, digits = key_length(dtype)](const auto* values, std::size_t count) {
    count_block(counts, prefixes, digits, values, count);
  });
}

}  // namespace ballast::kernels
