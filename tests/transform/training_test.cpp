// What is the model in a training checkpoint, and what is not.
#include <gtest/gtest.h>

#include <ballast/open.hpp>
#include <ballast/training.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using Names = std::vector<std::string>;

// Every tensor has one float; values are at the paths.
Checkpoint checkpoint_of(const Names& tensors, const Names& values = {}, const Names& roots = {}) {
  Checkpoint checkpoint;
  checkpoint.format = Format::torch_zip;
  for (const std::string& name : tensors)
    checkpoint.tensors.insert(name, Tensor::from_values<float>(DType::f32, {1}, std::vector<float>{1}));
  for (const std::string& path : values) checkpoint.values.push_back({path, "int", std::int64_t{1}});
  for (const std::string& root : roots) {
    const auto count = std::ranges::count_if(tensors, [&](const auto& name) { return name.starts_with(root + "."); });
    checkpoint.roots.push_back({root, static_cast<std::uint64_t>(count)});
  }
  return checkpoint;
}

Names names_of(const Checkpoint& checkpoint) {
  Names names;
  for (const auto& entry : checkpoint) names.emplace_back(entry.name);
  return names;
}

std::string notes_of(const Checkpoint& checkpoint) {
  std::string text;
  for (const Note& note : checkpoint.notes) text += note.text + "\n";
  return text;
}

const Names kAdam = {"optimizer.state.0.exp_avg", "optimizer.state.0.exp_avg_sq", "optimizer.state.0.step"};

Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Training, FindsModelAndOptimizerAsPeopleSaveThem) {
  struct Case {
    std::string root;
    Names names, values;
  };
  const Case cases[] = {
      {"model", Names{"model.w"} + kAdam, {"epoch", "optimizer.param_groups.0.lr"}},
      {"state_dict", {"state_dict.w", "optimizer_states.0.state.0.exp_avg"}, {"pytorch-lightning_version"}},
      {"model_state_dict", {"model_state_dict.w", "optimizer_state_dict.state.0.momentum_buffer"}, {}},
      {"module", {"module.w", "optimizer.fp32_flat_groups.0"}, {"dp_world_size"}},
      {"model", {"model.w", "last_optimizer_state.state.0.exp_avg"}, {"args.lr"}},
      {"model", {"model.language_model.embedding.w", "optimizer.optimizer.state.0.exp_avg"}, {"iteration"}},
      {"net", {"net.w", "optim.state.0.exp_avg"}, {}},
  };
  for (const auto& [root, names, values] : cases) {
    const Checkpoint checkpoint = checkpoint_of(names, values);
    EXPECT_TRUE(is_training_checkpoint(checkpoint)) << names[0];
    const TrainingParts parts = training_parts(checkpoint);
    EXPECT_EQ(parts.model.root, root);
    EXPECT_EQ(parts.model.tensors, 1u);
    ASSERT_EQ(parts.optimizers.size(), 1u) << names[0];
    EXPECT_EQ(parts.optimizers[0].bytes, (names.size() - 1) * 4);
    const Checkpoint model = model_only(checkpoint);
    EXPECT_EQ(names_of(model), Names{names[0].substr(root.size() + 1)});
  }
}

TEST(Training, LeavesAFlatStateDictAlone) {
  const Checkpoint checkpoint = checkpoint_of({"model.layers.0.w", "model.embed_tokens.w", "lm_head.w"});
  EXPECT_FALSE(is_training_checkpoint(checkpoint));
  const Checkpoint model = model_only(checkpoint);
  EXPECT_EQ(names_of(model), names_of(checkpoint));
  EXPECT_EQ(notes_of(model), "there is nothing in it but the model\n");
}

TEST(Training, TakesTheModelAndNamesTheAverage) {
  const Checkpoint checkpoint =
      checkpoint_of(Names{"state_dict.w", "state_dict_ema.w"} + kAdam, {"epoch"}, {"state_dict", "state_dict_ema"});
  const TrainingParts parts = training_parts(checkpoint);
  ASSERT_EQ(parts.averages.size(), 1u);
  EXPECT_EQ(parts.averages[0].root, "state_dict_ema");
  const Checkpoint model = model_only(checkpoint);
  EXPECT_EQ(names_of(model), Names{"w"});
  EXPECT_NE(notes_of(model).find("an average of the model is left out: \"state_dict_ema\""), std::string::npos);
  const auto names_root = [](const Note& note) {
    return note.hint.text() == "OpenOptions::root = \"state_dict_ema\" takes it instead";
  };
  EXPECT_EQ(std::ranges::count_if(model.notes, names_root), 1);
}

TEST(Training, TakesTheAverageIfThereIsNothingElse) {
  const Checkpoint model = model_only(checkpoint_of(Names{"ema.model.0.w"} + kAdam, {"epoch", "model"}, {"ema"}));
  EXPECT_EQ(names_of(model), Names{"model.0.w"});
  EXPECT_NE(notes_of(model).find("the model is the average \"ema\""), std::string::npos);
}

TEST(Training, KeepsTheSubtreesOfAModelThatHasSeveral) {
  const Checkpoint checkpoint = checkpoint_of(
      {"generator.w", "discriminator.w", "optimizer_g.state.0.exp_avg", "opt_d.state.0.exp_avg", "scheduler.last"},
      {"epoch"}, {"generator", "discriminator"});
  const Checkpoint model = model_only(checkpoint);
  EXPECT_EQ(names_of(model), (Names{"generator.w", "discriminator.w"}));
  EXPECT_EQ(training_parts(checkpoint).optimizers.size(), 2u);
}

