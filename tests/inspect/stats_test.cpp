// stats: norms, outliers, quantiles and channels, against plain loops over a copy of the values.
#include <ballast/stats.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;

constexpr double kInf = std::numeric_limits<double>::infinity();
const std::vector<double> kQuantiles = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};

template <class T>
Tensor tensor_of(DType dtype, Shape shape, const std::vector<T>& values) {
  return Tensor::from_values<T>(dtype, std::move(shape), values);
}

std::vector<float> normal(std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> distribution(0.1F, 0.5F);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

// The definition: the first of the sorted values with at least this share of them up to itself.
void expect_quantiles(const Tensor& tensor) {
  std::vector<double> sorted = tensor.values<double>();
  std::erase_if(sorted, [](double value) { return std::isnan(value); });
  std::ranges::sort(sorted);
  for (const unsigned threads : {1U, 3U}) {
    const Stats result = stats(tensor, {.quantiles = kQuantiles, .threads = threads});
    ASSERT_EQ(result.quantiles.size(), kQuantiles.size());
    for (const auto& [quantile, value] : result.quantiles) {
      const double rank = std::ceil(quantile * static_cast<double>(sorted.size())) - 1;
      EXPECT_EQ(value, sorted[static_cast<std::size_t>(std::max(rank, 0.0))])
          << name(tensor.dtype()) << " " << quantile;
    }
  }
}

TEST(Quantiles, AreThoseOfASortedCopyInEveryDtype) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (!type.in_safetensors || type.kind == DTypeKind::complex) continue;
    std::vector<std::byte> bytes = test::some_bytes(*bytes_of(type.dtype, 12'000), 3);
    if (type.dtype == DType::boolean)
      for (std::byte& byte : bytes) byte &= std::byte{1};
    expect_quantiles(Tensor::from_bytes(type.dtype, {12'000}, bytes));
  }
}

TEST(Quantiles, OfManyPartsAreExact) {
  const auto values = normal(3 << 20);
  const Tensor tensor = tensor_of(DType::f32, {values.size()}, values);
  expect_quantiles(tensor);
  expect_quantiles(tensor.to(DType::bf16));
  expect_quantiles(tensor.to(DType::f64));
}

TEST(Quantiles, TellNeighboursApart) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(1 + i * std::numeric_limits<double>::epsilon());
  std::ranges::reverse(values);
  expect_quantiles(tensor_of(DType::f64, {1000}, values));
}

TEST(Quantiles, LeaveOutNanAndKeepInfinities) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor tensor = tensor_of<float>(DType::f32, {7}, {nan, -inf, 1, -nan, inf, 2, 1e-45F});
  const Stats result = stats(tensor, {.quantiles = {0, 0.5, 1}});
  EXPECT_EQ(result.quantiles[0].value, -kInf);
  EXPECT_EQ(result.quantiles[1].value, 1);
  EXPECT_EQ(result.quantiles[2].value, kInf);
}

TEST(Quantiles, OfBothZerosAreZero) {
  const Stats result = stats(tensor_of<float>(DType::f32, {3}, {-0.0F, 0.0F, -0.0F}), {.quantiles = {0, 1}});
  EXPECT_FALSE(std::signbit(*result.quantiles[0].value));
  EXPECT_FALSE(std::signbit(result.min));
}

TEST(Quantiles, OfNothingAreEmpty) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Tensor& tensor : {Tensor(), tensor_of<float>(DType::f32, {2}, {nan, nan})})
    EXPECT_EQ(stats(tensor, {.quantiles = {0.5}}).quantiles[0].value, std::nullopt);
  EXPECT_EQ(stats(tensor_of<float>(DType::f32, {}, {3}), {.quantiles = {0.5}}).quantiles[0].value, 3);
}

TEST(Quantiles, OutOfRangeAreRefused) {
  for (const double wrong : {-0.1, 1.5, std::nan("")})
    EXPECT_ERROR(stats(Tensor(), {.quantiles = {0.5, wrong}}), Errc::invalid_argument, "is no quantile");
  EXPECT_ERROR(stats(Tensor(), {.quantiles = std::vector<double>(129)}), Errc::invalid_argument, "at most 128");
  EXPECT_EQ(stats(tensor_of<float>(DType::f32, {2}, {1, 2}), {.quantiles = std::vector<double>(128)}).quantiles.size(),
            128u);
}

TEST(Norms, AreThoseOfTheFiniteValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Stats result = stats(tensor_of<float>(DType::f32, {5}, {3, -4, nan, inf, 0}));
  EXPECT_DOUBLE_EQ(result.l1, 7);
  EXPECT_DOUBLE_EQ(result.l2, 5);
  EXPECT_DOUBLE_EQ(result.max_abs, 4);
  EXPECT_DOUBLE_EQ(result.rms, 5 / std::sqrt(3));
  EXPECT_EQ(result.first_nan, 2u);
  EXPECT_EQ(result.first_infinity, 3u);
}

TEST(Outliers, AreFartherThanSixDeviationsFromTheMean) {
  auto values = normal(5 << 20);
  for (const std::size_t i : {0U, 1'000'000U, (5U << 20) - 1}) values[i] = 40;
  values[77] = -std::numeric_limits<float>::infinity();
  const Tensor tensor = tensor_of(DType::f32, {values.size()}, values);
  EXPECT_EQ(stats(tensor).outliers, std::nullopt);
  EXPECT_EQ(stats(tensor, {.outliers = true}).outliers, 3u);
  EXPECT_EQ(stats(tensor, {.bins = 4, .outliers = true, .quantiles = {0.5}, .threads = 3}).outliers, 3u);
  EXPECT_EQ(stats(Tensor(), {.outliers = true}).outliers, 0u);
}

void expect_channels(const Tensor& tensor, std::int64_t axis, std::uint64_t channels, std::uint64_t inner,
                     unsigned threads) {
  const std::vector<double> values = tensor.values<double>();
  std::vector<std::vector<double>> of_channels(channels);
  for (std::size_t i = 0; i < values.size(); ++i) of_channels[i / inner % channels].push_back(values[i]);
  const Stats result = stats(tensor, {.axis = axis, .threads = threads});
  ASSERT_EQ(result.channels.size(), channels);
  for (std::size_t i = 0; i < channels; ++i) {
    const ChannelStats& channel = result.channels[i];
    std::vector<double>& finite = of_channels[i];
    EXPECT_EQ(channel.nans, std::ranges::count_if(finite, [](double x) { return std::isnan(x); }));
    EXPECT_EQ(channel.infinities, std::ranges::count_if(finite, [](double x) { return std::isinf(x); }));
    std::erase_if(finite, [](double x) { return !std::isfinite(x); });
    ASSERT_EQ(channel.finite, finite.size());
    if (finite.empty()) continue;
    double mean = 0, m2 = 0;
    for (const double x : finite) mean += x / static_cast<double>(finite.size());
    for (const double x : finite) m2 += (x - mean) * (x - mean) / static_cast<double>(finite.size());
    EXPECT_EQ(channel.min, *std::ranges::min_element(finite));
    EXPECT_EQ(channel.max, *std::ranges::max_element(finite));
    EXPECT_NEAR(channel.mean, mean, 1e-12);
    EXPECT_NEAR(channel.std, std::sqrt(m2), 1e-9);
  }
}

