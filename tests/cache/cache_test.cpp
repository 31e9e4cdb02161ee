// The conversion cache: when there is one, what comes out of it, and where it is found.
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include <ballast/hash.hpp>
#include <ballast/save.hpp>

#include "builders/gguf_file.hpp"
#include "support/cache_test.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::file_of;
using test::is_from_cache;
using test::kAlways;
using test::kAutomatic;
using test::kIgnore;
using test::names_of;
using test::strided_file;
using test::TempDir;
using test::TorchStream;
using test::TorchZip;
namespace py = test::py;

std::string plain_file() {
  return TorchZip()
      .object(py::dict({{"w", py::tensor(py::storage("Float", "0", 4), 0, {2, 2}, {2, 1})}}))
      .record("0", test::raw<float>({1, 2, 3, 4}))
      .text();
}

bool is_same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool is_same_value(const PlainValue& a, const PlainValue& b) {
  const auto *x = std::get_if<double>(&a.value), *y = std::get_if<double>(&b.value);
  return a.path == b.path && a.type == b.type && (x && y ? is_same_number(*x, *y) : a.value == b.value);
}

// Expects two checkpoints to be equal in everything but where the bytes of their tensors lie.
void expect_same(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(names_of(a), names_of(b));
  for (std::size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(a.tensors[i].name);
    EXPECT_EQ(a.tensors[i].tensor.dtype(), b.tensors[i].tensor.dtype());
    EXPECT_EQ(a.tensors[i].tensor.shape(), b.tensors[i].tensor.shape());
    EXPECT_EQ(a.tensors[i].tensor.has_data(), b.tensors[i].tensor.has_data());
  }
  EXPECT_EQ(hash(a).digest, hash(b).digest);
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_EQ(a.typed_metadata, b.typed_metadata);
  EXPECT_EQ(a.aliases, b.aliases);
  EXPECT_EQ(a.format, b.format);
  EXPECT_EQ(a.shards, b.shards);
  EXPECT_EQ(a.target, b.target);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) EXPECT_TRUE(is_same_value(a.values[i], b.values[i])) << i;
  ASSERT_EQ(a.composites.size(), b.composites.size());
  for (std::size_t i = 0; i < a.composites.size(); ++i) {
    EXPECT_EQ(a.composites[i].name, b.composites[i].name);
    EXPECT_EQ(a.composites[i].layout, b.composites[i].layout);
    EXPECT_EQ(a.composites[i].shape, b.composites[i].shape);
    EXPECT_EQ(a.composites[i].parts, b.composites[i].parts);
    EXPECT_TRUE(is_same_number(a.composites[i].scale, b.composites[i].scale));
    EXPECT_EQ(a.composites[i].zero_point, b.composites[i].zero_point);
    EXPECT_EQ(a.composites[i].axis, b.composites[i].axis);
  }
  ASSERT_EQ(a.unknown_ggml.size(), b.unknown_ggml.size());
  for (const auto& [name, unknown] : a.unknown_ggml) {
    EXPECT_EQ(unknown.id, b.unknown_ggml.at(name).id);
    EXPECT_EQ(unknown.shape, b.unknown_ggml.at(name).shape);
  }
  ASSERT_EQ(a.roots.size(), b.roots.size());
  for (std::size_t i = 0; i < a.roots.size(); ++i) {
    EXPECT_EQ(a.roots[i].path, b.roots[i].path);
    EXPECT_EQ(a.roots[i].tensors, b.roots[i].tensors);
  }
  ASSERT_EQ(a.notes.size(), b.notes.size());
  for (std::size_t i = 0; i < a.notes.size(); ++i) {
    EXPECT_EQ(a.notes[i].where, b.notes[i].where);
    EXPECT_EQ(a.notes[i].text, b.notes[i].text);
    EXPECT_EQ(a.notes[i].kind, b.notes[i].kind);
  }
  ASSERT_EQ(a.files.size(), b.files.size());
  for (std::size_t i = 0; i < a.files.size(); ++i) {
    EXPECT_EQ(a.files[i].path, b.files[i].path);
    EXPECT_EQ(a.files[i].bytes, b.files[i].bytes);
  }
}