TEST(Training, SaysThatAnOptimizerAloneHasNoModel) {
  const Checkpoint optimizer = checkpoint_of({"state.0.exp_avg", "state.0.step"}, {"param_groups.0.lr"});
  EXPECT_TRUE(is_training_checkpoint(optimizer));
  EXPECT_EQ(training_parts(optimizer).model.tensors, 0u);
  EXPECT_ERROR(model_only(optimizer), Errc::not_found, "only the state of an optimizer");
  const Checkpoint shard = checkpoint_of({"optimizer_state_dict.single_partition_of_fp32_groups.0"});
  EXPECT_ERROR(model_only(shard), Errc::not_found, "only the state of an optimizer");
}

TEST(Training, TakesWrappersFromTheNames) {
  const struct {
    Names names, expected;
  } cases[] = {
      {{"model.module.a", "model.module.b"}, {"a", "b"}},
      {{"model.module._orig_mod.a"}, {"a"}},
      {{"model._orig_mod.module.a"}, {"a"}},
      {{"model.module.a", "model.b"}, {"module.a", "b"}},  // not all of them
      {{"model.x._orig_mod.a", "model.x._fsdp_wrapped_module.b"}, {"x.a", "x.b"}},
      {{"model.x_orig_mod.a"}, {"x_orig_mod.a"}},                // no part of a name
      {{"model._orig_mod.a", "model.a"}, {"_orig_mod.a", "a"}},  // both would be called a
      {{"model.module."}, {"module."}},                          // nothing would be left
  };
  for (const auto& [names, expected] : cases)
    EXPECT_EQ(names_of(model_only(checkpoint_of(names + kAdam, {"epoch"}))), expected) << names[0];
}

TEST(Training, TakesModelFromTheNamesOfLightningOnly) {
  const Names lightning = {"optimizer_states.0.state.0.exp_avg"};
  const Names plain = {"state_dict.model.conv.weight", "state_dict.model.fc.weight"};
  EXPECT_EQ(names_of(model_only(checkpoint_of(plain + lightning))), (Names{"conv.weight", "fc.weight"}));
  EXPECT_EQ(names_of(model_only(checkpoint_of(plain + kAdam, {"epoch"}))),
            (Names{"model.conv.weight", "model.fc.weight"}));
  const Names hugging_face = {"state_dict.model.layers.0.mlp.weight", "state_dict.model.embed_tokens.weight"};
  const Checkpoint kept = model_only(checkpoint_of(hugging_face + lightning));
  EXPECT_EQ(names_of(kept), (Names{"model.layers.0.mlp.weight", "model.embed_tokens.weight"}));
  EXPECT_NE(notes_of(kept).find("every name begins with \"model.\", which is kept"), std::string::npos);
}

TEST(Training, KeepsValuesButThoseOfTheOptimizer) {
  const Checkpoint model =
      model_only(checkpoint_of(Names{"model.w"} + kAdam, {"epoch", "optimizer.param_groups.0.lr", "model.note"}));
  ASSERT_EQ(model.values.size(), 2u);
  EXPECT_EQ(model.values[0].path, "epoch");
  EXPECT_EQ(model.values[1].path, "note");
}

TEST(Training, KeepsTiedTensorsTied) {
  Checkpoint checkpoint = checkpoint_of(Names{"model.a"} + kAdam);
  checkpoint.tensors.insert("model.b", checkpoint.at("model.a"));
  EXPECT_EQ(training_parts(checkpoint).tied, Names{"b"});
  EXPECT_EQ(training_parts(checkpoint).model.bytes, 4u);
  const Checkpoint model = model_only(checkpoint);
  EXPECT_EQ(model.at("a").storage(), model.at("b").storage());
}

TEST(Training, ReadsWhatReferenceProgramsWrote) {
  const Checkpoint lightning = open(test::vector_path("torch2/lightning_like.ckpt"));
  const TrainingParts parts = training_parts(lightning);
  EXPECT_EQ(parts.model.root, "state_dict");
  ASSERT_EQ(parts.optimizers.size(), 1u);
  EXPECT_EQ(parts.optimizers[0].root, "optimizer_states");
  EXPECT_EQ(model_only(lightning).size(), parts.model.tensors);
  EXPECT_ERROR(model_only(open(test::vector_path("torch2/optimizer_adam.pt"))), Errc::not_found, "no model");
  EXPECT_EQ(model_only(open(test::vector_path("torch2/checkpoint_nested.pt"))).size(), 4u);
}

TEST(Training, TakesTimeThatGrowsWithTheNumberOfSubtrees) {
  Names names;
  for (int i = 0; i < 50'000; ++i) {
    names.push_back("opt_" + std::to_string(i) + ".state.0.exp_avg");
    names.push_back("other_" + std::to_string(i) + ".w");
  }
  names.push_back("model.w");
  const Checkpoint model = model_only(checkpoint_of(names));
  EXPECT_EQ(names_of(model), Names{"w"});
  EXPECT_LT(notes_of(model).size(), 2000u);
}

}  // namespace
}  // namespace ballast
