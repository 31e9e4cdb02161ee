// Encoding with importance: the weights of an importance matrix.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstring>
#include <string>
#include <vector>

#include "ggml_kinds.hpp"
#include "kernels/ggml/decode.hpp"
#include "kernels/ggml/encode.hpp"
#include "kernels/ggml/encode_plain.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/json_file.hpp"
#include "support/vectors.hpp"

namespace ballast::kernels {
namespace {

using Bytes = std::vector<std::byte>;
using test::Floats, test::gaussian, test::Kind, test::kinds, test::make, test::one_in;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<DType> types_with_importance() {
  std::vector<DType> types;
  for (const DTypeInfo& type : all_dtypes()) {
    if (takes_importance(type.dtype)) types.push_back(type.dtype);
  }
  return types;
}

// The plain loops take microseconds for each element of the IQ types.
bool is_slow(DType type) { return plain::weighted_encoder(type) != nullptr && name(type).starts_with("IQ"); }

Bytes encode(DType type, const Floats& values, const Floats& importance) {
  Bytes blocks(*bytes_of(type, values.size()));
  encode_rows(type, values, importance, blocks);
  return blocks;
}

// How much the mean square of a row or of a block counts, in the words of ggml: sigma2.
float sigma2(DType type, std::span<const float> row, std::size_t block) {
  using enum DType;
  const bool is_of_row = importance_needs_rows(type);
  const std::size_t elements = info(type).block_elements;
  const auto from = is_of_row ? row : row.subspan(block * elements, elements);
  float sum = 0;
  for (const float x : from) sum += x * x;
  if (is_of_row) return sum / static_cast<float>(row.size());
  if (type == iq4_nl || type == iq4_xs) return sum * (2.0F / static_cast<float>(elements));
  return (type == q2_k || type == iq2_xxs || type == iq2_xs ? sum : 2 * sum) / 256;
}

Bytes encode_plainly(DType type, std::span<const float> values, const Floats& importance) {
  Bytes blocks(*bytes_of(type, values.size()));
  auto* out = reinterpret_cast<std::uint8_t*>(blocks.data());
  const std::size_t elements = info(type).block_elements;
  for (; !values.empty(); values = values.subspan(importance.size())) {
    const auto row = values.first(importance.size());
    for (std::size_t block = 0; block < row.size() / elements; ++block, out += info(type).block_bytes) {
      Floats weights(elements);
      const float spread = type == DType::q6_k ? 0 : sigma2(type, row, block);
      for (std::size_t j = 0; j < elements; ++j) {
        const float x = row[block * elements + j];
        weights[j] = importance[block * elements + j] * (type == DType::q6_k ? 1 : std::sqrt(spread + x * x));
      }
      plain::weighted_encoder(type)(row.data() + block * elements, weights.data(), 1, out);
    }
  }
  return blocks;
}

const std::vector<Kind>& weight_kinds() {
  static const std::vector<Kind> all = {
      {"like those of models", [](auto& random, auto) { return std::exp(gaussian(random, 2)); }},
      {"all the same", [](auto&, auto) { return 1.0F; }},
      {"all zero", [](auto&, auto) { return 0.0F; }},
      {"some zero", [](auto& random, auto) { return one_in(random, 3) ? std::fabs(gaussian(random, 1)) : 0; }},
      {"zero for whole groups", [](auto&, auto i) { return i / 32 % 2 == 0 ? 1.0F : 0.0F; }},
      {"very different", [](auto& random, auto) { return std::exp(gaussian(random, 10)); }},
      {"tiny", [](auto&, auto) { return 1e-38F; }},
  };
  return all;
}

class GgmlImportanceOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Highway, GgmlImportanceOnTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

Floats read_floats(const std::string& path) {
  const std::string bytes = test::read_whole_file(path);
  Floats values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST_P(GgmlImportanceOnTarget, GivesTheBytesOfGgml) {
  for (const DType type : types_with_importance()) {
    const auto path = test::vector_path("ggml") + "/" + std::string(name(type)) + ".encode_imatrix";
    const std::string blocks = test::read_whole_file(path + ".blocks");
    const Bytes got = encode(type, read_floats(path + ".src.f32"), read_floats(path + ".weights.f32"));
    ASSERT_GT(got.size(), 0u) << path;
    ASSERT_EQ(got.size(), blocks.size());
    EXPECT_EQ(std::memcmp(got.data(), blocks.data(), got.size()), 0) << name(type);
  }
}

TEST_P(GgmlImportanceOnTarget, AgreesWithThePlainLoops) {
  for (const DType type : types_with_importance()) {
    const std::size_t row = 3 * std::size_t{info(type).block_elements};
    std::size_t turn = 0;
    for (const Kind& kind : kinds()) {
      for (const Kind& weights : weight_kinds()) {
        // One kind of weights is enough for a kind of values if the loops are slow, but not always the same one.
        if (is_slow(type) && turn++ % weight_kinds().size() != 0) continue;
        const Floats values = make(kind, row * (is_slow(type) ? 1 : 5)), importance = make(weights, row);
        EXPECT_EQ(encode(type, values, importance), encode_plainly(type, values, importance))
            << name(type) << ", " << kind.name << ", weights " << weights.name;
      }
      ++turn;
    }
  }
}

TEST_P(GgmlImportanceOnTarget, AgreesWithThePlainLoopsForRowsOfManyBlocks) {
  for (const DType type : types_with_importance()) {
    const std::size_t row = (is_slow(type) ? 9 : 37) * std::size_t{info(type).block_elements};
    const Floats values = make(kinds()[0], 2 * row), importance = make(weight_kinds()[0], row);
    EXPECT_EQ(encode(type, values, importance), encode_plainly(type, values, importance)) << name(type);
  }
}

TEST_P(GgmlImportanceOnTarget, AgreesWithThePlainLoopsOnTiesOfTheSearches) {
  std::mt19937_64 random(7);
  for (const DType type : types_with_importance()) {
    for (int round = 0; round < (is_slow(type) ? 2 : 10); ++round) {
      Floats values(4 * std::size_t{info(type).block_elements}), importance(values.size());
      const unsigned different = 2 + static_cast<unsigned>(random() % 5);
      for (float& value : values) value = (static_cast<float>(random() % different) - 1) * 0.125F;
      for (float& weight : importance) weight = static_cast<float>(random() % 3) * 0.5F;
      EXPECT_EQ(encode(type, values, importance), encode_plainly(type, values, importance))
          << name(type) << ", round " << round;
    }
  }
}

TEST_P(GgmlImportanceOnTarget, SurvivesAnyValuesAndWeights) {
  const float specials[] = {kInfinity, -kInfinity, kNan, 0, -0.0F, -1, 1e-45F, 1e30F, -test::kMost};
  for (const DType type : types_with_importance()) {
    std::mt19937_64 random(3);
    Floats values(2048), importance(1024);
    for (const unsigned rarity : {1u, 10u}) {
      for (float& value : values) value = one_in(random, rarity) ? specials[random() % 9] : gaussian(random, 1);
      for (float& weight : importance) weight = one_in(random, rarity) ? specials[random() % 9] : 1;
      EXPECT_EQ(encode(type, values, importance).size(), *bytes_of(type, values.size())) << name(type);
    }
  }
}

TEST_P(GgmlImportanceOnTarget, TakesNanForZeroAndInfinityForTheLargestNumber) {
  for (const DType type : types_with_importance()) {
    const Floats importance = make(weight_kinds()[0], 512);
    Floats values = make(kinds()[0], 2048), finite = values;
    for (std::size_t i = 3; i < values.size(); i += 300) {
      values[i] = i % 2 == 0 ? kNan : -kInfinity;
      finite[i] = i % 2 == 0 ? 0 : -test::kMost;
    }
    EXPECT_EQ(encode(type, values, importance), encode(type, finite, importance)) << name(type);
  }
}

TEST_P(GgmlImportanceOnTarget, EncodesEachRowByItself) {
  for (const DType type : types_with_importance()) {
    const std::size_t row = 3 * std::size_t{info(type).block_elements};
    const Floats values = make(kinds()[1], 11 * row), importance = make(weight_kinds()[0], row);
    const Bytes whole = encode(type, values, importance);
    Bytes parts;
    for (std::size_t i = 0; i < 11; ++i) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>(i * row);
      const Bytes part = encode(type, Floats(from, from + static_cast<std::ptrdiff_t>(row)), importance);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(parts, whole) << name(type);
  }
}

TEST_P(GgmlImportanceOnTarget, EncodesAPartOfARowAsARowIfBlocksDoNotDependOnTheRow) {
  for (const DType type : types_with_importance()) {
    if (importance_needs_rows(type)) continue;
    const std::size_t elements = info(type).block_elements;
    const Floats values = make(kinds()[1], 7 * elements), importance = make(weight_kinds()[0], 7 * elements);
    const Bytes whole = encode(type, values, importance);
    const auto cut = static_cast<std::ptrdiff_t>(3 * elements);
    Bytes parts = encode(type, Floats(values.begin(), values.begin() + cut),
                         Floats(importance.begin(), importance.begin() + cut));
    const Bytes rest =
        encode(type, Floats(values.begin() + cut, values.end()), Floats(importance.begin() + cut, importance.end()));
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole) << name(type);
  }
}

TEST(GgmlImportance, ChangesNothingForTypesThatDoNotTakeIt) {
  using enum DType;
  const Floats values = make(kinds()[0], 1024), importance = make(weight_kinds()[0], 512);
  for (const DType type : {q8_0, q8_k, mxfp4, nvfp4, tq1_0, tq2_0, q1_0, q2_0}) {
    EXPECT_FALSE(takes_importance(type)) << name(type);
    Bytes alone(*bytes_of(type, values.size()));
    encode_blocks(type, values, alone);
    EXPECT_EQ(encode(type, values, importance), alone) << name(type);
  }
}

TEST(GgmlImportance, MakesTheImportantElementsMoreExact) {
  for (const DType type : types_with_importance()) {
    Floats importance(256);
    for (std::size_t i = 0; i < importance.size(); ++i) importance[i] = i % 4 == 0 ? 100.0F : 0.01F;
    const Floats values = make(kinds()[0], 8192);
    Floats again(values.size()), evenly(values.size());
    decode_blocks(type, encode(type, values, importance), again);
    decode_blocks(type, encode(type, values, Floats(256, 1.0F)), evenly);
    double with = 0, without = 0;
    for (std::size_t i = 0; i < values.size(); i += 4) {
      with += std::pow(again[i] - values[i], 2);
      without += std::pow(evenly[i] - values[i], 2);
    }
    EXPECT_LT(with, without) << name(type);
  }
}

TEST(GgmlImportance, RefusesSizesThatDoNotFitTogether) {
  Bytes out(36);
  EXPECT_ERROR(encode_rows(DType::q4_0, Floats(64), Floats(48), out), Errc::invalid_argument,
               "64 values are no rows of Q4_0, each with the importance of 48 elements");
  EXPECT_ERROR(encode_rows(DType::q4_0, Floats(64), Floats(96), out), Errc::invalid_argument,
               "64 values are no rows of Q4_0, each with the importance of 96 elements");
  EXPECT_ERROR(encode_rows(DType::q4_0, Floats(64), Floats(), out), Errc::invalid_argument,
               "64 values are no rows of Q4_0, each with the importance of 0 elements");
  EXPECT_ERROR(encode_rows(DType::q4_0, Floats(96), Floats(32), out), Errc::invalid_argument,
               "96 values do not encode to 36 bytes of Q4_0");
  EXPECT_ERROR(encode_rows(DType::q8_1, Floats(32), Floats(32), out), Errc::unsupported,
               "values cannot be encoded to Q8_1");
  EXPECT_NO_THROW(encode_rows(DType::iq2_xs, {}, Floats(256), {}));
}

}  // namespace
}  // namespace ballast::kernels
