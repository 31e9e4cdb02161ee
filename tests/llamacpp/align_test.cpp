// Two checkpoints of one model under the same names.
#include <ballast/align.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using Names = std::vector<std::string>;

Checkpoint named(const Names& names) {
  Checkpoint checkpoint;
  for (const std::string& name : names)
    checkpoint.tensors.insert(name, Tensor::from_values<float>(DType::f32, {1}, std::vector<float>{1}));
  return checkpoint;
}

Names names_of(const Checkpoint& checkpoint) {
  Names names;
  for (const auto& [name, tensor] : checkpoint) names.emplace_back(name);
  return names;
}

// A llama of two heads with four rows each, as llama.cpp has it.
Checkpoint llama_gguf(const std::vector<float>& queries) {
  Checkpoint gguf;
  gguf.format = Format::gguf;
  gguf.target = "model.gguf";
  gguf.typed_metadata.set(MetadataEntry::of("general.architecture", "llama"));
  gguf.typed_metadata.set_from_text("llama.attention.head_count", "2");
  gguf.typed_metadata.set_from_text("llama.attention.head_count_kv", "2");
  gguf.tensors.insert("blk.0.attn_q.weight", Tensor::from_values<float>(DType::f32, {8, 1}, queries));
  gguf.tensors.insert("token_embd.weight", Tensor::from_values<float>(DType::f32, {1}, std::vector<float>{7}));
  return gguf;
}

Checkpoint llama_huggingface(const std::string& prefix = "") {
  Checkpoint model;
  const std::vector<float> queries = {0, 1, 2, 3, 4, 5, 6, 7};
  model.tensors.insert(prefix + "model.layers.0.self_attn.q_proj.weight",
                       Tensor::from_values<float>(DType::f32, {8, 1}, queries));
  model.tensors.insert(prefix + "model.embed_tokens.weight",
                       Tensor::from_values<float>(DType::f32, {1}, std::vector<float>{7}));
  return model;
}

const std::vector<float> kPermuted = {0, 2, 1, 3, 4, 6, 5, 7};

TEST(Align, GivesAGgufTheNamesAndValuesOfHuggingFace) {
  for (const bool is_gguf_first : {true, false}) {
    const Checkpoint gguf = llama_gguf(kPermuted), model = llama_huggingface();
    const Aligned both = is_gguf_first ? align(gguf, model) : align(model, gguf);
    EXPECT_EQ(both.style, NameStyle::huggingface);
    EXPECT_EQ(both.notes.size(), 1u);
    const std::string name = "model.layers.0.self_attn.q_proj.weight";
    EXPECT_EQ(test::values_of<float>(both.a.at(name)), test::values_of<float>(both.b.at(name)));
    EXPECT_TRUE(both.a.contains("model.embed_tokens.weight") && both.b.contains("model.embed_tokens.weight"));
  }
}

TEST(Align, KeepsAllIfItIsToldTo) {
  const Aligned both = align(llama_gguf(kPermuted), llama_huggingface(), {.names = AlignNames::keep});
  EXPECT_EQ(names_of(both.a), (Names{"blk.0.attn_q.weight", "token_embd.weight"}));
  EXPECT_TRUE(both.notes.empty());
  EXPECT_EQ(align(named({"m.a"}), named({"a"}), {.names = AlignNames::keep}).prefix, "");
}

TEST(Align, GivesBothTheNamesThatAreAskedFor) {
  const Aligned gguf = align(llama_gguf(kPermuted), llama_huggingface(), {.names = AlignNames::gguf});
  EXPECT_EQ(test::values_of<float>(gguf.b.at("blk.0.attn_q.weight")), kPermuted);
  const Aligned two = align(llama_gguf(kPermuted), llama_gguf(kPermuted), {.names = AlignNames::huggingface});
  EXPECT_TRUE(two.a.contains("model.embed_tokens.weight") && two.b.contains("model.embed_tokens.weight"));
  EXPECT_ERROR(align(named({"a"}), named({"b"}), {.names = AlignNames::gguf}), Errc::invalid_argument, "architecture");
}

TEST(Align, FindsAPrefixBehindOtherNames) {
  const Aligned both = align(llama_gguf(kPermuted), llama_huggingface("_orig_mod."));
  EXPECT_EQ(both.style, NameStyle::huggingface);
  EXPECT_EQ(both.prefix, "_orig_mod.");
  EXPECT_TRUE(both.b.contains("model.embed_tokens.weight"));
}

TEST(Align, LeavesAGgufAloneIfTheOtherNamesAreOfAnotherModel) {
  const Aligned both = align(llama_gguf(kPermuted), named({"x", "y"}));
  EXPECT_TRUE(both.a.contains("blk.0.attn_q.weight"));
  EXPECT_EQ(both.style, std::nullopt);
}

TEST(Align, SaysWhyNamesAreKept) {
  Checkpoint gguf = llama_gguf(kPermuted);
  gguf.typed_metadata.remove("llama.attention.head_count");
  gguf.typed_metadata.remove("llama.attention.head_count_kv");
  const Aligned both = align(gguf, llama_huggingface());
  ASSERT_EQ(both.notes.size(), 1u);
  EXPECT_NE(both.notes[0].text.find("names of llama.cpp are kept"), std::string::npos) << both.notes[0].text;
}

TEST(Align, MatchesNamesThatHaveAPrefixOnOneSide) {
  const Aligned first = align(named({"model.a.w", "model.b.w", "head"}), named({"a.w", "b.w"}));
  EXPECT_EQ(first.prefix, "model.");
  EXPECT_EQ(names_of(first.b), (Names{"model.a.w", "model.b.w"}));
  const Aligned second = align(named({"a.w", "b.w"}), named({"base_model.model.a.w", "base_model.model.b.w"}));
  EXPECT_EQ(second.prefix, "base_model.model.");
  EXPECT_EQ(names_of(second.b), (Names{"a.w", "b.w"}));
  EXPECT_EQ(second.notes.size(), 1u);
}

TEST(Align, NeverGuessesAPrefix) {
  // Both would do.
  EXPECT_EQ(align(named({"encoder.w", "decoder.w"}), named({"w"})).prefix, "");
  // Too few names are found.
  EXPECT_EQ(align(named({"m.a", "m.b", "c"}), named({"a", "d", "e"})).prefix, "");
  // They are the same already.
  EXPECT_EQ(align(named({"a", "b", "m.a", "m.b"}), named({"a", "b"})).prefix, "");
  // Two tensors would get one name.
  EXPECT_EQ(align(named({"a", "m.a", "m.b"}), named({"m.m.a", "m.m.b", "m.a"})).b.size(), 3u);
  EXPECT_EQ(align(named({}), named({"a"})).prefix, "");
  EXPECT_EQ(align(named({"", ".", "..", std::string(100'000, '.')}), named({"x"})).prefix, "");
}

}  // namespace
}  // namespace ballast
