#include <gtest/gtest.h>

#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::config_of;
using test::small_lora;
using test::sorted_names;
using test::state_of;
using test::values_of;
using Names = std::vector<std::string>;

StateDict base() { return state_of({{"q.weight", {4, 3}}, {"k.weight", {4, 3}}, {"c.head.weight", {2, 2}}}); }

SetAdapterResult set(const StateDict& state, const Adapter& adapter, std::string_view name = "default",
                     const SetAdapterOptions& options = {}) {
  return set_adapter_state_dict(state, adapter.tensors, adapter.config, name, options);
}

TEST(SetAdapter, WrapsWhatTheAdapterChangesAndNothingElse) {
  const SetAdapterResult result = set(base(), small_lora());
  EXPECT_EQ(
      sorted_names(result.state),
      Names({"base_model.model.c.head.weight", "base_model.model.k.weight", "base_model.model.q.base_layer.weight",
             "base_model.model.q.lora_A.default.weight", "base_model.model.q.lora_B.default.weight"}));
}

TEST(SetAdapter, TakesASecondAdapterWhoseNameBeginsLikeTheFirst) {
  const SetAdapterResult one = set(base(), small_lora(), "a");
  const SetAdapterResult two = set(one.state, small_lora(), "ab");
  EXPECT_EQ(two.state.size(), one.state.size() + 2);
  EXPECT_EQ(two.missing, Names());
  EXPECT_TRUE(two.state.contains("base_model.model.q.base_layer.weight"));
  EXPECT_TRUE(two.state.contains("base_model.model.q.lora_A.a.weight"));
  EXPECT_TRUE(two.state.contains("base_model.model.q.lora_A.ab.weight"));
}

TEST(SetAdapter, PutsModulesToSaveBesideTheirOriginals) {
  Adapter adapter = small_lora(R"({"peft_type": "LORA", "r": 2, "modules_to_save": ["c"]})");
  adapter.tensors.insert("base_model.model.c.head.weight", test::counting({2, 2}, 7));
  const SetAdapterResult result = set(base(), adapter);
  EXPECT_EQ(result.missing, Names());
  EXPECT_EQ(values_of(result.state.at("base_model.model.c.modules_to_save.default.head.weight"))[0], 7);
  EXPECT_EQ(values_of(result.state.at("base_model.model.c.original_module.head.weight"))[0], 301);
  EXPECT_EQ(sorted_names(get_adapter_state_dict(result.state, adapter.config)), sorted_names(adapter.tensors));
}

TEST(SetAdapter, MissesAModuleThatShouldHaveBeenSavedWhole) {
  const SetAdapterResult result = set(base(), small_lora(R"({"peft_type": "LORA", "r": 2, "modules_to_save": ["c"]})"));
  EXPECT_EQ(result.missing, Names({"base_model.model.c.modules_to_save.default.head.weight"}));
}

TEST(SetAdapter, KnowsBothSpellingsOfABias) {
  StateDict with_bias = base();
  with_bias.insert("q.bias", test::counting({4}));
  for (const char* name : {"base_model.model.q.bias", "base_model.model.q.base_layer.bias"}) {
    Adapter adapter = small_lora(R"({"peft_type": "LORA", "r": 2, "bias": "lora_only"})");
    adapter.tensors.insert(name, test::counting({4}, 50));
    const SetAdapterResult result = set(with_bias, adapter);
    EXPECT_EQ(result.unexpected, Names());
    EXPECT_EQ(values_of(result.state.at("base_model.model.q.base_layer.bias"))[0], 50);
  }
}

TEST(SetAdapter, MissesTheOtherHalfOfAPair) {
  Adapter adapter = small_lora();
  adapter.tensors = state_of({{"base_model.model.q.lora_A.weight", {2, 3}}});
  EXPECT_EQ(set(base(), adapter).missing, Names({"base_model.model.q.lora_B.default.weight"}));
}

TEST(SetAdapter, MissesAModuleThatTheConfigurationMeans) {
  const Adapter adapter = small_lora(R"({"peft_type": "LORA", "r": 2, "target_modules": ["q", "k"]})");
  EXPECT_EQ(set(base(), adapter).missing,
            Names({"base_model.model.k.lora_A.default.weight", "base_model.model.k.lora_B.default.weight"}));
}

TEST(SetAdapter, LeavesOutTensorsThatDoNotFitIfAsked) {
  Adapter adapter = small_lora();
  adapter.tensors =
      state_of({{"base_model.model.q.lora_A.weight", {2, 5}}, {"base_model.model.q.lora_B.weight", {4, 2}}});
  EXPECT_ERROR(set(base(), adapter), Errc::mismatch, "has the shape [2, 5] in the adapter, but the model needs [2, 3]");
  const SetAdapterResult result = set(base(), adapter, "default", {.ignore_mismatched_sizes = true});
  EXPECT_EQ(result.mismatched, Names({"base_model.model.q.lora_A.default.weight"}));
  EXPECT_EQ(result.missing, result.mismatched);
}

