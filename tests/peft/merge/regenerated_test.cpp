// Values that PEFT draws from a seed and does not save, against those that the reference programs drew.
#include <gtest/gtest.h>

#include <ballast/adapter.hpp>
#include <ballast/open.hpp>

#include <cmath>
#include <cstring>

#include "kernels/linear/torch_random.hpp"
#include "peft/merge/drawn.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast::peft {
namespace {

using test::values_of;

struct Reference {
  AdapterConfig config;
  Checkpoint drawn, adapter;

  explicit Reference(const std::string& name) {
    const std::string folder = test::vector_path("peft/" + name);
    config = load_adapter_config(folder + "/adapter/adapter_config.json");
    drawn = open(folder + "/regenerated.safetensors");
    adapter = open(folder + "/adapter/adapter_model.safetensors");
  }

  std::uint64_t count(std::string_view field) const { return config.find(field)->count(); }
};

void expect_same_bits(std::span<const float> got, const Tensor& want) {
  const auto values = values_of<float>(want);
  ASSERT_EQ(got.size(), values.size());
  EXPECT_EQ(std::memcmp(got.data(), values.data(), got.size_bytes()), 0);
}

TEST(Regenerated, ProjectionsOfVeraToTheBit) {
  const Reference reference("vera_without_projection");
  const Tensor &a = reference.drawn.at("base_model.vera_A.default"),
               &b = reference.drawn.at("base_model.vera_B.default");
  auto drawn = draw_projections(reference.count("projection_prng_key"), a.shape()[0], b.shape()[1],
                                {b.shape()[0], a.shape()[1]});
  expect_same_bits(drawn.a.values(), a);
  expect_same_bits(drawn.b.values(), b);
}

TEST(Regenerated, BasesOfRandLoraToTheBit) {
  const Reference reference("randlora_without_projection");
  const Tensor &a = reference.drawn.at("base_model.randlora_A.default"),
               &b = reference.drawn.at("base_model.randlora_B.default");
  const RandomBases drawn =
      draw_bases(reference.count("projection_prng_key"), a.shape()[0], {b.shape()[0], a.shape()[2]});
  EXPECT_EQ(drawn.bases, b.shape()[1]);
  expect_same_bits(drawn.a, a);
  expect_same_bits(drawn.b, b);
}

TEST(Regenerated, ElementsOfFourierFtToTheBit) {
  const Reference reference("fourierft");
  const Checkpoint base = open(test::vector_path("peft/fourierft/base.safetensors"));
  constexpr std::string_view kPrefix = "base_model.model.", kSuffix = ".indices.default";
  ASSERT_FALSE(reference.drawn.tensors.empty());
  for (const auto& [name, tensor] : reference.drawn) {
    const std::string module(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
    const Shape& shape = base.at(module + ".weight").shape();
    const std::uint64_t count = tensor.shape()[1];
    const auto places =
        kernels::TorchRandom(reference.count("random_loc_seed")).permutation(shape[0] * shape[1], count);
    const auto want = values_of<std::int64_t>(tensor);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(static_cast<std::int64_t>(places[i] / shape[1]), want[i]) << name;
      EXPECT_EQ(static_cast<std::int64_t>(places[i] % shape[1]), want[count + i]) << name;
    }
  }
}

// The file lists the modules in the order of the model: for each, A before B, the indices before the scales.
TEST(Regenerated, IndicesAndScalesOfUniLoraToTheBit) {
  const Reference reference("extra_unilora");
  const std::uint64_t length = reference.adapter.at("base_model.unilora_theta_d").numel();
  std::uint64_t elements = 0;
  for (const auto& [name, tensor] : reference.drawn) elements += tensor.dtype() == DType::i64 ? tensor.numel() : 0;
  const Json* seed = reference.config.find("proj_seed");
  const auto all = draw_indices(seed == nullptr ? 42 : seed->count(), elements, length);
  std::vector<std::uint64_t> counts(length);
  for (const std::uint64_t i : all) ++counts[i];

  std::size_t first = 0;
  for (const auto& [name, tensor] : reference.drawn) {
    if (tensor.dtype() != DType::i64) continue;
    std::string scales_name(name);
    scales_name.replace(scales_name.find("indices"), 7, "scales");
    const auto indices = values_of<std::int64_t>(tensor);
    std::vector<float> scales;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      EXPECT_EQ(static_cast<std::int64_t>(all[first + i]), indices[i]) << name;
      scales.push_back(1 / std::sqrt(static_cast<float>(counts[all[first + i]])));
    }
    expect_same_bits(scales, reference.drawn.at(scales_name));
    first += indices.size();
  }
  EXPECT_EQ(first, elements);
}

}  // namespace
}  // namespace ballast::peft
