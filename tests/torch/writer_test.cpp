// What we write as a torch zip, compared with what torch writes.
#include <gtest/gtest.h>
#include <zip.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "formats/torch/encode.hpp"
#include "formats/torch/layout.hpp"
#include "formats/torch/pickle_writer.hpp"
#include "formats/torch/records.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/files.hpp"
#include "support/json_file.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using test::some_bytes;
using test::text_of;

// Reads with libzip, which checks the directory against the local headers, and every checksum.
std::map<std::string, std::string> zip_members(const std::string& path) {
  int error = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error);
  EXPECT_NE(zip, nullptr) << path << ": " << error;
  std::map<std::string, std::string> members;
  if (zip == nullptr) return members;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
    zip_stat_t stat;
    EXPECT_EQ(zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat), 0);
    std::string content(stat.size, '\0');
    zip_file_t* file = zip_fopen_index(zip, static_cast<zip_uint64_t>(i), 0);
    EXPECT_EQ(zip_fread(file, content.data(), stat.size), static_cast<zip_int64_t>(stat.size)) << stat.name;
    char beyond = 0;
    EXPECT_EQ(zip_fread(file, &beyond, 1), 0) << stat.name << ": " << zip_file_strerror(file);
    zip_fclose(file);
    members[stat.name] = content;
  }
  zip_discard(zip);
  return members;
}

// The checkpoint that a vector was written from: its tensors, each with the bytes of its own record.
Checkpoint from_vector(const std::string& name) {
  const std::string path = test::vector_path("torch2/" + name);
  const auto members = zip_members(path);
  const std::string folder = members.begin()->first.substr(0, members.begin()->first.find('/'));
  const Json expected = test::read_json(path + ".expected.json");
  Checkpoint checkpoint;
  for (const Json& tensor : expected.at("tensors").list()) {
    const std::string& bytes = members.at(folder + "/data/" + std::to_string(tensor.at("storage").count()));
    checkpoint.tensors.insert(
        tensor.at("name").text(),
        Tensor::from_bytes(dtype_from_name(tensor.at("dtype").text()).value(), Shape(test::counts(tensor.at("shape"))),
                           std::as_bytes(std::span(bytes))));
  }
  return checkpoint;
}