class ConversionCache : public test::CacheTest {};

TEST_F(ConversionCache, IsMadeOnceAndUsedFromThenOn) {
  const std::string path = dir.write("model.pt", strided_file());
  EXPECT_FALSE(is_from_cache(open(path)));
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt"}));

  const Checkpoint made = open(path, kAutomatic);
  EXPECT_TRUE(is_from_cache(made));
  EXPECT_TRUE(made.notes.empty());
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt", std::string(".model.pt") + kEnding}));

  const Checkpoint used = open(path);
  EXPECT_TRUE(is_from_cache(used));
  EXPECT_TRUE(used.at("w").is_contiguous());
  EXPECT_EQ(test::values_of<float>(used.at("w")), (std::vector<float>{1, 3, 2, 4}));
  expect_same(open(path, kIgnore), used);
  EXPECT_FALSE(is_from_cache(open(path, kIgnore)));
}

TEST_F(ConversionCache, IsMadeIfItHelpsOrIsAskedFor) {
  const std::string plain = dir.write("model.pt", plain_file());
  EXPECT_FALSE(is_from_cache(open(plain, kAutomatic)));
  EXPECT_TRUE(is_from_cache(open(plain, kAlways)));

  const std::string copy = dir / "model.safetensors";
  save(open(plain, kIgnore), copy);
  EXPECT_EQ(file_of(open(copy, kAlways).at("w")), copy);

  // The data of a stream begin where the pickles before them happen to end.
  std::size_t askew = 0;
  for (const char* name : {"a", "ab", "abc", "abcd"}) {
    const std::string text = TorchStream()
                                 .object(py::dict({{name, py::tensor(py::storage("Float", "0", 1), 0, {1}, {1})}}))
                                 .record("0", 1, test::raw<float>({1}))
                                 .text();
    askew += is_from_cache(open(dir.write(name, text), kAutomatic));
  }
  EXPECT_EQ(askew, 3u);
}

TEST_F(ConversionCache, KeepsEverythingBesideTheTensors) {
  const py::Ops shared = py::put(py::tensor(py::storage("Float", "0", 4), 0, {2, 2}, {1, 2}), 70);
  const std::string path =
      dir.write("model.pt",
                TorchZip()
                    .object(py::dict({{"model", py::dict({{"w", shared}, {"tied", py::get(70)}})},
                                      {"same bytes", py::tensor(py::storage("Float", "0", 4), 0, {4}, {1})},
                                      {"and again", py::tensor(py::storage("Float", "0", 4), 0, {4, 1}, {1, 1})},
                                      {"__metadata__", py::tensor(py::storage("Int", "1", 1), 0, {1}, {1})},
                                      {"ballast.cache/0", py::tensor(py::storage("Int", "1", 1), 0, {}, {})},
                                      {"", py::tensor(py::storage("Int", "1", 1), 0, {0}, {1})},
                                      {"complex", py::tensor(py::storage("ComplexDouble", "2", 2), 0, {1, 2}, {2, 1})},
                                      {"turned", py::tensor(py::storage("ComplexDouble", "2", 2), 0, {2, 1}, {1, 2})},
                                      {"none", py::none()},
                                      {"yes", py::boolean(true)},
                                      {"epoch", py::integer(-7)},
                                      {"nan", py::real(std::numeric_limits<double>::quiet_NaN())},
                                      {"infinite", py::real(-std::numeric_limits<double>::infinity())},
                                      {"bytes", py::bytes(std::string_view("\xFF\x00z", 3))},
                                      {"unknown", py::call("some.module", "Thing", {py::integer(1)})}}))
                    .record("0", test::raw<float>({1, 2, 3, 4}))
                    .record("1", test::raw<std::int32_t>({42}))
                    .record("2", test::raw<double>({1, 2, 3, 4}))
                    .text());
  const Checkpoint original = open(path);
  const Checkpoint cached = open(path, kAutomatic);
  ASSERT_TRUE(is_from_cache(cached)) << (cached.notes.empty() ? "" : cached.notes.back().text);
  expect_same(original, cached);
  expect_same(original, open(path));
  EXPECT_EQ(cached.at("model.w").storage(), cached.at("model.tied").storage());
  EXPECT_EQ(cached.at("model.w").offset(), cached.at("model.tied").offset());
  EXPECT_EQ(cached.at("same bytes").offset(), cached.at("and again").offset());
  EXPECT_TRUE(cached.aliases.empty());
  EXPECT_NO_THROW(static_cast<void>(cached.at("complex").as<std::complex<double>>()));
}

