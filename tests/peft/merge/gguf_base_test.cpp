// merge() into a GGUF base with the names of llama.cpp gives what `ballast adapter merge` writes: the base with the
// names of Hugging Face, merged, and with its own names again.
#include <gtest/gtest.h>

#include <ballast/merge.hpp>
#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/transform.hpp>

#include "builders/temp_dir.hpp"
#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

const std::string kAttention = "model.layers.0.self_attn.";

NameOptions llama() { return {.architecture = "llama", .head_count = 4, .head_count_kv = 2}; }

// The rows of queries and keys go by heads, which llama.cpp reorders.
Checkpoint llama_base() {
  Checkpoint base;
  base.tensors = test::state_of({{kAttention + "q_proj.weight", {16, 32}},
                                 {kAttention + "k_proj.weight", {8, 32}},
                                 {kAttention + "o_proj.weight", {32, 16}}});
  return base;
}

Adapter query_key_lora() {
  Adapter adapter;
  adapter.config = test::config_of(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["q_proj"]})");
  for (const auto& [module, rows] : {std::pair("q_proj.", 16u), std::pair("k_proj.", 8u)}) {
    const std::string at = "base_model.model." + kAttention + module;
    adapter.tensors.insert(at + "lora_A.weight", test::counting({2, 32}, -8));
    adapter.tensors.insert(at + "lora_B.weight", test::counting({rows, 2}, -3));
  }
  adapter.source = "lora";
  return adapter;
}

class MergeIntoGguf : public testing::Test {
 protected:
  // A base in a file of its own, with the metadata that a GGUF has.
  Checkpoint gguf_base(DType dtype = DType::f32) {
    save(cast(to_names(llama_base(), NameStyle::gguf, llama()), dtype), dir / "base.gguf", {.overwrite = true});
    return open(dir / "base.gguf");
  }

  static void expect_same(const Checkpoint& found, const Checkpoint& expected) {
    ASSERT_EQ(test::sorted_names(found.tensors), test::sorted_names(expected.tensors));
    for (const auto& [name, tensor] : expected)
      EXPECT_EQ(test::bytes_of(found.at(name)), test::bytes_of(tensor)) << name;
  }

  const Checkpoint expected = to_names(merge(llama_base(), {query_key_lora()}), NameStyle::gguf, llama());
  test::TempDir dir;
};

TEST_F(MergeIntoGguf, KeepsItsNamesAndTheOrderOfItsRows) {
  const Checkpoint merged = merge(gguf_base(), {query_key_lora()});
  EXPECT_TRUE(merged.contains("blk.0.attn_q.weight"));
  expect_same(merged, expected);
  EXPECT_EQ(test::values_of(merged.at("blk.0.attn_output.weight")),
            test::values_of(llama_base().at(kAttention + "o_proj.weight")));

  save(merged, dir / "merged.gguf");
  expect_same(open(dir / "merged.gguf"), expected);
}

TEST_F(MergeIntoGguf, EncodesItsBlocksAgain) {
  const Checkpoint merged = merge(gguf_base(DType::q8_0), {query_key_lora()});
  const Tensor& queries = merged.at("blk.0.attn_q.weight");
  EXPECT_EQ(queries.dtype(), DType::q8_0);
  const std::vector<float> found = test::values_of(queries.to(DType::f32));
  const std::vector<float> wanted = test::values_of(expected.at("blk.0.attn_q.weight"));
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 20) << i;  // the values go up to 2000
}

TEST_F(MergeIntoGguf, GivesAdaptersOfOtherDialectsTheNamesAndHeadsThatTheyLack) {
  const Adapter lora = query_key_lora();
  save_adapter(lora, dir / "lora.gguf", {.dialect = AdapterDialect::gguf, .names = llama()});
  save_adapter(lora, dir / "flat.safetensors", {.dialect = AdapterDialect::kohya});
  const Checkpoint base = gguf_base();
  for (const char* file : {"lora.gguf", "flat.safetensors"}) {
    SCOPED_TRACE(file);
    expect_same(merge(base, {load_adapter(dir / file, for_base(base))}), expected);
  }
  EXPECT_EQ(for_base(base).names.head_count_kv, 2u);
  EXPECT_EQ(for_base(base).base_names.front(), kAttention + "q_proj.weight");
}

TEST_F(MergeIntoGguf, TakesTheHeadsFromTheOptionsIfTheFileDoesNotStateThem) {
  Checkpoint base = gguf_base();
  for (const char* field : {"llama.attention.head_count", "llama.attention.head_count_kv"})
    base.typed_metadata.remove(field);
  EXPECT_ERROR(merge(base, {query_key_lora()}), Errc::invalid_argument, "llama.attention.head_count");
  expect_same(merge(base, {query_key_lora()}, {.names = llama()}), expected);
}

TEST_F(MergeIntoGguf, HasTheNamesOfHuggingFaceIfAnAdapterIsInjected) {
  const InjectedAdapter injected = inject_adapter(gguf_base(), query_key_lora());
  EXPECT_EQ(test::values_of(injected.model.at("base_model.model." + kAttention + "k_proj.base_layer.weight")),
            test::values_of(llama_base().at(kAttention + "k_proj.weight")));
  EXPECT_TRUE(injected.missing.empty() && injected.unexpected.empty());
}

}  // namespace
}  // namespace ballast
