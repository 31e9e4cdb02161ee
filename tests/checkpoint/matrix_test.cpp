// Every format that opens is saved to every format that is written, and the tensors are changed in between: the values
// that arrive are those that set out.
#include <gtest/gtest.h>

#include <map>

#include <ballast/ballast.hpp>

#include "builders/tar_file.hpp"
#include "builders/temp_dir.hpp"
#include "builders/torch_file.hpp"
#include "builders/zip_file.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using test::some_bytes;
using test::text_of;

std::string text_of(const Storage& storage) {
  std::string text(storage.size_bytes(), '\0');
  storage.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// A checkpoint in memory, as torch would pickle it: storages, and the tensors that look at them.
class TorchParts {
 public:
  explicit TorchParts(const Checkpoint& checkpoint) {
    for (const auto& [name, tensor] : checkpoint) {
      const auto key = static_cast<std::int64_t>(keys_.size());
      const auto [known, is_new] = keys_.try_emplace(tensor.storage().get(), key);
      if (is_new)
        storages.push_back({std::to_string(key), kind(tensor.dtype()), text_of(*tensor.storage()), element(tensor)});
      tensors.push_back({std::string(name), static_cast<std::size_t>(known->second), &tensor});
    }
  }

  struct StorageOf {
    std::string key, kind, data;
    std::uint64_t element_bytes;
    std::uint64_t count() const { return data.size() / element_bytes; }
  };
  struct TensorOf {
    std::string name;
    std::size_t storage;
    const Tensor* tensor;
    std::vector<std::int64_t> shape() const { return {tensor->shape().begin(), tensor->shape().end()}; }
    std::int64_t offset() const { return static_cast<std::int64_t>(tensor->offset() / element(*tensor)); }
  };

  py::Ops object() const {
    std::vector<std::pair<std::string, py::Ops>> items;
    for (const TensorOf& tensor : tensors) {
      const StorageOf& storage = storages[tensor.storage];
      items.emplace_back(tensor.name,
                         py::tensor(py::storage(storage.kind, storage.key, static_cast<std::int64_t>(storage.count())),
                                    tensor.offset(), tensor.shape(), tensor.tensor->strides()));
    }
    return py::dict(items);
  }

  std::vector<StorageOf> storages;
  std::vector<TensorOf> tensors;

 private:
  static std::uint64_t element(const Tensor& tensor) { return info(tensor.dtype()).block_bytes; }
  static std::string kind(DType dtype) { return dtype == DType::f32 ? "Float" : dtype == DType::f16 ? "Half" : "Int"; }

  std::map<const Storage*, std::int64_t> keys_;
};

std::string torch_zip(const Checkpoint& checkpoint) {
  const TorchParts parts(checkpoint);
  test::TorchZip zip;
  zip.object(parts.object());
  for (const auto& storage : parts.storages) zip.record(storage.key, storage.data);
  return zip.text();
}

std::string deflated_torch_zip(const Checkpoint& checkpoint) {
  const TorchParts parts(checkpoint);
  test::ZipFile zip;
  zip.deflated("archive/data.pkl", py::pickle(parts.object()));
  for (const auto& storage : parts.storages) zip.deflated("archive/data/" + storage.key, storage.data);
  return zip.deflated("archive/version", "3\n").text();
}

std::string torch_stream(const Checkpoint& checkpoint) {
  const TorchParts parts(checkpoint);
  test::TorchStream stream;
  stream.object(parts.object());
  for (const auto& storage : parts.storages) stream.record(storage.key, storage.count(), storage.data);
  return stream.text();
}

std::string torch_tar(const Checkpoint& checkpoint) {
  const TorchParts parts(checkpoint);
  const auto count = [](std::size_t n) { return py::pickle(py::integer(static_cast<std::int64_t>(n))); };
  std::string storages = count(parts.storages.size()), tensors = count(parts.tensors.size());
  for (const auto& storage : parts.storages) {
    storages += py::pickle(py::tuple(
        {py::integer(std::stoll(storage.key)), py::text("cpu"), py::global("torch", storage.kind + "Storage")}));
    storages += test::u64(storage.count()) + storage.data;
  }
  std::vector<std::pair<std::string, py::Ops>> items;
  for (std::size_t i = 0; i < parts.tensors.size(); ++i) {
    const auto& tensor = parts.tensors[i];
    const auto key = static_cast<std::int64_t>(1000 + i);
    tensors += py::pickle(py::tuple({py::integer(key), py::integer(static_cast<std::int64_t>(tensor.storage)),
                                     py::global("torch", parts.storages[tensor.storage].kind + "Tensor")}));
    tensors += test::u32(static_cast<std::uint32_t>(tensor.tensor->rank())) + "junk";
    for (const std::int64_t dim : tensor.shape()) tensors += test::u64(static_cast<std::uint64_t>(dim));
    for (const std::int64_t stride : tensor.tensor->strides()) tensors += test::u64(static_cast<std::uint64_t>(stride));
    tensors += test::u64(static_cast<std::uint64_t>(tensor.offset()));
    items.emplace_back(tensor.name, py::integer(key) + "Q");
  }
  return test::TarFile()
      .file("sys_info", py::pickle(py::dict({{"little_endian", py::boolean(true)}})))
      .file("pickle", py::pickle(py::dict(items)))
      .file("storages", storages + py::pickle(py::list({})))
      .file("tensors", tensors)
      .text();
}

// How a file is made, and the name that it is opened by.
struct Input {
  const char* name;
  std::string (*text)(const Checkpoint&);  // or null: written by the library, under this name
  const char* file;
};
void PrintTo(const Input& input, std::ostream* out) { *out << input.name; }

constexpr Input kInputs[] = {
    {"TorchZip", torch_zip, "in.pt"},           {"DeflatedTorchZip", deflated_torch_zip, "in.pt"},
    {"TorchStream", torch_stream, "in.bin"},    {"TorchTar", torch_tar, "in.tar"},
    {"Safetensors", nullptr, "in.safetensors"}, {"Gguf", nullptr, "in.gguf"},
};
constexpr const char* kOutputs[] = {"out.safetensors", "out.pt", "out.gguf"};

Tensor some_tensor(DType dtype, const Shape& shape, unsigned seed) {
  return Tensor(dtype, shape, memory_storage(some_bytes(*bytes_of(dtype, *shape.numel()), seed)));
}

Checkpoint plain_model() {
  Checkpoint model;
  // Numbers are small integers, because halves of random bits would have NaNs, which a cast may change.
  std::vector<float> numbers(300 * 200);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 251) - 100;
  model.tensors.insert("a.weight", Tensor::from_values<float>(DType::f32, {300, 200}, numbers));
  model.tensors.insert("a.bias", Tensor::from_values<float>(DType::f32, {200}, std::span(numbers).first(200)));
  model.tensors.insert(
      "b.half",
      Tensor::from_values<float>(DType::f32, {32, 7}, std::span(numbers).first(224)).to(DType::f16).realize());
  model.tensors.insert("steps", some_tensor(DType::i32, {5}, 4));
  return model;
}