TEST_F(ConversionCache, KeepsNamesThatAreNotText) {
  const std::string path = dir.write("model.gguf", test::GgufBuilder()
                                                       .kv("general.name", "tiny")
                                                       .tensor("\xFF\xFE", test::kF32, {2})
                                                       .tensor("q", test::kQ4_0, {32, 2})
                                                       .text());
  const Checkpoint original = open(path);
  EXPECT_FALSE(is_from_cache(open(path, kAutomatic)));  // blocks are used as they lie in the file
  const Checkpoint cached = open(path, kAlways);
  ASSERT_TRUE(is_from_cache(cached)) << (cached.notes.empty() ? "" : cached.notes.back().text);
  expect_same(original, cached);
}

TEST_F(ConversionCache, GivesEveryRealCheckpointBack) {
  std::size_t cached = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::vector_path(""))) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || entry.file_size() > (1 << 20) || name.ends_with(".json")) continue;
    SCOPED_TRACE(entry.path().string());
    fs::copy_file(entry.path(), dir / name, fs::copy_options::overwrite_existing);
    const auto error = BALLAST_ERROR_OF(open(dir / name, kIgnore));
    if (!error) {
      const Checkpoint original = open(dir / name, kIgnore), opened = open(dir / name, kAlways);
      const bool was_made = fs::exists(beside(name));
      cached += was_made;
      if (was_made) expect_same(original, opened);
      if (was_made) expect_same(original, open(dir / name));
      EXPECT_TRUE(was_made || original.format == Format::safetensors || opened.notes.size() > original.notes.size());
      fs::remove(beside(name));
    }
    fs::remove(dir / name);
  }
  EXPECT_GT(cached, 0u);
}

TEST_F(ConversionCache, TakesARootAfterwards) {
  const std::string path = dir.write(
      "model.pt",
      TorchZip()
          .object(py::dict({{"model", py::dict({{"w", py::tensor(py::storage("Float", "0", 4), 0, {2, 2}, {1, 2})}})},
                            {"epoch", py::integer(3)}}))
          .record("0", test::raw<float>({1, 2, 3, 4}))
          .text());
  const OpenOptions root{.root = "model", .cache = Cache::automatic};
  const Checkpoint made = open(path, root);
  EXPECT_EQ(names_of(made), std::vector<std::string>{"w"});
  EXPECT_TRUE(is_from_cache(made));
  EXPECT_EQ(names_of(open(path)), std::vector<std::string>{"model.w"});
  expect_same(open(path, {.root = "model", .cache = Cache::ignore}), open(path, {.root = "model"}));
}

TEST_F(ConversionCache, SpellsFilesAsTheTargetIsSpelled) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  for (const char* target : {"model.pt", "./model.pt"}) {
    const Checkpoint cached = open(target);
    EXPECT_TRUE(is_from_cache(cached));
    expect_same(open(target, kIgnore), cached);
  }
  fs::current_path(before);
}