TEST(Channels, AreThoseOfAnyDimension) {
  auto values = normal(30 * 20 * 40);
  values[0] = values[41] = std::numeric_limits<float>::quiet_NaN();
  values[1234] = std::numeric_limits<float>::infinity();
  const Tensor tensor = tensor_of(DType::f32, {30, 20, 40}, values);
  expect_channels(tensor, 0, 30, 800, 1);
  expect_channels(tensor, 1, 20, 40, 1);
  expect_channels(tensor, 2, 40, 1, 1);
  expect_channels(tensor, -1, 40, 1, 3);
  expect_channels(tensor, -3, 30, 800, 3);
  expect_channels(tensor.to(DType::bf16), -1, 40, 1, 3);
  expect_channels(tensor_of(DType::f32, {24'000}, values), 0, 24'000, 1, 2);
}

TEST(Channels, OfManyPartsDoNotDependOnTheNumberOfThreads) {
  const auto values = normal(3'000'000);  // 12 MB; parts end inside rows
  const Tensor tensor = tensor_of(DType::f32, {1000, 3, 1000}, values);
  expect_channels(tensor, 1, 3, 1000, 2);
  for (const std::int64_t axis : {0, 1, 2}) {
    const Stats one = stats(tensor, {.axis = axis, .threads = 1}), many = stats(tensor, {.axis = axis, .threads = 3});
    for (std::size_t i = 0; i < one.channels.size(); ++i) {
      EXPECT_EQ(one.channels[i].mean, many.channels[i].mean);
      EXPECT_EQ(one.channels[i].std, many.channels[i].std);
    }
  }
}

TEST(Channels, KeepTheirSpreadBesideALargeMean) {
  std::vector<double> values(4000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1e9 + static_cast<double>(i / 2 % 2);
  const Stats result = stats(tensor_of(DType::f64, {2000, 2}, values), {.axis = 1});
  for (const ChannelStats& channel : result.channels) EXPECT_NEAR(channel.std, 0.5, 1e-6);
}

TEST(Channels, OfADimensionThatIsNotThereAreRefused) {
  const Tensor matrix = tensor_of<float>(DType::f32, {2, 2}, {1, 2, 3, 4});
  for (const std::int64_t axis : {std::int64_t{2}, std::int64_t{-3}, std::numeric_limits<std::int64_t>::min()})
    EXPECT_ERROR(stats(matrix, {.axis = axis}), Errc::invalid_argument, "has no dimension");
  EXPECT_ERROR(stats(tensor_of<float>(DType::f32, {}, {1}), {.axis = 0}), Errc::invalid_argument, "has no dimension");
  const Tensor wide(DType::u8, {(1 << 19) + 1}, memory_storage(std::vector<std::byte>((1 << 19) + 1)));
  EXPECT_ERROR(stats(wide, {.axis = 0}), Errc::limit, "channels");
}

TEST(Channels, OfAnEmptyTensorAreEmpty) {
  const Tensor empty(DType::f32, {0, 3}, memory_storage(std::vector<std::byte>()));
  EXPECT_EQ(stats(empty, {.axis = 0}).channels.size(), 0u);
  ASSERT_EQ(stats(empty, {.axis = 1}).channels.size(), 3u);
  EXPECT_EQ(stats(empty, {.axis = 1}).channels[2].finite, 0u);
}

TEST(StatsOfACheckpoint, AreThoseOfItsTensors) {
  const auto values = normal(2 << 20);
  Checkpoint checkpoint;
  checkpoint.tensors.insert("large", tensor_of(DType::f32, {1 << 19, 4}, values));
  checkpoint.tensors.insert("meta", Tensor(DType::f32, {2}, meta_storage(8)));
  checkpoint.tensors.insert("small", tensor_of<float>(DType::f32, {3}, {1, 2, 3}));
  checkpoint.tensors.insert("complex", tensor_of<float>(DType::c64, {1}, {1, 2}));
  checkpoint.tensors.insert("blocks",
                            tensor_of<float>(DType::f32, {32}, std::vector<float>(32, 2)).to(DType::q8_0).realize());
  for (const StatsOptions& options :
       {StatsOptions{}, StatsOptions{.bins = 3, .outliers = true, .quantiles = {0.5}, .axis = 1}}) {
    const auto all = stats(checkpoint, options);
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(all[1].why_not, "a meta tensor has no values");
    EXPECT_FALSE(all[3].stats);
    EXPECT_EQ(all[0].stats->mean, stats(checkpoint.at("large")).mean);
    EXPECT_EQ(all[2].stats->mean, 2);
    EXPECT_NEAR(all[4].stats->max, 2, 0.01);
    EXPECT_EQ(all[0].stats->channels.size(), options.axis ? 4u : 0u);
  }
}

}  // namespace
}  // namespace ballast
