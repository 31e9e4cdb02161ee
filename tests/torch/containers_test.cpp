// The containers that PyTorch has used, each as it should be and as it should not be: zip, TorchScript, tar, bare
// pickle.
#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include "builders/tar_file.hpp"
#include "builders/torch_file.hpp"
#include "formats/pickle/graph.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using py::dict;
using py::integer;
using py::Ops;
using test::raw;
using test::TarFile;
using test::TorchZip;
using test::u32;
using test::u64;
using test::values_of;
using test::ZipFile;
using Floats = std::vector<float>;

const std::string kFour = raw<float>({0, 1, 2, 3});
Ops four() { return py::tensor(py::storage("Float", "0", 4), 0, {4}, {1}); }
std::string object_pickle() { return py::pickle(dict({{"w", four()}})); }

void expect_w(const Checkpoint& checkpoint, Format format = Format::torch_zip) {
  EXPECT_EQ(checkpoint.format, format);
  EXPECT_EQ(values_of<float>(checkpoint.at("w")), (Floats{0, 1, 2, 3}));
}

TEST(TorchZip, IsReadWhateverItsFolderIsCalled) {
  for (const char* folder : {"archive/", "model.with.dots/", "", "ß/"}) {
    SCOPED_TRACE(folder);
    const std::string prefix = folder;
    expect_w(test::open_text(
        ZipFile().stored(prefix + "data.pkl", object_pickle()).stored(prefix + "data/0", kFour).text()));
  }
}

TEST(TorchZip, IsReadWhenSomebodyZippedItAgain) {
  expect_w(test::open_text(ZipFile().deflated("a/data.pkl", object_pickle()).deflated("a/data/0", kFour).text()));
  expect_w(test::open_text(ZipFile().stored("a/data/0", kFour).deflated("a/data.pkl", object_pickle()).text()));
}

TEST(TorchZip, TakesNoRecordFromAnotherFolder) {
  EXPECT_ERROR(test::open_text(ZipFile().stored("a/data.pkl", object_pickle()).stored("b/data/0", kFour).text()),
               Errc::malformed, "has no member \"a/data/0\"");
  EXPECT_ERROR(test::open_text(ZipFile().stored("a/data.pkl", object_pickle()).stored("a/data/00", kFour).text()),
               Errc::malformed, "has no member \"a/data/0\"");
}

TEST(TorchZip, NamesTheMemberAndTheByteOfWhatIsWrong) {
  TorchZip zip;
  zip.member("data.pkl", "\x80\x02\xff.");
  const auto error = BALLAST_ERROR_OF(zip.open());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Errc::malformed);
  EXPECT_EQ(error->where(), "file!/archive/data.pkl");
  EXPECT_EQ(error->offset(), 2u);
}

TEST(TorchZip, WithTwoCheckpointsIsAnArchiveOfThem) {
  const Checkpoint checkpoint = test::open_text(
      ZipFile().stored("a/data.pkl", py::pickle(integer(1))).stored("b/data.pkl", py::pickle(integer(2))).text());
  EXPECT_EQ(checkpoint.format, Format::archive);
  ASSERT_EQ(checkpoint.values.size(), 2u);
  EXPECT_EQ(checkpoint.values[0].path, "a/data.pkl");
}

TEST(TorchScript, ListsItsConstantsAndIgnoresItsCode) {
  const Ops constants = py::tuple({py::tensor(py::storage("Float", "0", 4), 2, {2}, {1})});
  TorchZip zip;
  zip.object(py::build(py::global("__torch__", "Net") + ")\x81", dict({{"w", four()}})))
      .record("0", kFour)
      .member("constants.pkl", py::pickle(constants))
      .member("constants/0", kFour)
      .member("code/__torch__.py", "import os; os.system('id')");
  const Checkpoint checkpoint = zip.open();
  expect_w(checkpoint, Format::torchscript);
  EXPECT_EQ(values_of<float>(checkpoint.at("constants.0")), (Floats{2, 3}));
  EXPECT_TRUE(checkpoint.dangerous.empty());
  EXPECT_ERROR(zip.open({.safety = Safety::strict}), Errc::unsafe, "a TorchScript archive");
}

