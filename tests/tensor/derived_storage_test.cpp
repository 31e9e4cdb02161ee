// Bytes that others are made of are asked for in one call, and announced, through every layer of storages.
#include "tensor/derived_storage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include <ballast/slice.hpp>

#include "support/counting_source.hpp"
#include "tensor/concat_storage.hpp"
#include "tensor/decoded_storage.hpp"
#include "tensor/source_storage.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast {
namespace {

using test::CountingSource;

// 1000 floats behind 10 bytes of something else.
struct Floats {
  Floats() {
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), 0.0f);
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    source = std::make_shared<CountingSource>(test::source_named("file", "0123456789" + bytes));
    tensor = Tensor(DType::f32, {1000}, source_storage(source, 10, bytes.size()));
  }
  std::shared_ptr<CountingSource> source;
  Tensor tensor;
};

// Reads ranges of the contiguous form, by one call for all of them and by one call for each.
void expect_one_request(const Tensor& tensor, const CountingSource& source) {
  const std::uint64_t size = tensor.nbytes();
  const std::vector<ByteRange> ranges = {{0, 7}, {size / 2 + 1, 40}, {100, 1}, {size - 9, 9}, {20, 0}};
  std::vector<std::vector<std::byte>> together, alone;
  std::vector<ReadRange> wanted;
  for (const ByteRange& range : ranges) {
    together.emplace_back(range.size);
    alone.emplace_back(range.size);
    tensor.read(range.offset, alone.back());
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) wanted.push_back({ranges[i].offset, together[i]});
  source.forget();
  tensor.read_many(wanted);
  EXPECT_EQ(together, alone);
  EXPECT_EQ(source.batches, 1u);
  EXPECT_EQ(source.reads, 0u);
}

TEST(ReadMany, PassesThroughViewsAndCasts) {
  const Floats floats;
  expect_one_request(floats.tensor, *floats.source);
  expect_one_request(floats.tensor.slice(parse_slice("100:900")), *floats.source);
  expect_one_request(floats.tensor.to(DType::bf16), *floats.source);
  expect_one_request(floats.tensor.slice(parse_slice("3:")).to(DType::f64).to(DType::f16), *floats.source);
}

TEST(ReadMany, PassesThroughBlocks) {
  const auto source = std::make_shared<CountingSource>(test::source_named("file", std::string(34 * 64, 7)));
  const Tensor blocks(DType::q8_0, {64 * 32}, source_storage(source, 0, 34 * 64));
  expect_one_request(Tensor(DType::f32, {64 * 32}, decoded_storage(blocks, DType::f32)), *source);
}

TEST(ReadMany, RefusesRangesOutsideOfATensor) {
  const Floats floats;
  std::vector<std::byte> out(2);
  const ReadRange ranges[] = {{0, out}, {3999, out}};
  EXPECT_THROW(floats.tensor.read_many(ranges), Error);
  EXPECT_THROW(floats.tensor.to(DType::bf16).read_many(ranges), Error);
}

TEST(Prefetch, AnnouncesTheBytesThatTheRangeIsMadeOf) {
  const Floats floats;
  const auto announced = [&](const Tensor& tensor, ByteRange range) {
    floats.source->forget();
    tensor.prefetch(std::span(&range, 1));
    return floats.source->announced();
  };
  using Ranges = std::vector<ByteRange>;
  EXPECT_EQ(announced(floats.tensor, {8, 4}), (Ranges{{18, 4}}));
  EXPECT_EQ(announced(floats.tensor.slice(parse_slice("5:")), {8, 4}), (Ranges{{38, 4}}));
  EXPECT_EQ(announced(floats.tensor.to(DType::bf16), {3, 2}), (Ranges{{14, 8}})) << "two elements are cut";
  const Tensor negative(DType::f32, {1000}, transformed_storage(floats.tensor, 4, "", [](auto) {}));
  EXPECT_EQ(announced(negative, {1, 1}), (Ranges{{10, 4}}));
  const Tensor both = concatenated({floats.tensor, floats.tensor.slice(parse_slice("10:20"))}, 0);
  EXPECT_EQ(announced(both, {3996, 8}), (Ranges{{4006, 4}, {50, 4}}));
  EXPECT_EQ(announced(floats.tensor.slice(parse_slice("::2")), {0, 100}), (Ranges{{10, 3996}})) << "all around it";
  EXPECT_EQ(announced(floats.tensor.slice(parse_slice("::100")), {0, 8}), Ranges()) << "more than is worth it";
}

}  // namespace
}  // namespace ballast