std::string pickle_of(const Checkpoint& checkpoint) {
  std::vector<const StateDict::Entry*> entries;
  for (const auto& entry : checkpoint) entries.push_back(&entry);
  const auto leaves = torch::leaves_of(entries, checkpoint.composites);
  const auto bytes = torch::encode_state_dict(leaves, torch::assign_records(leaves));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Tensor floats(std::uint64_t count, unsigned seed = 1) {
  return Tensor(DType::f32, {count}, memory_storage(some_bytes(4 * count, seed)));
}

TEST(TorchWriter, WritesTheFileThatTorchWrites) {
  test::TempDir folder;
  save(from_vector("all_dtypes.pt"), folder / "all_dtypes.pt");
  EXPECT_TRUE(folder.read("all_dtypes.pt") == test::read_whole_file(test::vector_path("torch2/all_dtypes.pt")));
}

class StateDictVector : public testing::TestWithParam<const char*> {};

// Torch's state dicts have an attribute behind their tensors, and ours do not.
TEST_P(StateDictVector, HasTheSameOpcodesAndRecords) {
  const std::string name = GetParam();
  test::TempDir folder;
  save(from_vector(name), folder / name);
  auto ours = zip_members(folder / name), theirs = zip_members(test::vector_path("torch2/" + name));
  ASSERT_EQ(ours.size(), theirs.size());
  for (const auto& [member, content] : theirs) {
    if (member.ends_with("/data.pkl")) {
      ASSERT_EQ(ours[member].back(), '.');
      ours[member].pop_back();
      EXPECT_TRUE(content.starts_with(ours[member]));
    } else if (!member.ends_with("/serialization_id")) {
      EXPECT_EQ(ours[member], content) << member;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Torch2, StateDictVector, testing::Values("state_dict_resnet.pt", "state_dict_lstm.pt"));

TEST(TorchWriter, NamesTheFolderAfterTheFile) {
  test::TempDir folder;
  Checkpoint one;
  one.tensors.insert("w", floats(3));
  for (const auto& [file, inside] : {std::pair("name.with.dots.v2.pt", "name.with.dots.v2"),
                                     {"model.bin", "model"},
                                     {"größe.pt", "archive"},
                                     {"pytorch_model.ckpt", "pytorch_model"}}) {
    save(one, folder / file);
    EXPECT_TRUE(zip_members(folder / file).contains(std::string(inside) + "/data.pkl")) << file;
  }
}

TEST(TorchWriter, AlignsTheDataOfEveryRecord) {
  test::TempDir folder;
  Checkpoint some;
  for (std::uint64_t n : {1u, 0u, 17u, 64u, 100'000u}) some.tensors.insert("t" + std::to_string(n), floats(n));
  const SavePlan plan = plan_save(some, folder / "m.pt");
  ASSERT_EQ(plan.files.size(), 1u);
  for (const auto& item : plan.files[0].items) EXPECT_EQ(item.offset % 64, 0u) << item.name;
  EXPECT_EQ(plan.files[0].tensors, 5u);
}

TEST(TorchWriter, WritesADictWithoutTensors) {
  test::TempDir folder;
  SaveOptions options;
  EXPECT_ERROR(save(Checkpoint(), folder / "m.pt"), Errc::not_found, "there is no tensor to write");
  options.allow_empty = true;
  save(Checkpoint(), folder / "m.pt", options);
  const auto members = zip_members(folder / "m.pt");
  using namespace std::string_literals;
  EXPECT_EQ(members.at("m/data.pkl"), "\x80\2ccollections\nOrderedDict\nq\0)Rq\1."s);
  EXPECT_EQ(members.size(), 6u);
}

TEST(TorchWriter, WritesFiveKindsOfStoragesWithTheirChecksums) {
  for (unsigned threads : {1u, 3u}) {
    test::TempDir folder;
    constexpr std::size_t kSize = 1'000'001;
    const auto whole = [&](StoragePtr storage) { return Tensor(DType::u8, {kSize}, std::move(storage)); };
    Checkpoint all;
    all.tensors.insert("mapped", whole(memory_storage(some_bytes(kSize, 1))));
    all.tensors.insert("deflated", whole(std::make_shared<test::DeflatedStorage>(some_bytes(kSize, 2))));
    all.tensors.insert("decoded", whole(std::make_shared<test::DecodedStorage>(some_bytes(kSize, 3), 4096)));
    all.tensors.insert("prepared", whole(std::make_shared<test::PreparedStorage>(some_bytes(kSize, 4))));
    all.tensors.insert("remote", whole(std::make_shared<test::RemoteStorage>(some_bytes(kSize, 5))));
    SaveOptions options;
    options.threads = threads;
    options.memory_bytes = 1 << 18;
    save(all, folder / "m.pt", options);
    const auto members = zip_members(folder / "m.pt");
    for (unsigned i = 0; i < 5; ++i) {
      const auto expected = some_bytes(kSize, i + 1);
      EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(members.at("m/data/" + std::to_string(i)))), expected));
    }
  }
}

TEST(TorchWriter, WritesTheSameBytesWhateverTheThreadCount) {
  test::TempDir folder;
  Checkpoint many;
  for (unsigned i = 0; i < 300; ++i) many.tensors.insert("t" + std::to_string(i), floats(i * i * 3, i));
  many.tensors.insert("large", floats(5'000'000));
  std::filesystem::create_directory(folder / "1");
  std::filesystem::create_directory(folder / "5");
  SaveOptions options;
  options.threads = 1;
  save(many, folder / "1/m.pt", options);
  options.threads = 5;
  options.memory_bytes = 1 << 20;
  save(many, folder / "5/m.pt", options);
  EXPECT_TRUE(folder.read("1/m.pt") == folder.read("5/m.pt"));
}

TEST(TorchWriter, CountsEveryByteForProgress) {
  test::TempDir folder;
  Checkpoint some;
  for (std::uint64_t n : {1u, 0u, 17u, 1'000'000u}) some.tensors.insert("t" + std::to_string(n), floats(n));
  std::uint64_t last = 0;
  SaveOptions options;
  options.progress = [&](const ProgressState& state) {
    last = state.done_bytes;
    return true;
  };
  save(some, folder / "m.pt", options);
  EXPECT_EQ(last, std::filesystem::file_size(folder / "m.pt"));
}

torch::Records records_of(const Checkpoint& checkpoint) {
  std::vector<const StateDict::Entry*> entries;
  for (const auto& entry : checkpoint) entries.push_back(&entry);
  return torch::assign_records(torch::leaves_of(entries, checkpoint.composites));
}

TEST(TorchRecords, KeepTiedTensorsTied) {
  Checkpoint tied;
  tied.tensors.insert("embed", floats(12));
  tied.tensors.insert("other", floats(12));
  tied.tensors.insert("head", tied.at("embed"));
  const torch::Records records = records_of(tied);
  EXPECT_EQ(records.records.size(), 2u);
  EXPECT_EQ(records.placements[0].record, records.placements[2].record);
  EXPECT_EQ(records.records[0].name, "embed");
  EXPECT_TRUE(records.notes.empty());
}

TEST(TorchRecords, AreOneForEachTensorOfOneMappedFile) {
  const StoragePtr file = memory_storage(some_bytes(48, 1));
  Checkpoint apart;
  apart.tensors.insert("a", Tensor(DType::f32, {4}, file, 0));
  apart.tensors.insert("b", Tensor(DType::f32, {4}, file, 16));
  apart.tensors.insert("c", Tensor(DType::f32, {4}, file, 32));
  EXPECT_EQ(records_of(apart).records.size(), 3u);
}

TEST(TorchRecords, HoldTheUnionOfTensorsThatOverlap) {
  const StoragePtr file = memory_storage(some_bytes(100, 1));
  Checkpoint views;
  views.tensors.insert("back", Tensor(DType::f32, {8}, file, 36));
  views.tensors.insert("front", Tensor(DType::f32, {10}, file, 20));
  views.tensors.insert("apart", Tensor(DType::f32, {5}, file, 0));
  const torch::Records records = records_of(views);
  ASSERT_EQ(records.records.size(), 2u);
  EXPECT_EQ(records.records[0].content.offset(), 20u);
  EXPECT_EQ(records.records[0].content.nbytes(), 48u);
  EXPECT_EQ(records.placements[0].first, 4u);
  EXPECT_EQ(records.placements[1].first, 0u);
}

TEST(TorchRecords, KeepTheStridesOfViewsThatCostNothing) {
  const Tensor matrix(DType::f32, {3, 4}, memory_storage(some_bytes(48, 1)));
  Checkpoint views;
  views.tensors.insert("w", matrix);
  views.tensors.insert("w_t", matrix.transpose());
  views.tensors.insert("alone", Tensor(DType::f32, {3, 4}, memory_storage(some_bytes(48, 2))).transpose());
  views.tensors.insert("expanded", Tensor(DType::f32, {5, 4}, Strides{0, 1}, memory_storage(some_bytes(16, 3))));
  const torch::Records records = records_of(views);
  ASSERT_EQ(records.records.size(), 3u);
  EXPECT_EQ(records.placements[1].record, 0u);
  EXPECT_EQ(records.placements[1].strides, (Strides{1, 4}));
  EXPECT_EQ(records.placements[2].strides, (Strides{1, 4}));
  EXPECT_EQ(records.records[2].content.nbytes(), 16u);
  EXPECT_EQ(records.placements[3].strides, (Strides{0, 1}));
}

TEST(TorchRecords, HoldCopiesIfSharingWouldStoreUnusedBytes) {
  const Tensor matrix(DType::f32, {100, 10}, memory_storage(some_bytes(4000, 1)));
  Checkpoint columns;
  columns.tensors.insert("a", matrix.slice(parse_slice(":,0:1")));
  columns.tensors.insert("b", matrix.slice(parse_slice(":,4:5")));
  const torch::Records records = records_of(columns);
  ASSERT_EQ(records.records.size(), 2u);
  EXPECT_EQ(records.records[0].content.nbytes(), 400u);
  EXPECT_EQ(records.placements[0].strides, (Strides{1, 1}));
  ASSERT_EQ(records.notes.size(), 1u);
  EXPECT_EQ(records.notes[0].text, "tensors \"a\" and \"b\" overlap in one storage, and are written as copies");
}

TEST(TorchRecords, HoldCopiesOfBytesThatAreReadAsTwoDTypes) {
  const StoragePtr bytes = memory_storage(some_bytes(16, 1));
  Checkpoint both;
  both.tensors.insert("f", Tensor(DType::f32, {4}, bytes));
  both.tensors.insert("i", Tensor(DType::i32, {4}, bytes));
  const torch::Records records = records_of(both);
  EXPECT_EQ(records.records.size(), 2u);
  EXPECT_EQ(records.notes.size(), 1u);
}

TEST(TorchRecords, BundleTensorsThatMustStayInOneFile) {
  const Tensor shared = floats(10);
  Checkpoint some;
  some.tensors.insert("a", shared);
  some.tensors.insert("b", floats(20));
  some.tensors.insert("c", shared);
  std::vector<const StateDict::Entry*> entries;
  for (const auto& entry : some) entries.push_back(&entry);
  const auto bundles = torch::bundles_of(torch::leaves_of(entries, {}));
  ASSERT_EQ(bundles.size(), 2u);
  EXPECT_EQ(bundles[0].members, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(bundles[0].bytes, 40u);
}

TEST(TorchWriter, SaysWhatTorchCannotStore) {
  const auto with = [](std::string_view name, DType dtype, Shape shape) {
    const std::uint64_t size = bytes_of(dtype, *shape.numel()).value();
    Checkpoint one;
    one.tensors.insert(name, Tensor(dtype, std::move(shape), memory_storage(some_bytes(size, 1))));
    return one;
  };
  EXPECT_ERROR(plan_save(with("w", DType::q4_0, {32}), "m.pt"), Errc::unsupported,
               "tensor \"w\" has dtype Q4_0, which torch cannot store");
  EXPECT_HINT(plan_save(with("w", DType::f6_e2m3, {4}), "m.pt"), "cast() to F32");
  EXPECT_ERROR(plan_save(with("\xFF", DType::f32, {4}), "m.pt"), Errc::unsupported, "a name that is not UTF-8");
  EXPECT_ERROR(plan_save(with("w", DType::qi8, {4}), "m.pt"), Errc::unsupported,
               "tensor \"w\" has dtype QI8 and nothing that says by which scale");
  EXPECT_ERROR(plan_save(with("w", DType::f4, {2, 3}), "m.pt"), Errc::unsupported,
               "has shape [2, 3], but torch packs 2");
  Checkpoint meta;
  meta.tensors.insert("w", Tensor(DType::f32, {4}, meta_storage(16)));
  EXPECT_ERROR(plan_save(meta, "m.pt"), Errc::unsupported, "tensor \"w\" has no data to store");
}

TEST(TorchWriter, PacksTwoF4InAByteAsTorchCountsThem) {
  Checkpoint one;
  one.tensors.insert("t", Tensor(DType::f4, {3, 8}, memory_storage(some_bytes(12, 1))));
  // ("storage", UntypedStorage, "0", "cpu", 12), 0, (3, 4), (4, 1), False, OrderedDict(), torch.float4_e2m1fn_x2
  const std::string pickle = pickle_of(one);
  EXPECT_NE(pickle.find(std::string("K\x0Ctq\x08QK\0K\3K\4\x86q\x09K\4K\1\x86q\x0A\x89h\0)Rq\x0B"
                                    "ctorch\nfloat4_e2m1fn_x2\n",
                                    53)),
            std::string::npos);
}

TEST(TorchWriter, PutsScalesAndZeroPointsIntoQuantizedTensors) {
  Checkpoint quantized;
  quantized.tensors.insert("w", Tensor(DType::qi8, {3, 4}, memory_storage(some_bytes(12, 1))));
  quantized.tensors.insert("w.scales", Tensor(DType::f64, {3}, memory_storage(some_bytes(24, 2))));
  quantized.tensors.insert("w.zero_points", Tensor(DType::i64, {3}, memory_storage(some_bytes(24, 3))));
  quantized.tensors.insert("v", Tensor(DType::qu8, {2}, memory_storage(some_bytes(2, 4))));
  quantized.composites.push_back(
      {.name = "w", .layout = "quantized", .shape = {3, 4}, .parts = {"w.scales", "w.zero_points"}, .axis = 0});
  quantized.composites.push_back(
      {.name = "v", .layout = "quantized", .shape = {2}, .parts = {}, .scale = 0.5, .zero_point = 128, .axis = {}});
  const std::string pickle = pickle_of(quantized);
  EXPECT_EQ(pickle.find("w.scales"), std::string::npos);
  EXPECT_NE(pickle.find("ctorch\nQInt8Storage\n"), std::string::npos);
  EXPECT_NE(pickle.find("ctorch\nper_channel_affine\n"), std::string::npos);
  EXPECT_NE(pickle.find(std::string("G\x3F\xE0\0\0\0\0\0\0K\x80\x87", 12)), std::string::npos);
  EXPECT_EQ(plan_save(quantized, "m.pt").files[0].tensors, 2u);

  for (const std::string part : {"", "w.scales", "w.zero_points"}) {
    StateDict less;
    less.insert("w", quantized.at("w"));
    if (!part.empty()) less.insert(part, quantized.at(part));
    Checkpoint incomplete = quantized;
    incomplete.tensors = less;
    EXPECT_ERROR(plan_save(incomplete, "m.pt"), Errc::unsupported, "its scales and zero points are not with it");
  }
}

std::string le64(std::uint64_t value) {
  const auto bytes = std::bit_cast<std::array<char, 8>>(value);
  return {bytes.begin(), bytes.end()};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The expected fields are those of a file of torch 1.13 with a tensor of 4 GiB.
TEST(TorchWriter, WritesZip64FieldsIfAndOnlyIfTorchDoes) {
  constexpr std::uint64_t kVast = (std::uint64_t{1} << 32) + 4096;
  Checkpoint big;
  big.tensors.insert("big", Tensor(DType::u8, {kVast}, std::make_shared<test::VastStorage>(kVast)));
  big.tensors.insert("small", floats(3));
  std::vector<const StateDict::Entry*> entries;
  for (const auto& entry : big) entries.push_back(&entry);
  std::vector<Note> notes;
  const SavePlan::File layout = torch::lay_out(torch::leaves_of(entries, {}), "big.pt", notes);
  ASSERT_EQ(layout.items.size(), 2u);
  const std::uint32_t crc32s[] = {0x11111111, 0x22222222};
  const auto pieces = layout.finish(crc32s);
  ASSERT_EQ(pieces.size(), 2u);

  EXPECT_TRUE(text_of(layout.head).ends_with("Z"));
  EXPECT_NE(text_of(layout.head).find("big/data/0" + std::string("\1\0\x10\0", 4) + le64(kVast) + le64(0) + "FB"),
            std::string::npos);
  const std::uint64_t second_header = layout.items[0].offset + kVast + 24;
  EXPECT_TRUE(text_of(pieces[0].bytes).starts_with("PK\7\10\x11\x11\x11\x11" + le64(kVast) + le64(kVast) + "PK\3\4"));
  EXPECT_NE(text_of(pieces[0].bytes).find("big/data/1" + std::string("\1\0\x08\0", 4) + le64(second_header) + "FB"),
            std::string::npos);

  const std::string tail = text_of(pieces[1].bytes);
  EXPECT_EQ(pieces[1].offset, layout.items[1].offset + 12);
  EXPECT_EQ(pieces[1].offset + tail.size(), layout.size_bytes);
  EXPECT_TRUE(tail.starts_with("PK\7\10\x22\x22\x22\x22" + le64(12) + le64(12) + "PK\3\4"));
  EXPECT_NE(tail.find("big/data/0" + std::string("\1\0\x10\0", 4) + le64(kVast) + le64(kVast) + "PK"),
            std::string::npos);
  EXPECT_NE(tail.find("\xFF\xFF\xFF\xFF"
                      "big/data/1" +
                      std::string("\1\0\x08\0", 4) + le64(second_header) + "PK"),
            std::string::npos);
  EXPECT_TRUE(tail.ends_with(std::string("\xFF\xFF\xFF\xFF\0\0", 6)));
}

TEST(TorchWriter, RefusesWhatNoFileCanHold) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  Checkpoint vast;
  vast.tensors.insert("a", Tensor(DType::u8, {kHalf}, std::make_shared<test::VastStorage>(kHalf)));
  vast.tensors.insert("b", Tensor(DType::u8, {kHalf}, std::make_shared<test::VastStorage>(kHalf)));
  EXPECT_ERROR(plan_save(vast, "m.pt"), Errc::limit, "larger than any file can be");
}

TEST(PickleWriter, WritesIntegersAsCPythonDoes) {
  const auto written = [](auto value) {
    torch::PickleWriter out;
    out.integer(value);
    const auto bytes = out.finish();
    return text_of(bytes).substr(2, bytes.size() - 3);
  };
  using namespace std::string_literals;
  EXPECT_EQ(written(std::uint64_t{0}), "K\0"s);
  EXPECT_EQ(written(std::uint64_t{255}), "K\xFF"s);
  EXPECT_EQ(written(std::uint64_t{256}), "M\0\1"s);
  EXPECT_EQ(written(std::uint64_t{65536}), "J\0\0\1\0"s);
  EXPECT_EQ(written(std::uint64_t{0x7FFFFFFF}), "J\xFF\xFF\xFF\x7F"s);
  EXPECT_EQ(written(std::uint64_t{0x80000000}), "\x8A\5\0\0\0\x80\0"s);
  EXPECT_EQ(written(std::uint64_t{0xFFFFFFFF}), "\x8A\5\xFF\xFF\xFF\xFF\0"s);
  EXPECT_EQ(written(std::uint64_t{1} << 39), "\x8A\6\0\0\0\0\x80\0"s);
  EXPECT_EQ(written(~std::uint64_t{0}), "\x8A\x09\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0"s);
  EXPECT_EQ(written(std::int64_t{-1}), "J\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(written(-std::int64_t{0x80000000}), "J\0\0\0\x80"s);
  EXPECT_EQ(written(-std::int64_t{0x80000001}), "\x8A\5\xFF\xFF\xFF\x7F\xFF"s);
}

}  // namespace
}  // namespace ballast