TEST(TorchPickle, HoldsValuesAndArraysButNoStorages) {
  EXPECT_EQ(test::open_text(py::pickle(dict({{"a", integer(1)}}))).format, Format::pickle);
  const Checkpoint lost = test::open_text(object_pickle());
  EXPECT_TRUE(lost.tensors.empty());
  EXPECT_TRUE(test::has_note(lost, "\"w\" is left out: a storage that lies in no file"));
  const Checkpoint other = test::open_text(py::pickle(dict({{"a", py::text("no storage") + "Q"}})));
  EXPECT_FALSE(test::has_note(other, "lies in no file"));
}

TEST(TorchPickle, HoldsFilesInTextsUpToALimit) {
  const std::string text(pickle::kNearBytes + 1, 'x');
  const Ops bytes = py::call("_codecs", "encode", {py::text(text), py::text("latin1")});
  const std::string file = py::pickle(dict({{"w", py::call("torch.storage", "_load_from_bytes", {bytes})}}));
  const auto said_with = [&](std::uint64_t most) {
    OpenOptions options;
    options.limits.max_inflated_bytes = most;
    std::string said;
    const auto error = test::error_of([&] {
      for (const Note& note : test::open_text(file, options).notes) said += note.text;
    });
    return error ? std::string(error->what()) : said;
  };
  const std::string_view too_much = "bytes of text hold a file of their own";
  EXPECT_EQ(said_with(text.size()).find(too_much), std::string::npos) << said_with(text.size());
  EXPECT_NE(said_with(text.size() - 1).find(too_much), std::string::npos) << said_with(text.size() - 1);
}

TEST(TorchPickle, OfAnOldProtocolIsRecognisedByRunningIt) {
  EXPECT_EQ(test::open_text("(dp0\nS'a'\np1\nI1\ns.").values.size(), 1u);
  EXPECT_ANY_THROW(test::open_text("(dp0\nS'a'\np1\nI1\ns"));
}

TEST(TorchPickle, IsRefusedByWeightsOnlyIfItNamesSomethingElse) {
  const std::string path = py::pickle(py::call("pathlib", "PosixPath", {py::text("a")}));
  EXPECT_NO_THROW(test::open_text(path));
  EXPECT_ERROR(test::open_text(path, {.safety = Safety::strict}), Errc::unsafe,
               "names \"pathlib.PosixPath\", which weights_only does not allow");
}

// The members of the tar of 2016, each with its content in the order in which PyTorch 0.1 wrote it.
struct OldTar {
  std::string storages = py::pickle(integer(1)) +
                         py::pickle(py::tuple({integer(10), py::text("cpu"), py::global("torch", "FloatStorage")})) +
                         u64(4) + kFour + py::pickle(py::list({}));
  std::string tensors = py::pickle(integer(1)) + tensor(20, 10, {2, 2}, {2, 1}, 0);
  std::string object = py::pickle(dict({{"w", integer(20) + "Q"}}));

  static std::string tensor(std::int64_t key, std::int64_t storage, const std::vector<std::uint64_t>& shape,
                            const std::vector<std::uint64_t>& strides, std::uint64_t offset) {
    std::string text = py::pickle(py::tuple({integer(key), integer(storage), py::global("torch", "FloatTensor")}));
    text += u32(shape.size()) + "junk";
    for (const std::uint64_t size : shape) text += u64(size);
    for (const std::uint64_t stride : strides) text += u64(stride);
    return text + u64(offset);
  }
  std::string text() const {
    return TarFile()
        .file("sys_info", py::pickle(dict({{"little_endian", py::boolean(true)}})))
        .file("pickle", object)
        .file("tensors", tensors)
        .file("storages", storages)
        .text();
  }
  Checkpoint open() const { return test::open_text(text()); }
};

