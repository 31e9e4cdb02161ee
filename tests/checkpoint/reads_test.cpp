// How many reads opening a file asks of its source, each of which is a journey if the source is far away.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <ballast/open.hpp>
#include <ballast/slice.hpp>

#include "builders/gguf_file.hpp"
#include "builders/safetensors_file.hpp"
#include "builders/torch_file.hpp"
#include "support/counting_source.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::CountingSource;

std::shared_ptr<const CountingSource> counted(const std::string& text, std::uint64_t bytes_per_round_trip = 0) {
  return std::make_shared<const CountingSource>(test::source_named("file", text), bytes_per_round_trip);
}

std::string safetensors_file(int tensors) {
  test::SafetensorsFile file;
  for (int i = 0; i < tensors; ++i) file.tensor(fmt::format("model.layers.{}.weight", i), "F32", {1000});
  return file.text();
}

TEST(Reads, AreTwoForASmallSafetensorsHeader) {
  const auto source = counted(safetensors_file(20));
  EXPECT_EQ(open(source).size(), 20u);
  EXPECT_EQ(source->requests(), 2u) << "the beginning and the end";
}

TEST(Reads, AreThreeForALargeSafetensorsHeader) {
  const auto source = counted(safetensors_file(1000));
  EXPECT_EQ(open(source).size(), 1000u);
  EXPECT_EQ(source->requests(), 3u) << "the beginning, the end, and the rest of the header";
}

TEST(Reads, AreOneForAFileThatTheFirstReadHoldsWhole) {
  const auto source = counted(test::SafetensorsFile().tensor("w", "F32", {10}).text());
  EXPECT_EQ(open(source).size(), 1u);
  EXPECT_EQ(source->requests(), 1u);
}

TEST(Reads, AreThreeForAGgufHeader) {
  test::GgufBuilder file;
  for (int i = 0; i < 500; ++i) file.tensor(fmt::format("blk.{}.weight", i), test::kF32, {1000});
  const auto source = counted(file.text());
  EXPECT_EQ(open(source).size(), 500u);
  EXPECT_EQ(source->requests(), 3u);
}

// Makes a file of `count` storages of `size` bytes each.
std::string torch_zip(int count, std::size_t size) {
  test::TorchZip file;
  std::vector<std::pair<std::string, test::py::Ops>> items;
  const auto numel = static_cast<std::int64_t>(size);
  for (int i = 0; i < count; ++i) {
    const auto storage = test::py::storage("Byte", std::to_string(i), numel);
    items.emplace_back(fmt::format("layer.{}", i), test::py::tensor(storage, 0, {numel}, {1}));
  }
  file.object(test::py::dict(items));
  for (int i = 0; i < count; ++i) file.record(std::to_string(i), std::string(size, static_cast<char>('a' + i % 26)));
  return file.text();
}

TEST(Reads, AreOneBatchForAllLocalHeadersOfAZip) {
  const auto source = counted(torch_zip(300, 2000));
  EXPECT_EQ(open(source).size(), 300u);
  EXPECT_EQ(source->batches, 1u);
  EXPECT_LE(source->reads, 5u) << "the beginning, the end, the pickle";
}

TEST(Reads, LeaveTheLocalHeadersOfAZipThatIsFarAwayForLater) {
  const std::string file = torch_zip(300, 20'000);
  const auto source = counted(file, 64 << 10);
  const Checkpoint checkpoint = open(source);
  EXPECT_EQ(checkpoint.size(), 300u);
  EXPECT_LE(source->requests(), 4u) << "the beginning, the end, the pickle";
  EXPECT_FALSE(checkpoint.at("layer.7").storage()->location()) << "only the local header says where it is";

  source->forget();
  EXPECT_EQ(test::text_of(checkpoint.at("layer.7")), std::string(20'000, 'h'));
  EXPECT_EQ(source->requests(), 1u) << "with its header";
  EXPECT_LT(source->bytes, 20'300u);
  const auto location = checkpoint.at("layer.7").storage()->location();
  ASSERT_TRUE(location);
  EXPECT_EQ(file.substr(location->offset, 3), "hhh");
}

TEST(Reads, OfALargeMemberFarAwayAreItsHeaderAndTheWantedBytes) {
  const auto source = counted(torch_zip(3, 200'000), 4096);
  const Checkpoint checkpoint = open(source);
  source->forget();
  const Tensor& tensor = checkpoint.at("layer.1");
  EXPECT_EQ(test::text_of(tensor.slice(parse_slice("1000:1003"))), "bbb");
  EXPECT_EQ(source->requests(), 2u);
  EXPECT_LT(source->bytes, 400u);
  EXPECT_EQ(test::text_of(tensor.slice(parse_slice("199999:"))), "b");
  EXPECT_EQ(source->requests(), 3u);
}

TEST(Reads, CheckAHeaderThatWasLeftForLaterWithTheMember) {
  std::string file = torch_zip(3, 20'000);
  const auto name = file.find("archive/data/1");
  ASSERT_NE(name, std::string::npos);
  file[name] = 'A';  // only in the local header, not in the directory
  EXPECT_ERROR(open(counted(file)), Errc::malformed, "the directory calls a member");
  const Checkpoint checkpoint = open(counted(file, 64 << 10));
  EXPECT_EQ(test::text_of(checkpoint.at("layer.0")).substr(0, 1), "a");
  EXPECT_ERROR(test::text_of(checkpoint.at("layer.1")), Errc::malformed, "the directory calls a member");
  EXPECT_ERROR(test::text_of(checkpoint.at("layer.1")), Errc::malformed, "the directory calls a member") << "each time";
}

TEST(Reads, InterpretAPickleWithoutAMagicOnce) {
  std::string text = "(d";
  for (int i = 0; i < 50'000; ++i) text += fmt::format("I{}\nI{}\ns", i, i);
  text += '.';
  const auto source = counted(text);
  EXPECT_EQ(open(source).values.size(), 50'000u);
  EXPECT_LT(source->bytes, text.size() + text.size() / 5) << "all of it once, and the end";
}

TEST(Reads, InterpretAPickleWithAMagicOnce) {
  std::vector<std::pair<std::string, test::py::Ops>> items;
  for (int i = 0; i < 20'000; ++i) items.emplace_back(fmt::format("key {}", i), test::py::integer(i));
  const std::string text = test::py::pickle(test::py::dict(items));
  const auto source = counted(text);
  EXPECT_EQ(open(source).values.size(), 20'000u);
  EXPECT_LT(source->bytes, text.size() + text.size() / 3) << "all of it once, and the end";
}

}  // namespace
}  // namespace ballast
