#include "kernels/ggml/encode.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "ggml_kinds.hpp"
#include "kernels/cast.hpp"
#include "kernels/ggml/decode.hpp"
#include "kernels/ggml/encode_plain.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/json_file.hpp"
#include "support/vectors.hpp"

namespace ballast::kernels {
namespace {

using Bytes = std::vector<std::byte>;
using test::any_float, test::Floats, test::Kind, test::kinds, test::kMost, test::make, test::one_in;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<DType> encodable_types() {
  std::vector<DType> types;
  for (const DTypeInfo& type : all_dtypes()) {
    if (can_encode(type.dtype) && !needs_importance(type.dtype)) types.push_back(type.dtype);
  }
  return types;
}

// The plain loops take microseconds for each element of these types.
bool is_slow(DType type) {
  return type == DType::iq1_m || type == DType::iq2_s || type == DType::iq3_xxs || type == DType::iq3_s;
}

Bytes encode(DType type, std::span<const float> values) {
  Bytes blocks(values.size() / info(type).block_elements * info(type).block_bytes);
  encode_blocks(type, values, blocks);
  return blocks;
}

Bytes encode_plainly(DType type, std::span<const float> values) {
  const DTypeInfo& block = info(type);
  Bytes blocks(values.size() / block.block_elements * block.block_bytes);
  for (std::size_t i = 0; i * block.block_elements < values.size(); ++i)
    plain::encoder(type)(values.data() + i * block.block_elements,
                         reinterpret_cast<std::uint8_t*>(blocks.data()) + i * block.block_bytes);
  return blocks;
}

Floats decoded(DType type, std::span<const std::byte> blocks) {
  Floats out(blocks.size() / info(type).block_bytes * info(type).block_elements);
  decode_blocks(type, blocks, out);
  return out;
}

class GgmlEncodeOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Highway, GgmlEncodeOnTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

// Rows that are undefined in ggml are compared by their values, so that zeros of both signs are equal.
void expect_row(DType type, std::span<const std::byte> got, std::span<const std::byte> want, bool is_undefined,
                std::string_view what) {
  if (is_undefined) {
    EXPECT_EQ(decoded(type, got), decoded(type, want)) << name(type) << ", " << what;
  } else {
    EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin(), want.end())) << name(type) << ", " << what;
  }
}

TEST_P(GgmlEncodeOnTarget, GivesTheBytesOfGgml) {
  const Json index = test::read_json(test::vector_path("ggml/index.json"));
  for (const DType type : encodable_types()) {
    const auto path = test::vector_path("ggml") + "/" + std::string(name(type));
    const std::string source = test::read_whole_file(path + ".encode.src.f32");
    const std::string blocks = test::read_whole_file(path + ".encode.blocks");
    Floats values(source.size() / sizeof(float));
    std::memcpy(values.data(), source.data(), source.size());
    const Bytes got = encode(type, values);
    ASSERT_EQ(got.size(), blocks.size());
    ASSERT_GT(got.size(), 0u) << path;

    const Json& expected = index.at(name(type)).at("encode");
    const std::size_t row_bytes = expected.at("row_bytes").count();
    const std::vector<std::uint64_t> undefined = test::counts(expected.at("rows_with_undefined_result"));
    std::size_t row = 0;
    for (const Json& what : expected.at("rows").list()) {
      const bool is_undefined = std::find(undefined.begin(), undefined.end(), row) != undefined.end();
      expect_row(type, std::span(got).subspan(row * row_bytes, row_bytes),
                 std::as_bytes(std::span(blocks)).subspan(row * row_bytes, row_bytes), is_undefined, what.text());
      ++row;
    }
    EXPECT_EQ(row * row_bytes, got.size());
  }
}