TEST(TorchTar, ReadsTensorsByTheirKeys) {
  const Checkpoint checkpoint = OldTar().open();
  EXPECT_EQ(checkpoint.format, Format::torch_tar);
  EXPECT_EQ(values_of<float>(checkpoint.at("w")), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(checkpoint.at("w").shape(), (Shape{2, 2}));
}

TEST(TorchTar, KnowsTheTextKeysOfPythonTwo) {
  OldTar tar;
  tar.storages = py::pickle(integer(1)) +
                 py::pickle(py::tuple({py::text("s"), py::text("cpu"), py::global("torch", "FloatStorage")})) + u64(4) +
                 kFour + py::pickle(py::list({}));
  tar.tensors = py::pickle(integer(1)) +
                py::pickle(py::tuple({py::text("t"), py::text("s"), py::global("torch", "FloatTensor")})) + u32(1) +
                "junk" + u64(4) + u64(1) + u64(0);
  tar.object = py::pickle(dict({{"w", py::text("t") + "Q"}}));
  EXPECT_EQ(values_of<float>(tar.open().at("w")), (Floats{0, 1, 2, 3}));
}

TEST(TorchTar, HonoursViewsOfStorages) {
  OldTar tar;
  tar.storages.resize(tar.storages.size() - py::pickle(py::list({})).size());
  const std::string head = tar.storages;
  tar.storages = head + py::pickle(py::list({py::integers({11, 10, 1, 2})}));
  tar.tensors = py::pickle(integer(1)) + OldTar::tensor(20, 11, {2}, {1}, 0);
  EXPECT_EQ(values_of<float>(tar.open().at("w")), (Floats{1, 2}));

  const auto refused = [&](const Ops& view, const char* why) {
    tar.storages = head + py::pickle(py::list({view}));
    EXPECT_ERROR(tar.open(), Errc::malformed, why);
  };
  refused(py::integers({11, 10, 3, 2}), "it reaches outside the whole");
  refused(py::integers({11, 10, -1, 2}), "the offset is -1");
  refused(py::integers({11, 10, INT64_MAX, 1}), "it reaches outside the whole");
  refused(py::integers({11, 10, 0, INT64_MAX}), "it reaches outside the whole");
  refused(py::integers({11, 12, 0, 1}), "the whole is no storage of this file");
  refused(py::integers({10, 10, 0, 1}), "storage \"10\" is there twice");
  refused(py::integers({11, 10}), "storage view: takes 4 arguments");
  refused(integer(3), "takes a tuple");
}

TEST(TorchTar, RefusesStoragesThatLie) {
  const auto refused = [](const std::string& storages, const char* why) {
    OldTar tar;
    tar.storages = storages;
    EXPECT_ERROR(tar.open(), Errc::malformed, why);
  };
  const std::string one = py::pickle(integer(1));
  const auto entry = [](const Ops& type) { return py::pickle(py::tuple({integer(10), py::text("cpu"), type})); };
  const Ops floats = py::global("torch", "FloatStorage");
  refused("", "");
  refused(py::pickle(integer(-1)), "the number of storages makes no sense");
  refused(py::pickle(integer(INT64_MAX)), "the number of storages makes no sense");
  refused(py::pickle(py::text("1")), "the number of storages makes no sense");
  refused(py::pickle(integer(9)) + "........", "the number of storages makes no sense");
  refused(py::pickle(integer(8)) + "........", "STOP finds nothing");
  refused(one + entry(floats) + u64(5) + kFour, "has 5 elements, more than the member has left");
  refused(one + entry(floats) + u64(0x4000000000000001) + kFour, "more than the member has left");
  refused(one + entry(floats) + u64(UINT64_MAX) + kFour, "the number of elements is negative");
  refused(one + entry(py::global("torch", "OddStorage")) + u64(4) + kFour, "the class of the storage is unknown");
  refused(one + entry(integer(1)) + u64(4) + kFour, "the class of the storage is unknown");
  refused(one + entry(py::global("torch", "UntypedStorage")) + u64(4) + kFour, "the class of the storage is unknown");
  refused(one + py::pickle(py::tuple({integer(10)})) + u64(4) + kFour, "storage: takes 3 arguments");
  refused(one + entry(floats) + "xx", "");
  refused(py::pickle(integer(2)) + entry(floats) + u64(4) + kFour + entry(floats) + u64(4) + kFour, "is there twice");
}

TEST(TorchTar, RefusesTensorsThatLie) {
  const auto refused = [](const std::string& tensor, const char* why) {
    OldTar tar;
    tar.tensors = py::pickle(integer(1)) + tensor;
    EXPECT_ERROR(tar.open(), Errc::malformed, why);
  };
  refused(OldTar::tensor(20, 10, {5}, {1}, 0), "reaches outside its storage of 16 bytes");
  refused(OldTar::tensor(20, 10, {1}, {1}, 4), "reaches outside");
  refused(OldTar::tensor(20, 10, {2}, {INT64_MAX}, 0), "reaches outside");
  refused(OldTar::tensor(20, 10, {UINT64_MAX}, {1}, 0), "the size is negative");
  refused(OldTar::tensor(20, 10, {std::uint64_t{1} << 63}, {1}, 0), "the size is negative");
  refused(OldTar::tensor(20, 10, {2}, {UINT64_MAX}, 1), "the stride is negative");
  refused(OldTar::tensor(20, 10, {1}, {1}, UINT64_MAX), "the offset is negative");
  refused(OldTar::tensor(20, 12, {1}, {1}, 0), "its storage is not in this file");
  refused(OldTar::tensor(20, 10, {1}, {1}, 0).substr(0, 59), "");
  const std::string head = py::pickle(py::tuple({integer(20), integer(10), py::global("torch", "FloatTensor")}));
  refused(head + u32(65) + "junk", "the tensor has 65 dimensions");
  refused(head + u32(UINT32_MAX) + "junk", "dimensions");
  refused(head, "");
  refused(py::pickle(py::tuple({integer(20), integer(10)})) + u32(0) + "junk" + u64(0), "tensor: takes 3 arguments");

  OldTar tar;
  tar.tensors = py::pickle(integer(1)) +
                OldTar::tensor(20, 10, std::vector<std::uint64_t>(64, 1), std::vector<std::uint64_t>(64, 1), 0);
  EXPECT_EQ(tar.open().at("w").rank(), 64u);
  tar.tensors = py::pickle(integer(2)) + OldTar::tensor(20, 10, {1}, {1}, 0) + OldTar::tensor(20, 10, {1}, {1}, 0);
  EXPECT_ERROR(tar.open(), Errc::malformed, "tensor \"20\" is there twice");
}

TEST(TorchTar, IgnoresKeysThatItDoesNotHave) {
  OldTar tar;
  tar.object = py::pickle(dict({{"w", integer(20) + "Q"}, {"x", integer(99) + "Q"}}));
  EXPECT_EQ(tar.open().size(), 1u);
}

TEST(TorchTar, ListsItsStoragesIfThereAreNoTensors) {
  OldTar tar;
  const Checkpoint checkpoint = test::open_text(
      TarFile().file("sys_info", "").file("pickle", py::pickle(integer(1))).file("storages", tar.storages).text());
  EXPECT_EQ(values_of<float>(checkpoint.at("storages.10")), (Floats{0, 1, 2, 3}));
  EXPECT_TRUE(test::has_note(checkpoint, "its storages are listed instead"));
}

TEST(TorchTar, NamesTheDangerousGlobalsOfItsMembers) {
  OldTar tar;
  tar.object = py::pickle(py::call("os", "system", {py::text("id")}));
  const Checkpoint checkpoint = tar.open();
  ASSERT_EQ(checkpoint.dangerous.size(), 1u);
  EXPECT_EQ(checkpoint.dangerous[0].member, "pickle");
}

TEST(TorchTar, IsRefusedByWeightsOnlyOrIfItIsAnotherTar) {
  EXPECT_ERROR(test::open_text(OldTar().text(), {.safety = Safety::strict}), Errc::unsafe, "a tar of PyTorch 0.1");
  EXPECT_ERROR(test::open_text(TarFile().file("readme", "hello").text()), Errc::unsupported, "not one of PyTorch's");
  const OldTar tar;
  EXPECT_ERROR(test::open_text(TarFile().file("pickle", tar.object).text()), Errc::unsupported, "not one of PyTorch's");
  EXPECT_ERROR(test::open_text(TarFile().file("storages", tar.storages).text()), Errc::unsupported,
               "not one of PyTorch's");
}

}  // namespace
}  // namespace ballast