Checkpoint strided_model() {
  Checkpoint model = plain_model();
  model.tensors.replace("a.weight", model.at("a.weight").transpose());
  model.tensors.insert("rows", model.at("a.weight").slice(parse_slice("10:100:3")));
  return model;
}

Checkpoint tied_model() {
  Checkpoint model = plain_model();
  model.tensors.insert("head.weight", Tensor(model.at("a.weight")));
  return model;
}

Checkpoint empty_model() {
  Checkpoint model = plain_model();
  model.tensors.insert("empty", Tensor(DType::f32, {0}, memory_storage(std::vector<std::byte>{})));
  return model;
}

Checkpoint as_it_is(Checkpoint checkpoint) { return checkpoint; }
Checkpoint to_bf16(Checkpoint checkpoint) { return cast(std::move(checkpoint), DType::bf16); }
Checkpoint by_pattern(Checkpoint checkpoint) {
  return cast(std::move(checkpoint), std::vector<CastRule>{{"*.bias", DType::f32}, {"a.*", DType::f16}});
}
Checkpoint renamed(Checkpoint checkpoint) {
  return add_prefix(rename(std::move(checkpoint), {{"^a\\.", "first."}}), "model.");
}

struct Variant {
  const char* name;
  Checkpoint (*model)();
  Checkpoint (*change)(Checkpoint);
  SaveOptions options;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

const Variant kVariants[] = {
    {"Plain", plain_model, as_it_is, {}},
    {"Cast", plain_model, to_bf16, {}},
    {"CastByPattern", plain_model, by_pattern, {}},
    {"Sharded", plain_model, as_it_is, {.max_shard_bytes = 100'000}},
    {"Strided", strided_model, as_it_is, {}},
    {"StridedAndCast", strided_model, to_bf16, {}},
    {"Tied", tied_model, as_it_is, {}},
    {"TiedAndCast", tied_model, to_bf16, {}},
    {"TiedOnce", tied_model, as_it_is, {.dedupe = true}},
    {"Empty", empty_model, as_it_is, {}},
    {"Renamed", plain_model, renamed, {}},
    {"Compressed", plain_model, as_it_is, {.compress = true}},
    {"CompressedShardsOfACast", strided_model, to_bf16, {.max_shard_bytes = 50'000, .compress = true}},
};

class Matrix : public testing::TestWithParam<std::tuple<Input, const char*, Variant>> {};

TEST_P(Matrix, ArrivesAsItSetOut) {
  const auto& [input, output, variant] = GetParam();
  const test::TempDir folder;
  const Checkpoint model = variant.model();
  if (input.text != nullptr)
    folder.write(input.file, input.text(model));
  else
    save(model, folder / input.file, {.durable = false});

  const Checkpoint wanted = variant.change(open(folder / input.file));
  ASSERT_EQ(hash(wanted).digest, hash(variant.change(model)).digest) << "what was opened is not what was put in";

  SaveOptions options = variant.options;
  options.durable = false;
  options.verify = true;
  if (options.compress && output != kOutputs[0]) {
    EXPECT_ERROR(save(wanted, folder / output, options), Errc::unsupported, "safetensors");
    return;
  }
  const SaveReport report = save(wanted, folder / output, options);
  const bool is_sharded = options.max_shard_bytes != 0 && report.files.size() > 1;
  const Checkpoint found = open(is_sharded ? report.files.back().path : folder / output);
  EXPECT_EQ(hash(found).digest, hash(wanted).digest);
  EXPECT_EQ(found.size(), wanted.size());
  EXPECT_TRUE(verify(is_sharded ? report.files.back().path : folder / output).ok());
}

std::string case_name(const testing::TestParamInfo<Matrix::ParamType>& info) {
  const auto& [input, output, variant] = info.param;
  const char* to = output == kOutputs[0] ? "Safetensors" : output == kOutputs[1] ? "Torch" : "Gguf";
  return std::string(input.name) + "To" + to + variant.name;
}

INSTANTIATE_TEST_SUITE_P(All, Matrix,
                         testing::Combine(testing::ValuesIn(kInputs), testing::ValuesIn(kOutputs),
                                          testing::ValuesIn(kVariants)),
                         case_name);

}  // namespace
}  // namespace ballast