TEST_P(GgmlEncodeOnTarget, AgreesWithThePlainLoops) {
  for (const DType type : encodable_types()) {
    for (const Kind& kind : kinds()) {
      for (const std::size_t blocks : {1u, 3u, 30u}) {
        if (is_slow(type) && blocks == 30) continue;
        const Floats values = make(kind, blocks * info(type).block_elements);
        EXPECT_EQ(encode(type, values), encode_plainly(type, values))
            << name(type) << ", " << kind.name << ", " << blocks;
      }
    }
  }
}

TEST_P(GgmlEncodeOnTarget, AgreesWithThePlainLoopsOnTiesOfTheSearches) {
  // There are few different values, so that many candidates explain a group equally well.
  std::mt19937_64 random(7);
  for (const DType type : encodable_types()) {
    for (int round = 0; round < (is_slow(type) ? 3 : 20); ++round) {
      Floats values(4 * std::size_t{info(type).block_elements});
      const unsigned different = 2 + static_cast<unsigned>(random() % 5);
      for (float& value : values) value = (static_cast<float>(random() % different) - 1) * 0.125F;
      EXPECT_EQ(encode(type, values), encode_plainly(type, values)) << name(type) << ", round " << round;
    }
  }
}

TEST_P(GgmlEncodeOnTarget, TakesNanForZeroAndInfinityForTheLargestNumber) {
  const float specials[] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                            std::bit_cast<float>(0xFF80'0001)};
  for (const DType type : encodable_types()) {
    for (const unsigned rarity : {1u, 3u, 1000u}) {
      std::mt19937_64 random(rarity);
      Floats values = make(kinds()[0], 5000 / info(type).block_elements * std::size_t{info(type).block_elements});
      Floats finite = values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!one_in(random, rarity)) continue;
        values[i] = specials[random() % 4];
        finite[i] = std::isnan(values[i]) ? 0 : std::copysign(kMost, values[i]);
      }
      EXPECT_EQ(encode(type, values), encode_plainly(type, finite)) << name(type) << ", one in " << rarity;
    }
  }
}

TEST_P(GgmlEncodeOnTarget, CountsTheValuesOfBlocksWhoseScaleDoesNotReach) {
  for (const DType type : encodable_types()) {
    const std::size_t elements = info(type).block_elements;
    Floats values = make(kinds()[0], 50 * elements);
    Bytes blocks(50 * std::size_t{info(type).block_bytes});
    EXPECT_EQ(encode_blocks(type, values, blocks).count, 0U) << name(type);
    for (const float far : {1e30F, -1e30F}) {
      values[7 * elements + 3] = far;
      const Overflows found = encode_blocks(type, values, blocks);
      // These two types have scales of 8 and 32 bits, which reach as far as F32.
      if (type == DType::mxfp4 || type == DType::q8_k) {
        EXPECT_EQ(found.count, 0U) << name(type);
        continue;
      }
      EXPECT_GE(found.count, 1U) << name(type);
      EXPECT_LE(found.count, elements) << name(type);
      EXPECT_EQ(found.largest, static_cast<double>(far)) << name(type);
    }
  }
}

// Whatever the magnitude, a value that is not counted decodes to something like itself.
TEST_P(GgmlEncodeOnTarget, CountsEveryValueThatDecodingLoses) {
  for (const DType type : encodable_types()) {
    const std::size_t elements = info(type).block_elements;
    for (float scale = 1; scale < 1e37F; scale *= 10) {
      Floats values = make(kinds()[0], elements);
      for (float& value : values) value *= scale;
      Bytes blocks(info(type).block_bytes);
      const Overflows found = encode_blocks(type, values, blocks);
      const Floats again = decoded(type, blocks);
      const auto lost = std::ranges::count_if(again, [](float value) { return !std::isfinite(value); });
      EXPECT_GE(found.count, static_cast<std::uint64_t>(lost)) << name(type) << " " << scale;
      const bool is_zero = std::ranges::all_of(again, [](float value) { return value == 0; });
      EXPECT_GE(found.count, is_zero ? 1U : 0U) << name(type) << " " << scale;
      EXPECT_LE(found.count, scale < 100 ? 0U : elements) << name(type) << " " << scale;
    }
  }
}

