// Adapters whose initialisation changed the base are refused, or made into plain LoRAs.
#include <gtest/gtest.h>

#include <cmath>

#include <ballast/merge.hpp>
#include <ballast/open.hpp>

#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using test::bytes_of;
using test::config_of;
using test::counting;
using test::small_lora;
using test::state_of;

Adapter begun_with(const Json& initialisation) {
  Adapter adapter = small_lora();
  adapter.config.fields.set("init_lora_weights", initialisation);
  return adapter;
}

Adapter before_training() {
  Adapter adapter = small_lora();
  for (const char* half : {"A", "B"}) {
    const std::string name = std::string("base_model.model.q.lora_") + half + ".weight";
    adapter.tensors.replace(name, counting(adapter.tensors.at(name).shape(), -7));
  }
  return adapter;
}

Checkpoint plain_base() {
  Checkpoint base;
  base.tensors = state_of({{"q.weight", {4, 3}}});
  return base;
}

TEST(AdapterOfAChangedBase, IsRefusedOnTheOriginalBase) {
  for (const char* init : {"pissa", "pissa_niter_16", "olora", "OLoRA", "corda", "lora_ga", "loftq", "something new"}) {
    const Adapter adapter = begun_with(init);
    EXPECT_ERROR(merge(plain_base(), {adapter}), Errc::unsupported, "\"init_lora_weights\" is") << init;
    EXPECT_ERROR(set_adapter_state_dict(plain_base().tensors, adapter.tensors, adapter.config), Errc::unsupported,
                 "does not belong to the base as it was")
        << init;
    test::TempDir dir;
    EXPECT_ERROR(save_adapter(adapter, dir / "x.safetensors", {.dialect = AdapterDialect::kohya}), Errc::unsupported,
                 "\"init_lora_weights\" is");
    ASSERT_EQ(find_problems(adapter).size(), 1u) << init;
    EXPECT_TRUE(find_problems(adapter)[0].is_harmless) << "it can be looked at, and copied";
  }
  EXPECT_HINT(merge(plain_base(), {begun_with("pissa")}), "AdapterLoadOptions::initial_adapter");
  Adapter kasa = small_lora();
  kasa.config.fields.set("kasa_config", Json::Members{{"beta", 0.1}});
  EXPECT_ERROR(merge(plain_base(), {kasa}), Errc::unsupported, "KaSA");
}

TEST(AdapterOfAChangedBase, IsNotMadeByOtherInitialisations) {
  for (const Json& init :
       {Json(true), Json(false), Json("gaussian"), Json("eva"), Json("orthogonal"), Json("mica"), Json()}) {
    EXPECT_EQ(merge(plain_base(), {begun_with(init)}).size(), 1u);
    EXPECT_TRUE(find_problems(begun_with(init)).empty());
  }
}

TEST(AdapterOfAChangedBase, IsAcceptedByAModelThatHasTheAdapterAlready) {
  StateDict state = state_of({{"base_model.model.q.base_layer.weight", {4, 3}},
                              {"base_model.model.q.lora_A.default.weight", {2, 3}},
                              {"base_model.model.q.lora_B.default.weight", {4, 2}}});
  const Adapter adapter = begun_with("pissa");
  EXPECT_EQ(set_adapter_state_dict(state, adapter.tensors, adapter.config).state.size(), 3u);
}

// The result is W - s B0 A0 + s B A, computed in one step and in two.
TEST(InitialAdapter, IsSubtractedFromTheTrainedOne) {
  for (const bool is_rslora : {false, true}) {
    Adapter trained = begun_with("pissa"), initial = before_training();
    for (Adapter* adapter : {&trained, &initial}) adapter->config.fields.set("use_rslora", is_rslora);
    const Adapter plain = subtract_initial(trained, initial);
    EXPECT_EQ(plain.config.fields.at("r").integer(), 4);
    EXPECT_NEAR(plain.config.fields.at("lora_alpha").number(), is_rslora ? 4 * std::sqrt(2.0) : 8, 1e-12);
    EXPECT_EQ(plain.config.fields.at("init_lora_weights"), Json(true));
    EXPECT_EQ(plain.tensors.at("base_model.model.q.lora_A.weight").shape(), (Shape{4, 3}));
    EXPECT_EQ(plain.tensors.at("base_model.model.q.lora_B.weight").shape(), (Shape{4, 4}));

    trained.config.fields.set("init_lora_weights", true);
    const Checkpoint residual = merge(plain_base(), {initial}, {.weights = {-1}});
    const auto expected = test::values_of(merge(residual, {trained}).at("q.weight"));
    const auto found = test::values_of(merge(plain_base(), {plain}).at("q.weight"));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-2 * std::abs(expected[i]));
  }
}

