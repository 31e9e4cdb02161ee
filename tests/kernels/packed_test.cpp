// Codes of a few bits, against plain loops, on every target of the machine.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "kernels/cast.hpp"
#include "kernels/packed/byte_codes.hpp"
#include "kernels/packed/codes.hpp"
#include "kernels/packed/runs.hpp"
#include "kernels/packed/scatter.hpp"
#include "kernels/packed/tables.hpp"
#include "kernels/packed/word_codes.hpp"

namespace ballast::kernels {
namespace {

std::vector<std::byte> random_bytes(std::size_t size, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

unsigned bits_at(std::span<const std::byte> bytes, std::size_t first, unsigned count) {
  unsigned value = 0;
  for (unsigned i = 0; i < count; ++i)
    value |= (std::to_integer<unsigned>(bytes[(first + i) / 8]) >> ((first + i) % 8) & 1) << i;
  return value;
}

void on_every_target(const std::function<void()>& check) {
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets & -targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(targets & -targets));
    check();
    hwy::SetSupportedTargetsForTest(0);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

constexpr std::size_t kCounts[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 64, 65, 255, 1000};

TEST(PackedCodes, AreStreamsOfBitsOfAnyWidth) {
  on_every_target([] {
    for (unsigned bits = 1; bits <= 8; ++bits) {
      for (const std::size_t count : kCounts) {
        const auto in = random_bytes((count * bits + 7) / 8, bits);
        std::vector<std::uint8_t> codes(count);
        unpack_codes(bits, in, codes);
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(codes[i], bits_at(in, i * bits, bits)) << bits << " bits, code " << i << " of " << count;
      }
    }
  });
}

TEST(PackedCodes, AreLookedUpWhateverTheirUpperBitsAre) {
  CodeTable table;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) * 1.37F - 4;
  CodeTable integers;
  for (std::size_t i = 0; i < integers.size(); ++i) integers[i] = static_cast<float>(i) - 8;
  on_every_target([&] {
    for (const CodeTable& values : {table, integers}) {
      for (const std::size_t count : kCounts) {
        std::vector<std::uint8_t> codes(count);
        for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(i * 37);
        std::vector<float> out(count);
        look_up(values, codes, out.data());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], values[codes[i] % 16]);
      }
    }
  });
}

TEST(PackedCodes, AreSomeBitsOfEachByte) {
  on_every_target([] {
    for (const std::size_t count : kCounts) {
      const auto in = random_bytes(count);
      std::vector<std::uint8_t> codes(count);
      for (const unsigned mask : {1u, 3u, 15u}) {
        for (unsigned shift = 0; shift < 8; ++shift) {
          bits_of_bytes(shift, mask, in, codes.data());
          for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(codes[i], std::to_integer<unsigned>(in[i]) >> shift & mask) << "shift " << shift;
        }
      }
    }
  });
}

TEST(PackedCodes, MayLieHighHalfFirst) {
  on_every_target([] {
    for (const std::size_t count : kCounts) {
      const auto in = random_bytes((count + 1) / 2);
      std::vector<std::uint8_t> codes(count);
      unpack_high_halves_first(in, codes);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(codes[i], std::to_integer<unsigned>(in[i / 2]) >> (i % 2 == 0 ? 4 : 0) & 15u) << i << " of " << count;
    }
  });
}

TEST(ByteCodes, AreSomeBitsOfEachByte) {
  on_every_target([] {
    for (const std::size_t count : kCounts) {
      const auto in = random_bytes(count);
      std::vector<float> out(count);
      for (unsigned shift = 0; shift < 8; ++shift) {
        byte_fields({shift, 7, 3}, in, out.data());
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], static_cast<float>(std::to_integer<unsigned>(in[i]) >> shift & 7) - 3);
      }
    }
  });
}

