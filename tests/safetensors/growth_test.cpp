// Headers that are made to take longer than their length allows: sixteen times the header must not take much more than
// sixteen times as long.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "formats/safetensors/header.hpp"
#include "support/cpu_time.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using Build = std::function<std::string(std::size_t count)>;

double seconds_to_parse(const std::string& header) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const auto text = std::make_shared<PaddedText>(header);
    const double start = test::cpu_seconds();
    static_cast<void>(test::error_of([&] { safetensors::parse_header(text, meta_storage(1ull << 40), {}); }));
    best = std::min(best, test::cpu_seconds() - start);
  }
  return best;
}

// Measures the exponent k of time ~ size^k from one length to sixteen times that. Sorting and falling out of the cache
// raise it a little, fresh memory more; a quadratic cost has 2. A busy machine can spoil one try, but not every one.
void expect_nearly_linear(const Build& build, std::size_t count) {
  const std::string small = build(count), large = build(16 * count);
  double exponent = 9;
  for (int tries = 0; tries < 4 && exponent > 1.6; ++tries) {
    const double growth = seconds_to_parse(large) / seconds_to_parse(small);
    exponent = std::min(
        exponent, std::log(growth) / std::log(static_cast<double>(large.size()) / static_cast<double>(small.size())));
  }
  EXPECT_LE(exponent, 1.6);
}

// Builds "{" part(0) "," part(1) "," ... "}".
Build object_of(std::function<std::string(std::size_t)> part) {
  return [part](std::size_t count) {
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i) text += (i ? "," : "") + part(i);
    return text + "}";
  };
}

std::string entry(const std::string& name, std::size_t begin, std::size_t end) {
  return "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) + "],\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST(HostileGrowth, IsLinearForManyTensors) {
  expect_nearly_linear(object_of([](std::size_t i) { return entry("t" + std::to_string(i), i, i + 1); }), 4000);
}

TEST(HostileGrowth, IsLinearForTensorsInTheWorstOrder) {
  expect_nearly_linear(
      [](std::size_t count) {
        return object_of([count](std::size_t i) { return entry("t" + std::to_string(i), count - i - 1, count - i); })(
            count);
      },
      4000);
}

// Names of "Aa" and "BB", which collide in weak hashes, and multiples of 2^32.
TEST(HostileGrowth, IsLinearForNamesMadeToCollide) {
  expect_nearly_linear(object_of([](std::size_t i) {
                         std::string name = "AaAaAaAaAaAaAaAaAaAa";
                         for (std::size_t bit = 0; bit < 20; ++bit) {
                           if (i >> bit & 1) name.replace(bit / 2 * 2, 2, "BB");
                         }
                         return entry(name + std::to_string(i << 32), i, i + 1);
                       }),
                       4000);
}

TEST(HostileGrowth, IsLinearForLongNamesThatDifferAtTheEnd) {
  expect_nearly_linear(
      object_of([](std::size_t i) { return entry(std::string(1000, 'x') + std::to_string(i), i, i + 1); }), 500);
}

TEST(HostileGrowth, IsLinearForEmptyTensorsAtOneOffset) {
  expect_nearly_linear(object_of([](std::size_t i) { return entry("t" + std::to_string(i), 0, 0); }), 4000);
}

TEST(HostileGrowth, IsLinearForNamesOfEscapes) {
  expect_nearly_linear(object_of([](std::size_t i) { return entry("\\u0041\\n" + std::to_string(i), i, i + 1); }),
                       4000);
}

TEST(HostileGrowth, IsLinearForOneNameOfEscapes) {
  expect_nearly_linear(
      [](std::size_t count) {
        std::string name;
        for (std::size_t i = 0; i < count; ++i) name += "\\u00e9";
        return "{" + entry(name, 0, 1) + "}";
      },
      100'000);
}

TEST(HostileGrowth, IsLinearForMetadata) {
  expect_nearly_linear(
      [](std::size_t count) {
        return "{\"__metadata__\":" +
               object_of([](std::size_t i) { return "\"k" + std::to_string(i) + "\":\"\""; })(count) + "}";
      },
      10'000);
}

TEST(HostileGrowth, IsLinearForUnknownFields) {
  expect_nearly_linear(
      [](std::size_t count) {
        return "{\"w\":" + object_of([](std::size_t i) { return "\"k" + std::to_string(i) + "\":0"; })(count) + "}";
      },
      20'000);
}

TEST(HostileGrowth, IsLinearForKeysInsideUnknownFields) {
  expect_nearly_linear(
      [](std::size_t count) {
        return "{\"w\":{\"x\":" + object_of([](std::size_t i) { return "\"k" + std::to_string(i) + "\":0"; })(count) +
               "}}";
      },
      20'000);
}

TEST(HostileGrowth, IsLinearForDigits) {
  expect_nearly_linear([](std::size_t count) { return "{\"w\":{\"x\":" + std::string(count, '1') + "}}"; }, 200'000);
}

TEST(HostileGrowth, IsLinearForOpenBrackets) {
  expect_nearly_linear([](std::size_t count) { return std::string(count, '{'); }, 200'000);
  expect_nearly_linear([](std::size_t count) { return "{\"w\":{\"x\":" + std::string(count, '['); }, 200'000);
}

TEST(HostileGrowth, IsLinearForSpaces) {
  expect_nearly_linear(
      [](std::size_t count) {
        return std::string(count, ' ') + "{" + std::string(count, '\n') + "}" + std::string(count, '\t');
      },
      200'000);
}

}  // namespace
}  // namespace ballast