TEST_P(GgmlEncodeOnTarget, EncodesEachBlockByItself) {
  for (const DType type : encodable_types()) {
    const DTypeInfo& block = info(type);
    const Floats values = make(kinds()[1], std::size_t{block.block_elements} * 150);
    const Bytes whole = encode(type, values);
    Bytes parts(whole.size());
    for (std::size_t first = 0, some = 1; first < 150; first += some, some = std::min(some + 4, 150 - first))
      encode_blocks(type, std::span(values).subspan(first * block.block_elements, some * block.block_elements),
                    std::span(parts).subspan(first * block.block_bytes, some * block.block_bytes));
    EXPECT_EQ(parts, whole) << block.name;
  }
}

TEST_P(GgmlEncodeOnTarget, NeedsNoAlignmentAndWritesNothingElse) {
  for (const DType type : encodable_types()) {
    const Floats values = make(kinds()[0], std::size_t{info(type).block_elements} * 9 + 1);
    const std::span<const float> askew = std::span(values).subspan(1);
    const Bytes want = encode_plainly(type, askew);
    Bytes out(want.size() + 2, std::byte{0x55});
    encode_blocks(type, askew, std::span(out).subspan(1, want.size()));
    EXPECT_TRUE(std::equal(want.begin(), want.end(), out.begin() + 1)) << name(type);
    EXPECT_EQ(out.front(), std::byte{0x55}) << name(type);
    EXPECT_EQ(out.back(), std::byte{0x55}) << name(type);
  }
}

TEST(GgmlEncode, EncodesTheTypesThatNeedNoImportance) {
  using enum DType;
  for (const DType type : {q4_0,   q4_1,  q5_0,  q5_1,  q8_0,  q2_k, q3_k, q4_k,  q5_k,    q6_k,  q8_k, iq4_nl,
                           iq4_xs, tq1_0, tq2_0, mxfp4, nvfp4, q1_0, q2_0, iq1_m, iq3_xxs, iq3_s, iq2_s}) {
    EXPECT_TRUE(can_encode(type) && !needs_importance(type)) << name(type);
    EXPECT_NE(plain::encoder(type), nullptr) << name(type);
  }
  for (const DType type : {iq1_s, iq2_xxs, iq2_xs}) {
    EXPECT_TRUE(can_encode(type) && needs_importance(type)) << name(type);
    EXPECT_EQ(plain::encoder(type), nullptr) << name(type);
  }
  for (const DType type : {f32, f16, bf16, i8, q8_1}) EXPECT_FALSE(can_encode(type)) << name(type);
}

TEST(GgmlEncode, EncodesNothingToNothing) { EXPECT_NO_THROW(encode_blocks(DType::q4_k, {}, {})); }

TEST(GgmlEncode, RefusesATypeThatItDoesNotEncodeByItsName) {
  Bytes out(36);
  EXPECT_ERROR(encode_blocks(DType::q8_1, Floats(32), out), Errc::unsupported, "values cannot be encoded to Q8_1");
}

TEST(GgmlEncode, RefusesATypeThatNeedsImportanceIfThereIsNone) {
  Bytes out(74);
  EXPECT_ERROR(encode_blocks(DType::iq2_xs, Floats(256), out), Errc::invalid_argument,
               "values are encoded to IQ2_XS with importance only");
}

TEST(GgmlEncode, RefusesSizesThatDoNotFitTogether) {
  Bytes out(36);
  EXPECT_ERROR(encode_blocks(DType::q4_0, Floats(32), out), Errc::invalid_argument,
               "32 values do not encode to 36 bytes of Q4_0");
  EXPECT_ERROR(encode_blocks(DType::q4_0, Floats(63), out), Errc::invalid_argument,
               "63 values do not encode to 36 bytes of Q4_0");
  EXPECT_ERROR(encode_blocks(DType::q4_0, Floats(64), std::span(out).first(35)), Errc::invalid_argument,
               "64 values do not encode to 35 bytes of Q4_0");
}

