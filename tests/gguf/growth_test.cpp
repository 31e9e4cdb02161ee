// Headers that are made to take longer than their length allows: a header of sixteen times the size must not take much
// more than sixteen times as long. llama.cpp looks for duplicates by comparing each key with every other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "read_bytes.hpp"
#include "support/cpu_time.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::GgufBuilder;
using test::kF32;

using Build = std::function<GgufBuilder(std::size_t count)>;

double seconds_to_read(const SourcePtr& source) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const double start = test::cpu_seconds();
    static_cast<void>(test::error_of([&] { gguf::read(source, {.lenient = true}); }));
    best = std::min(best, test::cpu_seconds() - start);
  }
  return best;
}

// Measures the exponent k of time ~ size^k. Falling out of the cache raises it a little; a quadratic cost has 2. A busy
// machine can spoil one try, but not every one.
void expect_nearly_linear(const Build& build, std::size_t count) {
  const auto small = test::source_of(build(count).text()), large = test::source_of(build(16 * count).text());
  const double sizes = static_cast<double>(large->size_bytes()) / static_cast<double>(small->size_bytes());
  double exponent = 9;
  for (int tries = 0; tries < 4 && exponent > 1.6; ++tries)
    exponent = std::min(exponent, std::log(seconds_to_read(large) / seconds_to_read(small)) / std::log(sizes));
  EXPECT_LE(exponent, 1.6);
}

TEST(GgufGrowth, IsLinearForAMillionKeys) {
  expect_nearly_linear(
      [](std::size_t count) {
        GgufBuilder file;
        for (std::size_t i = 0; i < count; ++i) file.kv("key." + std::to_string(i), 1u);
        return file;
      },
      62'500);
}

TEST(GgufGrowth, IsLinearForOneKeyAMillionTimes) {
  expect_nearly_linear(
      [](std::size_t count) {
        GgufBuilder file;
        for (std::size_t i = 0; i < count; ++i) file.kv("key", 1u);
        return file;
      },
      62'500);
}

TEST(GgufGrowth, IsLinearForTensors) {
  expect_nearly_linear(
      [](std::size_t count) {
        GgufBuilder file;
        for (std::size_t i = 0; i < count; ++i) file.tensor("blk." + std::to_string(i) + ".weight", kF32, {1});
        return file;
      },
      4'000);
}

TEST(GgufGrowth, IsLinearForTensorsInTheWorstOrder) {
  expect_nearly_linear(
      [](std::size_t count) {
        GgufBuilder file;
        for (std::size_t i = 0; i < count; ++i) file.tensor_at(std::to_string(i), kF32, {1}, 32 * (count - 1 - i));
        return file.data(32 * count);
      },
      4'000);
}

TEST(GgufGrowth, IsLinearForTensorsThatShareTheirBytes) {
  expect_nearly_linear(
      [](std::size_t count) {
        GgufBuilder file;
        for (std::size_t i = 0; i < count; ++i) file.tensor_at(std::to_string(i), kF32, {8}, 0);
        return file.data(32);
      },
      4'000);
}

TEST(GgufGrowth, IsLinearForStringsInEveryVersionAndOrder) {
  for (const std::uint32_t version : {1u, 3u}) {
    for (const std::endian order : {std::endian::little, std::endian::big}) {
      expect_nearly_linear(
          [&](std::size_t count) {
            return GgufBuilder(version, order).strings("tokens", std::vector<std::string>(count, "token"));
          },
          20'000);
    }
  }
}

// The promise is 5 ms; the test allows what a busy machine with a sanitizer still keeps.
TEST(GgufGrowth, OpensALargeVocabularyAtOnce) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 160'000; ++i) tokens.push_back("token" + std::to_string(i));
  const std::string scores(640'000, '\0');
  const auto source = test::source_of(GgufBuilder()
                                          .strings("tokenizer.ggml.tokens", tokens)
                                          .array("tokenizer.ggml.scores", test::kF32Value, 160'000, scores)
                                          .array("tokenizer.ggml.token_type", test::kI32, 160'000, scores)
                                          .text());
  const double seconds = seconds_to_read(source);
  RecordProperty("microseconds", static_cast<int>(seconds * 1e6));
  EXPECT_LE(seconds, 0.1);
}

}  // namespace
}  // namespace ballast