TEST(InitialAdapter, DoublesThePatternsOfOtherRanks) {
  Adapter trained = begun_with("olora"), initial = before_training();
  trained.config.fields.set("r", 16);
  trained.config.fields.set("rank_pattern", Json::Members{{"q", 2}});
  trained.config.fields.set("alpha_pattern", Json::Members{{"q", 3}});
  trained.config.fields.set("use_rslora", true);
  const AdapterConfig config = subtract_initial(trained, initial).config;
  EXPECT_EQ(lora_rank(config, "q"), 4);
  EXPECT_EQ(config.fields.at("r").integer(), 32);
  EXPECT_NEAR(lora_scaling(config, "q"), lora_scaling(trained.config, "q"), 1e-12);
}

TEST(InitialAdapter, MustBeTheSameAdapterAtAnotherTime) {
  const auto with = [](auto change) {
    Adapter initial = before_training();
    change(initial.tensors);
    return initial;
  };
  const std::string a = "base_model.model.q.lora_A.weight";
  EXPECT_ERROR(subtract_initial(begun_with("pissa"), with([&](StateDict& t) {
                                  t.replace(a, counting({3, 3}));
                                })),
               Errc::mismatch, "has the shape [3, 3] in the initial adapter and [2, 3] in the trained one");
  EXPECT_ERROR(subtract_initial(begun_with("pissa"), with([&](StateDict& t) {
                                  t.insert("base_model.model.k.lora_A.weight", counting({2, 3}));
                                })),
               Errc::mismatch,
               "the initial adapter has \"base_model.model.k.lora_A.weight\", and the trained one does not");
  EXPECT_ERROR(subtract_initial(begun_with("pissa"), {}), Errc::mismatch, "and the initial one does not");
  EXPECT_ERROR(subtract_initial(begun_with("loftq"), before_training()), Errc::unsupported, "LoftQ quantized");
  Adapter experts = begun_with("pissa");
  experts.config.fields.set("target_parameters", Json::List{"mlp.experts"});
  EXPECT_ERROR(subtract_initial(experts, before_training()), Errc::unsupported, "target_parameters");
}

TEST(InitialAdapter, GivesTheAdapterThatPeftConverts) {
  const auto path = [](const std::string& file) { return test::vector_path("peft/lora_pissa_converted/" + file); };
  const Adapter expected = load_adapter(path("adapter"));
  const Adapter loaded = load_adapter(path("residual_adapter"), {.initial_adapter = path("initial")});
  EXPECT_EQ(to_string(loaded.config), to_string(expected.config));

  // The adapter is extracted from the adapted model, with the configuration of the result.
  Adapter extracted;
  extracted.config = expected.config;
  extracted.tensors = get_adapter_state_dict(open(path("adapted_state_dict.safetensors")).tensors, extracted.config);
  extracted = subtract_initial(extracted, load_adapter(path("initial")));
  EXPECT_EQ(to_string(extracted.config), to_string(expected.config));

  for (const Adapter* found : {&loaded, &std::as_const(extracted)}) {
    ASSERT_EQ(test::sorted_names(found->tensors), test::sorted_names(expected.tensors));
    for (const auto& [name, tensor] : expected.tensors)
      EXPECT_EQ(bytes_of(found->tensors.at(name)), bytes_of(tensor)) << name;
  }
}

}  // namespace
}  // namespace ballast