TEST(GgmlEncode, GivesBackWhatABlockHoldsExactly) {
  for (const DType type : {DType::q4_0, DType::q5_0, DType::q8_0, DType::q8_k, DType::iq4_nl, DType::mxfp4}) {
    std::mt19937_64 random(3);
    const std::size_t elements = info(type).block_elements;
    Floats values(elements);
    const int least = type == DType::q4_0 ? -8 : type == DType::q5_0 ? -16 : -127;
    for (float& value : values) {
      const std::size_t code = random() % 16;
      value = type == DType::mxfp4    ? static_cast<float>(kFp4Values[code])
              : type == DType::iq4_nl ? static_cast<float>(kIq4Values[code])
                                      : static_cast<float>(static_cast<int>(code) + least);
    }
    values[0] = type == DType::mxfp4 ? 12.0F : static_cast<float>(least);
    EXPECT_EQ(decoded(type, encode(type, values)), values) << name(type);
  }
}

TEST(GgmlEncodeParts, RoundToF16AsACastDoes) {
  std::mt19937_64 random(5);
  Floats values;
  for (std::uint32_t code = 0; code < 0x1'0000; ++code) {
    const float value = float16{static_cast<std::uint16_t>(code)};
    if (!std::isnan(value)) values.insert(values.end(), {value, std::nextafter(value, 1.0F), value * 1.00049F});
  }
  for (int i = 0; i < 100'000; ++i) values.push_back(any_float(random));
  for (const float tie : {65519.996F, 65520.0F, 0x1p-25F, 0x1.8p-24F, 0x1p-14F, 0x1.ffep-15F}) values.push_back(tie);
  std::vector<std::uint16_t> codes(values.size());
  cast(DType::f32, DType::f16, std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(codes)));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(plain::f16_bits(values[i]), codes[i]) << values[i];
  EXPECT_EQ(plain::f16_bits(std::bit_cast<float>(0xFF80'0001)), 0xFE00);
}

TEST(GgmlEncodeParts, ChooseTheNearestValueOfIq4AndTheUpperOfTwo) {
  for (std::size_t i = 0; i < plain::kIq4Borders.size(); ++i) {
    const float border = plain::kIq4Borders[i];
    EXPECT_EQ(plain::iq4_code(border), i + 1);
    EXPECT_EQ(plain::iq4_code(std::nextafter(border, -kInfinity)), i);
  }
  EXPECT_EQ(plain::iq4_code(-kMost), 0);
  EXPECT_EQ(plain::iq4_code(kMost), 15);
}

TEST(GgmlEncodeParts, RoundTheScalesOfNvfp4AsGgmlDoes) {
  for (const auto& [value, code] : {std::pair{0.0F, 0},
                                    {0x1p-11F, 0},
                                    {0x1p-10F, 1},
                                    {0x1.fp-7F, 7},
                                    {0x1p-6F, 8},
                                    {1.0F, 0x38},
                                    {1.0624F, 0x38},
                                    {1.0625F, 0x39},
                                    {1.9375F, 0x40},
                                    {240.0F, 0x77},
                                    {248.0F, 0x7E},
                                    {256.0F, 0x7E},
                                    {448.0F, 0x7E},
                                    {kMost, 0x7E}})
    EXPECT_EQ(plain::ue4m3_code(value), code) << value;
}

TEST(GgmlEncodeParts, TakeTheScaleOfMxfp4FromTheRoundedLogarithm) {
  EXPECT_EQ(plain::e8m0_code(0), 0);
  EXPECT_EQ(plain::e8m0_code(4), 127);
  EXPECT_EQ(plain::e8m0_code(7.99F), 127);
  EXPECT_EQ(plain::e8m0_code(std::nextafter(0x1p64F, 0.0F)), 127 + 62);
  EXPECT_EQ(plain::e8m0_code(0x1p-140F), 256 - 15);
}

}  // namespace
}  // namespace ballast::kernels