TEST(SetAdapter, MakesRoomForTheRanksThatAdaLoraKept) {
  const AdapterConfig config = config_of(R"({"peft_type": "ADALORA", "init_r": 3, "rank_pattern": {
      "q.lora_E": [true, false, true], "k.lora_E.default": [false, false, false]}})");
  std::vector<std::pair<std::string, Shape>> full, cut;
  for (const auto& [module, ranks] : {std::pair("q", 2u), std::pair("k", 0u)}) {
    const std::string at = "base_model.model." + std::string(module);
    full.insert(full.end(), {{at + ".base_layer.weight", {4, 5}},
                             {at + ".lora_A.default", {3, 5}},
                             {at + ".lora_B.default", {4, 3}},
                             {at + ".lora_E.default", {3, 1}},
                             {at + ".ranknum.default", {1}}});
    cut.insert(cut.end(), {{at + ".lora_A", {ranks, 5}}, {at + ".lora_B", {4, ranks}}, {at + ".lora_E", {ranks, 1}}});
  }
  const StateDict file = state_of(cut);
  const SetAdapterResult set = set_adapter_state_dict(state_of(full), file, config);
  EXPECT_TRUE(set.missing.empty() && set.unexpected.empty() && set.mismatched.empty());
  EXPECT_EQ(set.state.size(), full.size());
  EXPECT_EQ(set.state.at("base_model.model.q.lora_A.default").shape(), (Shape{2, 5}));
  EXPECT_EQ(test::values_of(set.state.at("base_model.model.q.lora_B.default")),
            test::values_of(file.at("base_model.model.q.lora_B")));
  EXPECT_EQ(set.state.at("base_model.model.k.lora_B.default").shape(), (Shape{4, 0}));
  EXPECT_EQ(test::values_of(set.state.at("base_model.model.k.ranknum.default")), std::vector<float>{0});

  const StateDict plain = state_of({{"q.weight", {4, 5}}, {"k.weight", {4, 5}}});
  EXPECT_EQ(sorted_names(set_adapter_state_dict(plain, file, config).state), sorted_names(set.state));
}

TEST(SetAdapter, ReplicatesLayers) {
  const StateDict layers = state_of({{"model.layers.0.q.weight", {4, 3}}, {"model.layers.1.q.weight", {4, 3}}});
  Adapter adapter = small_lora(R"({"peft_type": "LORA", "r": 2, "layer_replication": [[0, 2], [0, 1]]})");
  adapter.tensors = state_of({{"base_model.model.model.layers.2.q.lora_A.weight", {2, 3}},
                              {"base_model.model.model.layers.2.q.lora_B.weight", {4, 2}}});
  const SetAdapterResult result = set(layers, adapter);
  EXPECT_EQ(values_of(result.state.at("base_model.model.model.layers.2.q.base_layer.weight")),
            values_of(layers.at("model.layers.0.q.weight")));
}

struct Bad {
  const char* config;
  std::vector<std::pair<std::string, Shape>> tensors;
  const char* name;
  Errc code;
  const char* text;
};
TEST(SetAdapter, SaysWhatIsWrongWithBadInput) {
  const std::pair<std::string, Shape> a = {"base_model.model.q.lora_A.weight", {2, 3}};
  const Bad table[] = {
      {R"({"peft_type": "LORA"})",
       {{"base_model.model.elsewhere.lora_A.weight", {2, 3}}},
       "default",
       Errc::mismatch,
       "none of the 1 tensors of the adapter has a place in the model, such as \"base_model.model.elsewhere"},
      {R"({"peft_type": "LORA"})", {a}, "a.b", Errc::invalid_argument, "an adapter cannot be called \"a.b\""},
      {R"({"peft_type": "LORA"})", {a}, "", Errc::invalid_argument, "an adapter cannot be called \"\""},
      {R"({"peft_type": "LORA", "modules_to_save": 5.5})", {a}, "default", Errc::malformed, "must be a list of names"},
      {R"({"peft_type": "OFT"})",
       {{"base_model.model.q.oft_r.weight", {2}}},
       "default",
       Errc::unsupported,
       "the OFT of old releases"},
      {R"({"peft_type": "VERA", "save_projection": true})",
       {{"base_model.model.q.vera_lambda_b", {4}}},
       "default",
       Errc::mismatch,
       "\"save_projection\" is set, but the adapter holds none of vera_A vera_B"},
      {R"({"peft_type": "VBLORA"})",
       {{"base_model.model.q.vblora_logits_A_topk_indices", {2, 2}}},
       "default",
       Errc::malformed,
       "no weights or no vector bank"},
      {R"({"peft_type": "LORA", "layer_replication": [[0]]})", {a}, "default", Errc::malformed, "pairs of numbers"},
      {R"({"peft_type": "LORA", "layer_replication": [[0, 9000000000]]})",
       {a},
       "default",
       Errc::limit,
       "too many layers"},
      {R"({"peft_type": "UNILORA", "target_modules": "("})",
       {{"base_model.unilora_theta_d", {4}}},
       "default",
       Errc::unsupported,
       "target_modules"},
  };
  for (const Bad& bad : table)
    EXPECT_ERROR(set_adapter_state_dict(base(), state_of(bad.tensors), config_of(bad.config), bad.name), bad.code,
                 bad.text);
}

TEST(SetAdapter, TakesOnlyIntegersAsTheIndicesOfVectors) {
  const std::string logits = "base_model.model.q.vblora_logits_A";
  for (const DType dtype : {DType::c128, DType::c64, DType::f32, DType::boolean}) {
    StateDict file = state_of({{"base_model.vblora_vector_bank", {4, 2}}, {logits + "_topk_weights", {2, 2, 1}}});
    file.insert(logits + "_topk_indices",
                Tensor::from_bytes(dtype, {2, 2, 2}, std::vector<std::byte>(*bytes_of(dtype, 8))));
    EXPECT_ERROR(set_adapter_state_dict(base(), file, config_of(R"({"peft_type": "VBLORA"})"), "default"),
                 Errc::mismatch, "do not belong together");
  }
}

}  // namespace
}  // namespace ballast
