// The stream of the years before PyTorch 1.6, cut at every byte, and with a lie in every part.
#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include "builders/torch_file.hpp"
#include "formats/torch/read.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using py::dict;
using py::integer;
using py::Ops;
using test::raw;
using test::TorchStream;
using test::values_of;
using Floats = std::vector<float>;

const std::string kFourInStream = raw<float>({0, 1, 2, 3});

Ops view_id(const Ops& first, const Ops& view) {
  return py::persistent({first, py::global("torch", "FloatStorage"), py::text("a"), py::text("cpu"), integer(4), view});
}
// A view of the storage "a".
Ops view_of(std::int64_t offset, std::int64_t count) {
  return view_id(py::text("storage"), py::tuple({py::text("view"), integer(offset), integer(count)}));
}

TorchStream good() {
  TorchStream stream;
  stream
      .object(dict({{"w", py::tensor(py::storage("Float", "a", 4), 0, {2, 2}, {2, 1})},
                    {"n", py::tensor(py::storage("Long", "b", 1), 0, {}, {})},
                    {"epoch", integer(3)}}))
      .record("a", 4, kFourInStream)
      .record("b", 1, raw<std::int64_t>({7}));
  return stream;
}

TEST(TorchStream, ReadsWhatItSays) {
  const Checkpoint checkpoint = good().open();
  EXPECT_EQ(checkpoint.format, Format::torch_legacy);
  EXPECT_EQ(values_of<float>(checkpoint.at("w")), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(values_of<std::int64_t>(checkpoint.at("n")), std::vector<std::int64_t>{7});
  EXPECT_TRUE(checkpoint.notes.empty());
}

TEST(TorchStream, HonoursViewsOfStorages) {
  TorchStream stream;
  stream
      .object(dict({{"w", py::tensor(view_of(1, 3), 0, {3}, {1})},
                    {"v", py::tensor(view_of(2, 2), 1, {1}, {1})},
                    {"whole", py::tensor(view_id(py::text("storage"), py::none()), 0, {4}, {1})}}))
      .record("a", 4, kFourInStream);
  const Checkpoint checkpoint = stream.open();
  EXPECT_EQ(values_of<float>(checkpoint.at("w")), (Floats{1, 2, 3}));
  EXPECT_EQ(values_of<float>(checkpoint.at("v")), Floats{3});
  EXPECT_EQ(checkpoint.at("whole").numel(), 4u);
}

TEST(TorchStream, RefusesViewsThatReachOutsideTheirStorage) {
  const auto file = [](const Ops& id, std::int64_t count = 1) {
    TorchStream stream;
    stream.object(py::tensor(id, 0, {count}, {1})).record("a", 4, kFourInStream);
    return stream.open();
  };
  EXPECT_ERROR(file(view_of(3, 2)), Errc::malformed, "a view of storage \"a\" reaches outside it");
  EXPECT_ERROR(file(view_of(5, 0)), Errc::malformed, "reaches outside");
  EXPECT_ERROR(file(view_of(INT64_MAX, 1)), Errc::malformed, "reaches outside");
  EXPECT_ERROR(file(view_of(0, INT64_MAX)), Errc::malformed, "reaches outside");
  EXPECT_ERROR(file(view_of(-1, 2)), Errc::malformed, "the offset of a storage view is -1");
  EXPECT_ERROR(file(view_of(1, 2), 3), Errc::malformed, "reaches outside its storage of 8 bytes");
  EXPECT_ERROR(file(view_id(py::text("storage"), py::tuple({py::text("v"), integer(0)}))), Errc::malformed,
               "storage view: takes 3 arguments");
}

// Whatever is missing, there is an error. A file that ends before its second pickle is a pickle of its own.
TEST(TorchStream, RefusesToBeCutAnywhere) {
  const std::string whole = good().text();
  const std::size_t magic = TorchStream::magic().size();
  for (std::size_t size = magic + 1; size < whole.size(); ++size) {
    const auto error = BALLAST_ERROR_OF(test::open_text(whole.substr(0, size)));
    ASSERT_TRUE(error) << size;
    ASSERT_EQ(error->code(), Errc::malformed) << size << ": " << error->what();
  }
}

TEST(TorchStream, NotesBytesBehindItsEnd) {
  EXPECT_TRUE(test::has_note(test::open_text(good().text() + "more"), "4 bytes after the checkpoint are ignored"));
}

TEST(TorchStream, CountsTheGlobalsOfAPickleBehindItsEnd) {
  const std::string next = py::pickle(py::call("os", "system", {py::text("id")}));
  const Checkpoint checkpoint = test::open_text(good().text() + next);
  ASSERT_EQ(checkpoint.dangerous.size(), 1u);
  EXPECT_EQ(checkpoint.dangerous[0].module, "os");
  EXPECT_EQ(checkpoint.dangerous[0].offset, good().text().size() + 2);
  EXPECT_EQ(test::open_text(py::pickle(integer(1)) + next).dangerous.size(), 1u);
}

TEST(TorchStream, RefusesAListOfKeysThatLies) {
  const auto with_keys = [](const Ops& keys) {
    auto stream = good();
    stream.keys(keys);
    return stream.open();
  };
  EXPECT_ERROR(with_keys(py::dict({})), Errc::malformed, "the storage keys are no list");
  EXPECT_ERROR(with_keys(integer(2)), Errc::malformed, "the storage keys are no list");
  EXPECT_ERROR(with_keys(py::list({py::text("a")})), Errc::malformed, "storage \"b\" is not in the list of keys");
  EXPECT_ERROR(with_keys(py::list({py::text("a"), py::text("a")})), Errc::malformed, "");
  EXPECT_ERROR(with_keys(py::list({py::text("a"), py::text("c")})), Errc::malformed,
               "storage \"c\" is used by no tensor");
  EXPECT_ERROR(with_keys(py::list({integer(1), py::text("b")})), Errc::malformed, "");
  EXPECT_ERROR(with_keys(py::list({py::none()})), Errc::malformed, "");
  EXPECT_ERROR(with_keys(py::list({py::text("a"), py::text("b"), py::text("a")})), Errc::malformed, "");
  EXPECT_ERROR(with_keys(py::list({py::text("b"), py::text("a")})), Errc::malformed, "");

  TorchStream twice;
  twice.object(py::tensor(py::storage("Float", "a", 4), 0, {1}, {1}))
      .record("a", 4, kFourInStream)
      .record("a", 4, kFourInStream);
  EXPECT_ERROR(twice.open(), Errc::malformed, "storage \"a\" is listed twice");
}

TEST(TorchStream, IgnoresIdsThatAreNotStorages) {
  const Ops other = py::text("somebody else's") + "Q";
  TorchStream stream;
  stream.object(dict({{"id", other}, {"epoch", integer(3)}}));
  EXPECT_TRUE(stream.open().tensors.empty());
  EXPECT_TRUE(test::open_text(py::pickle(dict({{"id", other}, {"epoch", integer(3)}}))).tensors.empty());
}

TEST(TorchStream, RefusesACountThatLies) {
  const auto with_count = [](std::uint64_t count) {
    TorchStream stream;
    stream.object(py::tensor(py::storage("Float", "a", 4), 0, {1}, {1})).record("a", count, kFourInStream);
    return stream.open();
  };
  EXPECT_NO_THROW(with_count(4));
  EXPECT_ERROR(with_count(5), Errc::malformed, "has 5 elements of 4 bytes, more than the file has left");
  EXPECT_ERROR(with_count(3), Errc::malformed, "storage \"a\" has 16 bytes in the pickle, but 12 in the file");
  EXPECT_ERROR(with_count(0), Errc::malformed, "but 0 in the file");
  EXPECT_ERROR(with_count(UINT64_MAX), Errc::malformed, "more than the file has left");
  EXPECT_ERROR(with_count(0x4000000000000001), Errc::malformed, "more than the file has left");
  for (const std::uint64_t nearly : {3u, 5u}) {
    TorchStream stream;
    stream.object(py::tensor(py::storage("Byte", "a", 4), 0, {1}, {1})).record("a", nearly, std::string(nearly, 'x'));
    EXPECT_ERROR(stream.open(), Errc::malformed, "has 4 bytes in the pickle, but " + std::to_string(nearly));
  }
}

// The tensors that use a storage state the width of its elements. They must agree.
TEST(TorchStream, RefusesTwoOpinionsAboutOneStorage) {
  TorchStream stream;
  stream
      .object(py::list({py::tensor(py::storage("Float", "a", 4), 0, {1}, {1}),
                        py::tensor(py::storage("Double", "a", 4), 0, {4}, {1})}))
      .record("a", 4, kFourInStream);
  EXPECT_ERROR(stream.open(), Errc::malformed, "storage \"a\" has 32 bytes in the pickle, but 16 in the file");
}

TEST(TorchStream, IsABarePickleWithoutItsMagicNumber) {
  const auto parts = good().parts();
  EXPECT_TRUE(test::has_note(test::open_text(parts[3]), "\"w\" is left out: a storage that lies in no file"));
  const Checkpoint version = test::open_text(parts[1] + parts[2] + parts[3] + parts[4] + parts[5]);
  EXPECT_EQ(version.format, Format::pickle);
  EXPECT_TRUE(version.tensors.empty());
}

TEST(TorchStream, KnowsWhereItsStoragesEnd) {
  const auto extent = [](const std::string& text) { return torch::stream_extent(test::source_of(text), Limits{}); };
  const std::string whole = good().text();
  const auto found = extent(whole + "rest");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->end, whole.size());
  EXPECT_EQ(found->pickles_end, whole.size() - 2 * 8 - 16 - 8);
  EXPECT_FALSE(extent(whole.substr(0, whole.size() - 1)));
  EXPECT_FALSE(extent(py::pickle(integer(1))));
}

}  // namespace
}  // namespace ballast