TEST(ByteCodes, OfF8HaveTheBitsOfACast) {
  std::vector<std::byte> in;
  for (unsigned i = 0; i < 300; ++i) in.push_back(static_cast<std::byte>(i));
  on_every_target([&] {
    for (const std::size_t count : {1u, 7u, 16u, 127u, 128u, 300u}) {
      const std::span some = std::span(in).first(count);
      std::vector<float> out(count), expected(count);
      e4m3_numbers(some, out.data());
      cast(DType::f8_e4m3, DType::f32, some, std::as_writable_bytes(std::span(expected)));
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(expected[i])) << "code " << i;
    }
  });
}

TEST(WordCodes, CrossTheEndsOfWords) {
  constexpr std::size_t kColumns = 37, kWords = 9;
  const auto in = random_bytes(kColumns * kWords * 4);
  on_every_target([&] {
    for (unsigned bits = 1; bits <= 8; ++bits) {
      for (std::size_t code = 0; (code + 1) * bits <= (kWords - 1) * 32; ++code) {
        const std::byte* low = in.data() + code * bits / 32 * kColumns * 4;
        std::vector<float> out(kColumns);
        word_codes(low, low + kColumns * 4, static_cast<unsigned>(code * bits % 32), bits, kColumns, out.data());
        for (std::size_t column = 0; column < kColumns; ++column) {
          unsigned expected = 0;
          for (unsigned bit = 0; bit < bits; ++bit) {
            const std::size_t at = code * bits + bit;
            expected |= bits_at(in, ((at / 32) * kColumns + column) * 32 + at % 32, 1) << bit;
          }
          ASSERT_EQ(out[column], static_cast<float>(expected)) << bits << " bits, code " << code;
        }
      }
    }
  });
}

TEST(WordCodes, ThatLeaveGapsInWordsAreUnpacked) {
  const auto in = random_bytes(40);
  std::vector<std::uint8_t> codes(95);
  unpack_words(3, 10, in, codes);
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], bits_at(in, i / 10 * 32 + i % 10 * 3, 3));
}

TEST(WordCodes, OfAwqArePutIntoTheirOwnOrder) {
  constexpr unsigned kNibbleOf[] = {0, 4, 1, 5, 2, 6, 3, 7};
  const auto in = random_bytes(4 * 21);
  auto ordered = in;
  order_awq_codes(ordered);
  for (std::size_t i = 0; i < 8 * 21; ++i)
    EXPECT_EQ(bits_at(ordered, i * 4, 4), bits_at(in, i / 8 * 32 + kNibbleOf[i % 8] * 4, 4)) << "code " << i;
}

TEST(Runs, StepEachValueByTheNumberOfItsRun) {
  const std::vector<float> numbers = {1.5F, -2, 0.3F, 7, 1e-3F, 9, 11, 13, 0.1F, 3};
  for (const RunStep step : {RunStep::add, RunStep::subtract, RunStep::multiply}) {
    on_every_target([&] {
      for (const std::uint64_t run : {1u, 3u, 16u, 17u, 1000u}) {
        for (const std::uint64_t first : {0u, 1u, 2u, 5u}) {
          const std::size_t count = std::min<std::size_t>(numbers.size() * run - first, 100);
          std::vector<float> values(count), expected(count);
          for (std::size_t i = 0; i < count; ++i) {
            values[i] = static_cast<float>(i) * 0.7F - 20;
            const float number = numbers[(first + i) / run];
            expected[i] = step == RunStep::add        ? values[i] + number
                          : step == RunStep::subtract ? values[i] - number
                                                      : values[i] * number;
          }
          step_runs(step, values, numbers.data(), run, first);
          ASSERT_EQ(values, expected) << run << " from " << first;
        }
      }
    });
  }
}

// Runs of any size, beginning anywhere in the first one.
void for_runs(const std::function<void(TableRuns runs, std::size_t count)>& check) {
  for (const std::uint64_t size : {1u, 5u, 16u, 32u, 33u, 128u, 5000u})
    for (const std::uint64_t first : {0u, 3u, 31u})
      for (const std::size_t count : kCounts) check({size, first}, count);
}