TEST_F(ConversionCache, CachesShardsAndFolders) {
  const auto shard = [](const char* name) {
    return TorchZip()
        .object(py::dict({{name, py::tensor(py::storage("Float", "0", 4), 0, {2, 2}, {1, 2})}}))
        .record("0", test::raw<float>({1, 2, 3, 4}))
        .text();
  };
  dir.write("pytorch_model-00001-of-00002.bin", shard("a"));
  dir.write("pytorch_model-00002-of-00002.bin", shard("b"));
  const std::string index =
      dir.write("pytorch_model.bin.index.json",
                R"({"weight_map":{"a":"pytorch_model-00001-of-00002.bin","b":"pytorch_model-00002-of-00002.bin"}})");

  for (const std::string& target : {index, dir.path(), dir.path() + "/"}) {
    SCOPED_TRACE(target);
    EXPECT_TRUE(is_from_cache(open(target, kAutomatic)));
    EXPECT_TRUE(is_from_cache(open(target)));
    expect_same(open(target, kIgnore), open(target));
  }
  EXPECT_EQ(cache_path(dir.path()), dir.path() + "/" + kEnding);

  save(open(dir / "pytorch_model-00001-of-00002.bin", kIgnore), dir / "model.safetensors");
  EXPECT_EQ(open(dir.path()).size(), 1u);  // the folder is opened by model.safetensors now
  fs::remove(dir / "model.safetensors");
  EXPECT_TRUE(is_from_cache(open(dir.path())));
  fs::remove(dir / "pytorch_model-00002-of-00002.bin");
  EXPECT_ERROR(open(dir.path()), Errc::not_found, "pytorch_model-00002-of-00002.bin");
}

TEST_F(ConversionCache, IsListedAndCleared) {
  const std::string path = dir.write("model.pt", strided_file()), other = dir.write("other.pt", strided_file());
  TempDir shared;
  ASSERT_EQ(chmod(shared.path().c_str(), 0777), 0);
  const std::string third = shared.write("third.pt", strided_file());
  for (const std::string& target : {path, other, third}) open(target, kAutomatic);

  std::map<std::string, CacheEntry> entries;  // by the name of the source
  const auto list = [&] {
    for (const CacheEntry& entry : list_cache()) entries[fs::path(entry.source).filename()] = entry;
  };
  list();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries.at("model.pt").source, fs::canonical(path));
  EXPECT_EQ(entries.at("model.pt").path, fs::canonical(beside()));
  EXPECT_EQ(entries.at("model.pt").bytes, fs::file_size(beside()));
  EXPECT_TRUE(entries.at("third.pt").is_valid);

  dir.write("model.pt", strided_file(9));
  fs::remove(other);
  list();
  EXPECT_FALSE(entries.at("model.pt").is_valid);
  EXPECT_EQ(entries.at("model.pt").why_not, "the source has changed");
  EXPECT_EQ(entries.at("other.pt").why_not, "the source is gone");

  const auto cleared = clear_cache({third});
  ASSERT_EQ(cleared.size(), 1u);
  EXPECT_EQ(fs::path(cleared[0].path).filename(), fs::path(entries.at("third.pt").path).filename());
  EXPECT_FALSE(is_from_cache(open(third)));
  EXPECT_EQ(list_cache().size(), 2u);

  EXPECT_EQ(clear_cache().size(), 2u);
  EXPECT_TRUE(list_cache().empty());
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt"}));
  EXPECT_TRUE(fs::is_empty(cache_folder()));
  EXPECT_TRUE(clear_cache({path}).empty());
}

TEST_F(ConversionCache, SaysWhereItLiesOrWouldLie) {
  EXPECT_EQ(cache_path(dir / "missing.pt"), "");
  const std::string path = dir.write("model.pt", strided_file());
  EXPECT_EQ(cache_path(path), beside());
  ASSERT_EQ(chmod(dir.path().c_str(), 0777), 0);
  EXPECT_EQ(fs::path(cache_path(path)).parent_path(), cache_folder());
  EXPECT_FALSE(fs::exists(cache_folder()));

  ASSERT_EQ(chmod(dir.path().c_str(), 0700), 0);
  const std::string a = std::string(250, 'n') + "1.pt", b = std::string(250, 'n') + "2.pt";
  for (const std::string& name : {a, b}) {
    EXPECT_TRUE(is_from_cache(open(dir.write(name, strided_file()), kAutomatic)));
    EXPECT_LE(fs::path(cache_path(dir / name)).filename().string().size(), 255u);
  }
  EXPECT_NE(cache_path(dir / a), cache_path(dir / b));
}

}  // namespace
}  // namespace ballast
