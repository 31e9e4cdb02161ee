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

// Remembers what it was told about bytes that nobody needs again.
class ReleasedStorage final : public Storage {
 public:
  std::uint64_t size_bytes() const override { return 96; }
  void read(std::uint64_t, std::span<std::byte>) const override {}
  void release(std::uint64_t offset, std::uint64_t size) const override { released.push_back({offset, size}); }
  mutable std::vector<ByteRange> released;
};

TEST(Release, GivesBackTheRowsOfAViewThatLieOneAfterTheOther) {
  const auto storage = std::make_shared<ReleasedStorage>();
  const auto released = [&](const Tensor& tensor, ByteRange range) {
    storage->released.clear();
    tensor.release(range);
    return storage->released;
  };
  using Ranges = std::vector<ByteRange>;
  const Tensor rows(DType::u8, {3, 4, 8}, storage, 0);
  const std::vector<std::size_t> inside = {0, 2, 1}, across = {1, 0, 2};
  const Tensor turned = rows.permute(inside);
  EXPECT_EQ(released(rows, {5, 40}), (Ranges{{5, 40}}));
  EXPECT_EQ(released(turned, {32, 64}), (Ranges{{32, 64}}));
  EXPECT_EQ(released(turned, {0, 40}), (Ranges{{0, 64}})) << "a row that is cut goes, too";
  EXPECT_EQ(released(turned, {40, 56}), (Ranges{{32, 64}}));
  EXPECT_EQ(released(turned, {0, 16}), Ranges()) << "others are at the same row";
  EXPECT_EQ(released(turned, {16, 16}), (Ranges{{0, 32}})) << "its end";
  EXPECT_EQ(released(rows.slice(parse_slice("1:")).permute(inside), {0, 32}), (Ranges{{32, 32}}));
  EXPECT_EQ(released(rows.permute(across), {0, 96}), Ranges()) << "rows that lie between each other";
  EXPECT_EQ(released(rows.slice(parse_slice(":, :, :4")), {0, 48}), Ranges()) << "bytes of somebody else between them";
  EXPECT_EQ(released(turned, {0, 0}), Ranges());
  const Tensor gathered(DType::u8, {12, 8}, gathered_storage(turned));
  EXPECT_EQ(released(gathered, {32, 32}), (Ranges{{32, 32}})) << "through a storage that reads in the view's order";
}

}  // namespace
}  // namespace ballast
