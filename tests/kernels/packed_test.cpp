// Codes of a few bits, against plain loops, on every target of the machine.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "kernels/cast.hpp"
#include "kernels/packed/byte_codes.hpp"
#include "kernels/packed/codes.hpp"
#include "kernels/packed/runs.hpp"
#include "kernels/packed/scatter.hpp"
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

TEST(PackedCodes, ThatLieHighHalfFirstAreSwapped) {
  std::vector<std::byte> bytes = {std::byte{0x1F}, std::byte{0xA0}};
  swap_halves(bytes);
  EXPECT_EQ(bytes, (std::vector{std::byte{0xF1}, std::byte{0x0A}}));
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

TEST(WordCodes, OfAwqAreInItsOrder) {
  constexpr unsigned kNibbleOf[] = {0, 4, 1, 5, 2, 6, 3, 7};
  const auto in = random_bytes(4 * 21);
  std::vector<std::uint8_t> codes(8 * 21);
  awq_codes(in.data(), 21, codes.data());
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], bits_at(in, i / 8 * 32 + kNibbleOf[i % 8] * 4, 4));
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
