#include "tensor/checkpoint_parts.hpp"

#include <ballast/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace ballast {
namespace {

Tensor of_one(float value) { return Tensor::from_values<float>(DType::f32, {1}, std::array{value}); }

Composite sparse(const std::string& name) {
  Composite composite;
  composite.name = name;
  composite.layout = "sparse_coo";
  composite.shape = {1};
  composite.parts = {name + ".indices", name + ".values"};
  return composite;
}

// Two pairs of names that share a tensor, two composites, and two tensors of unknown types.
Checkpoint with_parts() {
  Checkpoint checkpoint;
  for (const char* name : {"a", "b", "c", "d", "x.indices", "x.values", "y.indices", "y.values", "m", "n"}) {
    checkpoint.tensors.insert(name, of_one(1));
  }
  checkpoint.aliases = {{"b", "a"}, {"d", "c"}};
  checkpoint.metadata = {{"b", "a"}, {"d", "c"}, {"format", "pt"}};
  checkpoint.composites = {sparse("x"), sparse("y")};
  checkpoint.unknown_ggml = {{"m", {.id = 99, .shape = {1}}}, {"n", {.id = 98, .shape = {1}}}};
  return checkpoint;
}

TEST(ReplaceTensors, ForgetsWhatIsSaidAboutTensorsThatAreNotTheSame) {
  Checkpoint checkpoint = with_parts();
  StateDict tensors = checkpoint.tensors;
  for (const char* name : {"c", "y.values", "n"}) tensors.replace(name, of_one(2));
  replace_tensors(checkpoint, tensors,
                  [](std::string_view name) { return name != "c" && name != "y.values" && name != "n"; });
  EXPECT_EQ(checkpoint.aliases, (decltype(checkpoint.aliases){{"b", "a"}}));
  EXPECT_EQ(checkpoint.metadata, (Metadata{{"b", "a"}, {"format", "pt"}})) << "the metadata list the aliases as well";
  ASSERT_EQ(checkpoint.composites.size(), 1u);
  EXPECT_EQ(checkpoint.composites.front().name, "x");
  ASSERT_EQ(checkpoint.unknown_ggml.size(), 1u);
  EXPECT_EQ(checkpoint.unknown_ggml.begin()->first, "m");
  EXPECT_EQ(checkpoint.at("c").values<float>().front(), 2);
}

TEST(RenameNames, RenamesEverythingThatIsSaidAboutATensor) {
  const Checkpoint renamed = rename_names(with_parts(), [](std::string_view name) { return "p." + std::string(name); });
  EXPECT_EQ(renamed.aliases, (decltype(renamed.aliases){{"p.b", "p.a"}, {"p.d", "p.c"}}));
  EXPECT_EQ(renamed.composites.front().name, "p.x");
  EXPECT_EQ(renamed.composites.front().parts, (std::vector<std::string>{"p.x.indices", "p.x.values"}));
  EXPECT_EQ(renamed.unknown_ggml.begin()->first, "p.m");
  EXPECT_EQ(renamed.metadata, (Metadata{{"format", "pt"}})) << "aliases are written anew when the checkpoint is saved";
}

TEST(KeepNames, RemovesACompositeThatLacksAPart) {
  const Checkpoint kept = keep_names(with_parts(), [](std::string_view name) { return name != "x.values"; });
  ASSERT_EQ(kept.composites.size(), 1u);
  EXPECT_EQ(kept.composites.front().name, "y");
  EXPECT_TRUE(kept.contains("x.indices")) << "the other part is a plain tensor now";
}

TEST(Absorb, RenamesWhatItAddsAndRefusesASecondTensorOfOneName) {
  Checkpoint all = with_parts();
  absorb(all, with_parts(), [](std::string_view name) { return "p." + std::string(name); });
  EXPECT_EQ(all.size(), 20u);
  EXPECT_EQ(all.composites.size(), 4u);
  EXPECT_EQ(all.aliases.at("p.b"), "p.a");
  EXPECT_THROW(absorb(all, with_parts(), [](std::string_view name) { return std::string(name); }), Error);
}

}  // namespace
}  // namespace ballast