TEST(Tables, HaveTheElementOfEachCodeInARun) {
  std::vector<std::uint16_t> tables(2000 * kTableElements);
  for (std::size_t i = 0; i < tables.size(); ++i) tables[i] = static_cast<std::uint16_t>(i * 40503);
  on_every_target([&] {
    for_runs([&](TableRuns runs, std::size_t count) {
      std::vector<std::uint8_t> codes(count);
      for (std::size_t i = 0; i < count; ++i) codes[i] = i * 7 % 16;
      std::vector<std::uint16_t> out(count);
      look_up_runs(tables.data(), runs, codes, reinterpret_cast<std::byte*>(out.data()));
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(out[i], tables[(runs.first + i) / runs.size * kTableElements + codes[i]])
            << "code " << i << " of " << count << " in runs of " << runs.size << " from " << runs.first;
    });
  });
}

std::uint16_t bf16_of(float value) {
  std::uint16_t bits;
  cast(DType::f32, DType::bf16, std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(&bits, 1)));
  return bits;
}

// Scales from the smallest to the largest that tables are for, of either sign.
TEST(Tables, OfF8HaveTheBitsOfAProductThatIsRoundedTwice) {
  std::vector<float> scales;
  for (int i = 0; i < 2000; ++i)
    scales.push_back(std::ldexp(1.0F + static_cast<float>(i) / 2001, i % 235 - 117) * (i % 2 == 0 ? 1.0F : -1.0F));
  std::vector<std::uint16_t> tables;
  for (const float scale : scales)
    for (unsigned i = 0; i < kTableElements; ++i)
      tables.push_back(bf16_of(static_cast<float>(i) * (i < 8 ? 0x1p-9F : 0x1p-10F) * scale));
  on_every_target([&] {
    for_runs([&](TableRuns runs, std::size_t count) {
      auto codes = random_bytes(count);
      for (std::byte& code : codes)
        if ((code & std::byte{0x7F}) == std::byte{0x7F}) code ^= std::byte{1};
      std::vector<float> numbers(count);
      cast(DType::f8_e4m3, DType::f32, codes, std::as_writable_bytes(std::span(numbers)));
      std::vector<std::uint16_t> out(count);
      ASSERT_TRUE(e4m3_runs(tables.data(), runs, codes, reinterpret_cast<std::byte*>(out.data())));
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(out[i], bf16_of(numbers[i] * scales[(runs.first + i) / runs.size])) << numbers[i];
    });
  });
}

TEST(Tables, OfF8HaveNoNan) {
  const std::vector<std::uint16_t> table(kTableElements, 0x3F80);
  on_every_target([&] {
    for (const std::size_t count : kCounts) {
      for (std::size_t at = 0; at < count; ++at) {
        std::vector<std::byte> codes(count, std::byte{0x7E}), out(2 * count);
        EXPECT_TRUE(e4m3_runs(table.data(), {1000, 0}, codes, out.data()));
        codes[at] = at % 2 == 0 ? std::byte{0x7F} : std::byte{0xFF};
        EXPECT_FALSE(e4m3_runs(table.data(), {1000, 0}, codes, out.data())) << at << " of " << count;
      }
    }
  });
}

TEST(Scatter, PutsValuesWhereBitsAreSet) {
  on_every_target([] {
    for (const std::size_t width : {1u, 2u, 4u, 8u}) {
      for (const std::size_t count : kCounts) {
        auto mask = random_bytes((count + 7) / 8, static_cast<unsigned>(count));
        if (count % 8 != 0) mask.back() &= static_cast<std::byte>((1u << (count % 8)) - 1);
        const std::size_t set = count_bits(mask);
        auto values = random_bytes(set * width + kScatterSlack);
        std::vector<std::byte> out(count * width, std::byte{0xEE});
        scatter(mask, values.data(), width, out);
        for (std::size_t i = 0, next = 0; i < count; ++i) {
          const bool is_set = bits_at(mask, i, 1) != 0;
          const std::vector<std::byte> zeros(width);
          ASSERT_EQ(std::memcmp(out.data() + i * width, is_set ? values.data() + next * width : zeros.data(), width),
                    0);
          next += is_set ? 1 : 0;
        }
      }
    }
  });
}

}  // namespace
}  // namespace ballast::kernels
