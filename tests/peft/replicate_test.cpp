// layer_replication is the same in a model that an adapter is injected into and in one that it is merged into.
#include <gtest/gtest.h>

#include <ballast/merge.hpp>

#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::state_of;

// Two layers in every list that is named, each with a matrix q, and a tensor outside of the layers.
StateDict layers_in(const std::vector<std::string>& lists) {
  std::vector<std::pair<std::string, Shape>> tensors = {{"embed.weight", {4, 3}}};
  for (const std::string& list : lists) {
    for (const char* number : {"0", "1"}) tensors.emplace_back(list + "." + number + ".q.weight", Shape{4, 3});
  }
  return state_of(tensors);
}

// A LoRA of rank 2 at the last copy, layer 2, which is layer 0 of the base.
Adapter adapter_at(const std::string& list, const char* ranges = "[[0, 2], [0, 1]]") {
  Adapter adapter;
  adapter.config = test::config_of(R"({"peft_type": "LORA", "r": 2, "target_modules": ["q"], "layer_replication": )" +
                                   std::string(ranges) + "}");
  const std::string module = "base_model.model." + list + ".2.q.";
  adapter.tensors = state_of({{module + "lora_A.weight", {2, 3}}, {module + "lora_B.weight", {4, 2}}});
  return adapter;
}

Checkpoint checkpoint_of(const StateDict& tensors) {
  Checkpoint checkpoint;
  checkpoint.tensors = tensors;
  return checkpoint;
}

// The names of the merged model, and those of the injected one without what PEFT puts around them.
std::vector<std::string> merged_names(const StateDict& base, const Adapter& adapter) {
  return test::sorted_names(merge(checkpoint_of(base), {adapter}).tensors);
}
std::vector<std::string> injected_names(const StateDict& base, const Adapter& adapter) {
  std::vector<std::string> names;
  for (std::string name : test::sorted_names(inject_adapter(checkpoint_of(base), adapter).model.tensors)) {
    if (name.find("lora_") != std::string::npos) continue;
    name = name.substr(std::string("base_model.model.").size());
    if (const std::size_t at = name.find(".base_layer"); at != std::string::npos) name.erase(at, 11);
    names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

TEST(LayerReplication, GivesTheSameLayersInInjectAndMerge) {
  for (const std::string list : {"model.layers", "layers", "model.decoder.layers", "decoder.layers", "transformer.h",
                                 "bert.encoder.layer", "model.model.layers"}) {
    const std::vector<std::string> expected = {"embed.weight", list + ".0.q.weight", list + ".1.q.weight",
                                               list + ".2.q.weight"};
    auto sorted = expected;
    std::ranges::sort(sorted);
    const StateDict base = layers_in({list});
    EXPECT_EQ(merged_names(base, adapter_at(list)), sorted);
    EXPECT_EQ(injected_names(base, adapter_at(list)), sorted);
  }
}

TEST(LayerReplication, MergesEachCopyOnItsOwn) {
  const StateDict base = layers_in({"decoder.layers"});
  const Checkpoint merged = merge(checkpoint_of(base), {adapter_at("decoder.layers")});
  EXPECT_EQ(test::values_of(merged.at("decoder.layers.0.q.weight")),
            test::values_of(base.at("decoder.layers.0.q.weight")));
  EXPECT_NE(test::values_of(merged.at("decoder.layers.2.q.weight")),
            test::values_of(base.at("decoder.layers.0.q.weight")));
}

TEST(LayerReplication, MeansTheLayersThatPeftWouldFind) {
  const StateDict base = layers_in({"model.layers", "vision.encoder.layers"});
  const Adapter adapter = adapter_at("model.layers");
  EXPECT_EQ(merged_names(base, adapter), injected_names(base, adapter));
  EXPECT_EQ(merged_names(base, adapter).size(), base.size() + 1);
}

TEST(LayerReplication, WithoutRangesChangesNothing) {
  const StateDict base = layers_in({"model.layers"});
  Adapter adapter = adapter_at("model.layers", "[]");
  adapter.tensors = state_of({{"base_model.model.model.layers.1.q.lora_A.weight", {2, 3}},
                              {"base_model.model.model.layers.1.q.lora_B.weight", {4, 2}}});
  EXPECT_EQ(merged_names(base, adapter), test::sorted_names(base));
  EXPECT_EQ(injected_names(base, adapter), test::sorted_names(base));
}

TEST(LayerReplication, IsRefusedIfItsLayersAreNotThereOrNotKnown) {
  const auto refused = [](const StateDict& base, const Adapter& adapter, Errc code, const char* why) {
    EXPECT_ERROR(merge(checkpoint_of(base), {adapter}), code, why);
    EXPECT_ERROR(inject_adapter(checkpoint_of(base), adapter), code, why);
  };
  refused(layers_in({"encoder.layers", "decoder.layers"}), adapter_at("decoder.layers"), Errc::unsupported,
          "not known whether it means the layers \"decoder.layers.\" or \"encoder.layers.\"");
  refused(layers_in({}), adapter_at("model.layers"), Errc::mismatch, "the base has no layers");
  refused(layers_in({"model.layers"}), adapter_at("model.layers", "[[0, 3]]"), Errc::mismatch, "asks for layer 2");
}

}  // namespace
}  // namespace ballast
