// Names both ways: Hugging Face's and GGUF's, and the values that change with them.
#include <gtest/gtest.h>

#include <ballast/names.hpp>
#include <ballast/transform.hpp>

#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "llamacpp/names/match.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::bytes_of;
using test::names_of;
using test::values_of;

using Names = std::vector<std::string>;

constexpr std::uint64_t kHeads = 4, kHeadsKv = 2, kHeadDim = 8, kWidth = 32, kBlocks = 12;

// Multiples of 1/64 below 1: neither F16, BF16 nor a sum with 1 rounds them.
std::vector<float> some_values(std::uint64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 127) - 63) / 64;
  return values;
}

Tensor tensor_of(const Shape& shape, std::uint32_t seed = 1, DType dtype = DType::f32) {
  const std::vector<float> values = some_values(*shape.numel(), seed);
  return Tensor::from_values<float>(DType::f32, shape, values).to(dtype);
}

Checkpoint checkpoint_of(std::string_view architecture, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  Checkpoint checkpoint;
  if (!architecture.empty()) checkpoint.typed_metadata.set(MetadataEntry::of("general.architecture", architecture));
  for (const auto& [name, tensor] : tensors) checkpoint.tensors.insert(name, tensor);
  return checkpoint;
}

Checkpoint of_architecture(std::string_view architecture, Checkpoint checkpoint) {
  checkpoint.typed_metadata.set(MetadataEntry::of("general.architecture", architecture));
  return checkpoint;
}

std::string with_block(std::string_view pattern, std::uint64_t block) {
  std::string name(pattern);
  if (const std::size_t at = name.find("{}"); at != std::string::npos) name.replace(at, 2, std::to_string(block));
  return name;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Matrices are not square, so that a transpose shows; queries and keys have the rows of their heads.
Shape shape_of(const names::Row& row) {
  if (contains(row.gguf, "norm")) return {kWidth};
  if (row.change == names::Change::permute_queries) return {kHeads * kHeadDim, kWidth};
  if (row.change == names::Change::permute_keys) return {kHeadsKv * kHeadDim, kWidth};
  return {kWidth, 3 * kWidth};
}

// The rows that make one tensor of one tensor, as many as there are names.
std::vector<names::Row> simple_rows(const names::Architecture& architecture) {
  std::vector<names::Row> rows;
  std::set<std::string_view> seen;
  for (const std::span<const names::Row> table : architecture.rows) {
    for (const names::Row& row : table) {
      const bool is_simple = row.change <= names::Change::transpose && row.names == names::Names::module &&
                             !contains(row.huggingface, "#") && !contains(row.gguf, " ");
      if (is_simple && !seen.contains(row.gguf) && !seen.contains(row.huggingface)) rows.push_back(row);
      seen.insert({row.gguf, row.huggingface});
    }
  }
  return rows;
}

// A small model of such tensors, with biases; `tied` has no output matrix.
Checkpoint huggingface_model(const names::Architecture& architecture, DType dtype, bool tied) {
  Checkpoint model;
  std::uint32_t seed = 0;
  for (const names::Row& row : simple_rows(architecture)) {
    const bool is_head = row.gguf == "output" && (tied || !architecture.left_out.empty());
    const bool is_extra = contains(row.gguf, "nextn");
    if (is_head || is_extra) continue;
    const bool is_of_block = contains(row.gguf, "{}");
    for (std::uint64_t block = 0; block < (is_of_block ? kBlocks : 1); ++block) {
      const std::string module = with_block(row.huggingface, block);
      const Shape shape = shape_of(row);
      model.tensors.insert(module + ".weight", tensor_of(shape, ++seed, dtype));
      if (is_of_block) model.tensors.insert(module + ".bias", tensor_of({shape[0]}, ++seed, dtype));
    }
  }
  return model;
}

NameOptions options_of(const names::Architecture& architecture) {
  return {.architecture = std::string(architecture.name), .head_count = kHeads, .head_count_kv = kHeadsKv};
}

void expect_same(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(names_of(a), names_of(b));
  for (const auto& [name, tensor] : a) {
    EXPECT_EQ(tensor.dtype(), b.at(name).dtype()) << name;
    EXPECT_EQ(tensor.shape(), b.at(name).shape()) << name;
    EXPECT_EQ(bytes_of(tensor), bytes_of(b.at(name))) << name;
  }
}

TEST(Names, GoToGgufAndBackBitForBit) {
  for (const names::Architecture& architecture : names::architectures()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const bool tied : {false, true}) {
        SCOPED_TRACE(testing::Message() << architecture.name << ' ' << name(dtype) << ' ' << tied);
        const Checkpoint model = huggingface_model(architecture, dtype, tied);
        const Checkpoint gguf = to_names(model, NameStyle::gguf, options_of(architecture));
        for (const auto& [name, tensor] : gguf) {
          EXPECT_FALSE(contains(name, "layer.") || contains(name, "layers") || contains(name, "transformer")) << name;
        }
        EXPECT_EQ(gguf.size(), model.size());
        // What the options said is in the file now, so the way back needs no options.
        const Checkpoint back = cast(to_names(gguf, NameStyle::huggingface), dtype);
        expect_same(back, model);
      }
    }
  }
}

TEST(Names, OfEveryTableHaveTheirBlocksOnBothSides) {
  for (const names::Architecture& architecture : names::architectures()) {
    for (const std::span<const names::Row> table : architecture.rows) {
      for (const names::Row& row : table) {
        const bool is_behind = contains(row.huggingface, "mtp.");
        EXPECT_EQ(contains(row.gguf, "{}"), contains(row.huggingface, "{}") || is_behind)
            << architecture.name << ' ' << row.gguf;
        EXPECT_EQ(contains(row.huggingface, "#"), row.change == names::Change::stack) << row.gguf;
      }
    }
  }
  EXPECT_EQ(architectures_with_names().front(), "llama");
}

// The names that the converters write, written down a second time.
TEST(Names, AreTheOnesThatLlamaCppLooksFor) {
  const auto to_gguf = [](std::string_view architecture, std::string_view name) {
    const auto found = names::match(*names::find_architecture(architecture), NameStyle::gguf, name);
    return found ? found->name : "";
  };
  EXPECT_EQ(to_gguf("mistral", "model.layers.31.mlp.down_proj.weight"), "blk.31.ffn_down.weight");
  EXPECT_EQ(to_gguf("llama", "model.layers.7.post_attention_layernorm.weight"), "blk.7.ffn_norm.weight");
  EXPECT_EQ(to_gguf("gemma2", "model.layers.7.post_attention_layernorm.weight"), "blk.7.post_attention_norm.weight");
  EXPECT_EQ(to_gguf("gemma3", "model.layers.7.pre_feedforward_layernorm.weight"), "blk.7.ffn_norm.weight");
  EXPECT_EQ(to_gguf("qwen2", "model.layers.0.self_attn.q_proj.bias"), "blk.0.attn_q.bias");
  EXPECT_EQ(to_gguf("qwen3", "model.layers.0.self_attn.k_norm.weight"), "blk.0.attn_k_norm.weight");
  EXPECT_EQ(to_gguf("phi3", "model.layers.0.self_attn.qkv_proj.weight"), "blk.0.attn_qkv.weight");
  EXPECT_EQ(to_gguf("phi3", "model.layers.0.mlp.gate_up_proj.weight"), "blk.0.ffn_up.weight");
  EXPECT_EQ(to_gguf("gpt2", "transformer.wpe.weight"), "position_embd.weight");
  EXPECT_EQ(to_gguf("gpt2", "transformer.h.3.mlp.c_proj.bias"), "blk.3.ffn_down.bias");
}

TEST(Names, OfHuggingFaceMayBeginWithOtherPrefixes) {
  const auto renamed = [](std::string_view architecture, const std::string& name) {
    return names_of(to_names(checkpoint_of(architecture, {{name, tensor_of({4})}}), NameStyle::gguf));
  };
  EXPECT_EQ(renamed("gpt2", "h.0.ln_1.weight"), Names{"blk.0.attn_norm.weight"});
  EXPECT_EQ(renamed("gpt2", "wte.weight"), Names{"token_embd.weight"});
  EXPECT_EQ(renamed("qwen3", "layers.0.input_layernorm.weight"), Names{"blk.0.attn_norm.weight"});
  EXPECT_EQ(renamed("gemma3", "language_model.model.norm.weight"), Names{"output_norm.weight"});
  EXPECT_EQ(renamed("gemma3", "model.language_model.norm.weight"), Names{"output_norm.weight"});
}

TEST(Names, ThatOnlyLookLikeOnesOfTheTableStay) {
  for (const std::string name : {"blk..attn_v.weight", "blk.x.attn_v.weight", "blk.1.attn_v", "blk.1.attn_v.scale", "",
                                 "blk.-1.attn_v.weight", "blk.12345678901.attn_v.weight", "blk.1.attn_vv.weight",
                                 ".weight", "blk.attn_v.weight", "blk.1.2.attn_v.weight"}) {
    const Checkpoint same = to_names(checkpoint_of("llama", {{name, tensor_of({4})}}), NameStyle::huggingface);
    EXPECT_EQ(names_of(same), Names{name});
  }
}

// Row i of one half and its partner in the other half become neighbours, head by head.
void expect_interleaved(const Tensor& gguf, const Tensor& huggingface, std::uint64_t heads) {
  ASSERT_EQ(gguf.shape(), huggingface.shape());
  const std::uint64_t rows = gguf.shape()[0], row_bytes = gguf.nbytes() / rows, head_rows = rows / heads;
  const auto there = bytes_of(gguf), here = bytes_of(huggingface);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t head = row / head_rows, in_head = row % head_rows;
    const std::uint64_t from = head * head_rows + (in_head % 2) * (head_rows / 2) + in_head / 2;
    EXPECT_TRUE(std::equal(there.begin() + static_cast<std::ptrdiff_t>(row * row_bytes),
                           there.begin() + static_cast<std::ptrdiff_t>((row + 1) * row_bytes),
                           here.begin() + static_cast<std::ptrdiff_t>(from * row_bytes)))
        << "row " << row;
  }
}

TEST(Names, ReorderTheQueriesAndKeysOfLlama) {
  const std::string layer = "model.layers.5.self_attn.";
  const Tensor q = tensor_of({kHeads * kHeadDim, kWidth}, 1), q_bias = tensor_of({kHeads * kHeadDim}, 2);
  const Tensor k = tensor_of({kHeadsKv * kHeadDim, kWidth}, 3), v = tensor_of({kHeadsKv * kHeadDim, kWidth}, 4);
  const Checkpoint model = checkpoint_of("llama", {{layer + "q_proj.weight", q},
                                                   {layer + "q_proj.bias", q_bias},
                                                   {layer + "k_proj.weight", k},
                                                   {layer + "v_proj.weight", v}});
  const Checkpoint gguf = to_names(model, NameStyle::gguf, {.head_count = kHeads, .head_count_kv = kHeadsKv});
  expect_interleaved(gguf.at("blk.5.attn_q.weight"), q, kHeads);
  expect_interleaved(gguf.at("blk.5.attn_q.bias"), q_bias, kHeads);
  expect_interleaved(gguf.at("blk.5.attn_k.weight"), k, kHeadsKv);
  EXPECT_EQ(bytes_of(gguf.at("blk.5.attn_v.weight")), bytes_of(v));

  // qwen2 rotates halves in llama.cpp too: nothing moves.
  const Checkpoint qwen = to_names(of_architecture("qwen2", model), NameStyle::gguf);
  EXPECT_EQ(bytes_of(qwen.at("blk.5.attn_q.weight")), bytes_of(q));
}

TEST(Names, ReorderRowsOfBlocksWithoutDecodingThem) {
  const Tensor q = tensor_of({kHeads * kHeadDim, 64}).to(DType::q4_0);
  const Checkpoint model = checkpoint_of("llama", {{"model.layers.0.self_attn.q_proj.weight", q}});
  const Checkpoint gguf = to_names(model, NameStyle::gguf, {.head_count = kHeads});
  EXPECT_EQ(gguf.at("blk.0.attn_q.weight").dtype(), DType::q4_0);
  expect_interleaved(gguf.at("blk.0.attn_q.weight"), q, kHeads);
  expect_same(to_names(gguf, NameStyle::huggingface), model);
  // Decoded before or after, the values are the same.
  expect_same(cast(to_names(gguf, NameStyle::huggingface), DType::f32),
              to_names(cast(gguf, DType::f32), NameStyle::huggingface));
}

TEST(Names, ReorderViewsAndAnyRangeOfThem) {
  const Tensor q = tensor_of({kWidth, kHeads * kHeadDim}).transpose();
  const Checkpoint gguf = to_names(checkpoint_of("llama", {{"model.layers.0.self_attn.q_proj.weight", q}}),
                                   NameStyle::gguf, {.head_count = kHeads});
  const Tensor& there = gguf.at("blk.0.attn_q.weight");
  expect_interleaved(there, q, kHeads);
  const std::vector<std::byte> all = bytes_of(there);
  for (std::size_t first = 0; first < all.size(); first += 97) {
    std::vector<std::byte> part(std::min<std::size_t>(131, all.size() - first));
    there.read(first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first))) << first;
  }
}

TEST(Names, TakeHeadCountsFromMetadataOfEveryKind) {
  const auto expect_heads = [](Checkpoint from, std::uint64_t heads, std::uint64_t heads_kv) {
    const Tensor q = tensor_of({heads * 6, 4}, 1), k = tensor_of({heads_kv * 6, 4}, 2);
    from.tensors.insert("blk.1.attn_q.weight", q);
    from.tensors.insert("blk.1.attn_k.weight", k);
    const Checkpoint model = to_names(from, NameStyle::huggingface);
    expect_interleaved(q, model.at("model.layers.1.self_attn.q_proj.weight"), heads);
    expect_interleaved(k, model.at("model.layers.1.self_attn.k_proj.weight"), heads_kv);
  };
  Checkpoint one = checkpoint_of("llama", {});
  one.typed_metadata.set(MetadataEntry::of("llama.attention.head_count", std::uint32_t{4}));
  expect_heads(one, 4, 4);
  one.typed_metadata.set(MetadataEntry::of("llama.attention.head_count_kv", std::uint32_t{2}));
  expect_heads(one, 4, 2);

  Checkpoint each = checkpoint_of("llama", {});
  const std::int32_t counts[] = {1, 8}, counts_kv[] = {8, 1};
  each.typed_metadata.set(MetadataEntry::numbers<std::int32_t>("llama.attention.head_count", counts));
  each.typed_metadata.set(MetadataEntry::numbers<std::int32_t>("llama.attention.head_count_kv", counts_kv));
  expect_heads(each, 8, 1);

  Checkpoint text = checkpoint_of("llama", {});  // a safetensors file keeps the metadata of a GGUF as text
  text.metadata["llama.attention.head_count"] = "2";
  expect_heads(text, 2, 2);
}

TEST(Names, NoticeThatKeysHaveFewerHeads) {
  const Checkpoint model = checkpoint_of("llama", {{"model.layers.0.self_attn.q_proj.weight", tensor_of({32, 4})},
                                                   {"model.layers.0.self_attn.k_proj.weight", tensor_of({16, 4})}});
  const auto to_gguf = [&](std::uint64_t heads_kv) {
    return to_names(model, NameStyle::gguf, {.head_count = 4, .head_count_kv = heads_kv});
  };
  EXPECT_ERROR(to_gguf(0), Errc::mismatch,
               "tensor \"model.layers.0.self_attn.k_proj.weight\": with 4 heads, one has 4 rows, and another of that "
               "block has 8");
  EXPECT_HINT(to_gguf(0), "llama.attention.head_count_kv with NameOptions::head_count_kv");
  EXPECT_EQ(to_gguf(2).size(), 2u);
}

// An adapter may change keys and nothing else.
TEST(Names, OfKeysAloneNeedTheHeadCountOfKeys) {
  const auto to_gguf = [](const Checkpoint& model, std::uint64_t heads_kv) {
    return to_names(model, NameStyle::gguf, {.head_count = 4, .head_count_kv = heads_kv});
  };
  const std::string key = "model.layers.1.self_attn.k_proj.weight";
  const Tensor k = tensor_of({16, 4});
  Checkpoint model = checkpoint_of("llama", {{key, k}});
  EXPECT_ERROR(to_gguf(model, 0), Errc::invalid_argument,
               "tensor \"" + key + "\": its rows go by heads, and nothing says llama.attention.head_count_kv");
  EXPECT_HINT(to_gguf(model, 0), "NameOptions::head_count_kv = 8");
  expect_interleaved(to_gguf(model, 2).at("blk.1.attn_k.weight"), k, 2);

  // Queries of another block tell the heads as well, wherever they are.
  model.tensors.insert("model.layers.7.self_attn.q_proj.weight", tensor_of({32, 4}));
  EXPECT_ERROR(to_gguf(model, 0), Errc::mismatch, "with 4 heads, one has 4 rows, and one of queries has 8");
  model.tensors.replace("model.layers.7.self_attn.q_proj.weight", tensor_of({16, 4}));
  expect_interleaved(to_gguf(model, 0).at("blk.1.attn_k.weight"), k, 4);

  // A file that states one number states both.
  Checkpoint said = checkpoint_of("llama", {{"blk.1.attn_k.weight", k}});
  said.typed_metadata.set(MetadataEntry::of("llama.attention.head_count", std::uint32_t{4}));
  expect_interleaved(k, to_names(said, NameStyle::huggingface).at(key), 4);
}

TEST(Names, MayBeLookedAtWithoutHeads) {
  const Checkpoint gguf = checkpoint_of("llama", {{"blk.1.attn_q.weight", tensor_of({12, 4})}});
  const Checkpoint model = to_names(gguf, NameStyle::huggingface, {.allow_unknown_heads = true});
  const Tensor& q = model.at("model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(q.shape(), (Shape{12, 4}));
  std::vector<std::byte> bytes(q.nbytes());
  EXPECT_ERROR(q.read(0, bytes), Errc::invalid_argument, "nothing says llama.attention.head_count");
  EXPECT_ERROR(to_names(gguf, NameStyle::huggingface, {.head_count = 5, .allow_unknown_heads = true}), Errc::mismatch,
               "12 rows are not 5 heads");
}

TEST(Names, OfAnAdapterAreCompletedByItsBase) {
  Checkpoint base = checkpoint_of("llama", {});
  base.typed_metadata.set(MetadataEntry::of("llama.attention.head_count", std::uint32_t{8}));
  EXPECT_EQ(completed({}, base).architecture, "llama");
  EXPECT_EQ(completed({}, base).head_count, 8u);
  EXPECT_EQ(completed({}, base).head_count_kv, 8u);
  base.typed_metadata.set(MetadataEntry::of("llama.attention.head_count_kv", std::uint32_t{2}));
  EXPECT_EQ(completed({}, base).head_count_kv, 2u);
  EXPECT_EQ(completed({.head_count_kv = 4}, base).head_count_kv, 4u) << "the options count";
  const std::int32_t counts[] = {1, 8};
  base.typed_metadata.set(MetadataEntry::numbers<std::int32_t>("llama.attention.head_count_kv", counts));
  EXPECT_EQ(completed({}, base).head_count_kv, 0u) << "no single number is right";
  EXPECT_EQ(completed({}, {}).head_count, 0u);
}

TEST(Names, NeedHeadCountsThatFit) {
  Checkpoint gguf = checkpoint_of("llama", {{"blk.1.attn_q.weight", tensor_of({12, 4})}});
  const auto to_hf = [&](std::uint64_t heads = 0) {
    return to_names(gguf, NameStyle::huggingface, {.head_count = heads});
  };
  EXPECT_ERROR(to_hf(), Errc::invalid_argument,
               "tensor \"blk.1.attn_q.weight\": its rows go by heads, and nothing says llama.attention.head_count");
  EXPECT_HINT(to_hf(), "NameOptions::head_count = 32");
  for (const std::uint64_t heads : {std::uint64_t{4}, std::uint64_t{5}, std::uint64_t{12}, std::uint64_t{24},
                                    std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    EXPECT_ERROR(to_hf(heads), Errc::mismatch, "12 rows are not " + std::to_string(heads) + " heads of pairs");
  }
  EXPECT_EQ(to_hf(3).size(), 1u);

  for (const char* wrong : {"", "four", "4 ", "-4", "0"}) {
    gguf.metadata["llama.attention.head_count"] = wrong;
    EXPECT_TRUE(BALLAST_ERROR_OF(to_hf())) << wrong;
  }
  const std::int32_t short_list[] = {3};
  gguf.typed_metadata.set(MetadataEntry::numbers<std::int32_t>("llama.attention.head_count", short_list));
  EXPECT_ERROR(to_hf(), Errc::invalid_argument, "nothing says llama.attention.head_count");
  gguf.tensors = {};
  gguf.tensors.insert("blk.0.attn_q.weight", tensor_of({}));
  EXPECT_ERROR(to_hf(), Errc::mismatch, "0 rows are not 3 heads of pairs");
}

TEST(Names, AddOneToTheNormsOfGemma) {
  const Tensor norm = tensor_of({300}), bias = tensor_of({300}, 2);
  for (const std::string architecture : {"gemma2", "gemma3"}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const Checkpoint model =
          checkpoint_of(architecture, {{"model.norm.weight", norm.to(dtype)}, {"model.norm.bias", bias.to(dtype)}});
      const Checkpoint gguf = to_names(model, NameStyle::gguf);
      EXPECT_EQ(gguf.at("output_norm.weight").dtype(), DType::f32);
      EXPECT_EQ(gguf.at("output_norm.bias").dtype(), dtype);
      std::vector<float> expected = values_of(norm);
      for (float& value : expected) value += 1;
      EXPECT_EQ(values_of(gguf.at("output_norm.weight")), expected);
      EXPECT_EQ(values_of(gguf.at("output_norm.bias")), values_of(bias));
      ASSERT_EQ(gguf.notes.size(), dtype == DType::f32 ? 0u : 1u);
      if (dtype != DType::f32) {
        EXPECT_EQ(gguf.notes[0].text,
                  "norms are F32 now, since 1 is added to them: 1 of them, such as "
                  "\"model.norm.weight\"");
      }
    }
  }
}

// llama.cpp's converter widens BF16 before it adds, and adds F16 as F16, which loses 2^-11 beside 1.
TEST(Names, RoundTheNormsOfGemmaAsTheConverterDoes) {
  const float small[] = {0.0009765625f, 1.0009765625f, 0.00048828125f};
  const auto to_gguf = [&](DType dtype) {
    const Tensor norm = Tensor::from_values<float>(DType::f32, {3}, small).to(dtype);
    const Checkpoint model = checkpoint_of("gemma2", {{"model.norm.weight", norm}});
    return values_of(to_names(model, NameStyle::gguf).at("output_norm.weight"));
  };
  EXPECT_EQ(to_gguf(DType::f32), (std::vector<float>{1.0009765625f, 2.0009765625f, 1.00048828125f}));
  EXPECT_EQ(to_gguf(DType::bf16), (std::vector<float>{1.0009765625f, 2.0f, 1.00048828125f}));
  EXPECT_EQ(to_gguf(DType::f16), (std::vector<float>{1.0009765625f, 2.0f, 1.0f}));
}

TEST(Names, ReadAnyRangeOfAChangedNorm) {
  const Checkpoint gguf = to_names(checkpoint_of("gemma2", {{"model.norm.weight", tensor_of({700})}}), NameStyle::gguf);
  const Tensor& norm = gguf.at("output_norm.weight");
  const std::vector<std::byte> all = bytes_of(norm);
  for (std::size_t first = 0; first < all.size(); first += 101) {
    std::vector<std::byte> part(std::min<std::size_t>(1203, all.size() - first));
    norm.read(first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first))) << first;
  }
}

TEST(Names, TransposeTheMatricesOfGpt2) {
  const Tensor weight = tensor_of({kWidth, 3 * kWidth}), bias = tensor_of({3 * kWidth});
  const Checkpoint model = checkpoint_of("gpt2", {{"transformer.h.0.attn.c_attn.weight", weight},
                                                  {"transformer.h.0.attn.c_attn.bias", bias},
                                                  {"transformer.wpe.weight", weight}});
  const Checkpoint gguf = to_names(model, NameStyle::gguf);
  const Tensor& there = gguf.at("blk.0.attn_qkv.weight");
  ASSERT_EQ(there.shape(), (Shape{3 * kWidth, kWidth}));
  const std::vector<float> from = values_of(weight), to = values_of(there);
  for (std::uint64_t row = 0; row < 3 * kWidth; ++row) {
    for (std::uint64_t column = 0; column < kWidth; ++column)
      EXPECT_EQ(to[row * kWidth + column], from[column * 3 * kWidth + row]);
  }
  EXPECT_EQ(bytes_of(gguf.at("blk.0.attn_qkv.bias")), bytes_of(bias));
  EXPECT_EQ(bytes_of(gguf.at("position_embd.weight")), bytes_of(weight));
}

TEST(Names, CannotTransposeBlocks) {
  const Tensor blocks = tensor_of({64, 64}).to(DType::q8_0);
  const Checkpoint gguf = checkpoint_of("gpt2", {{"blk.0.ffn_up.weight", blocks}});
  EXPECT_ERROR(to_names(gguf, NameStyle::huggingface), Errc::unsupported,
               "tensor \"blk.0.ffn_up.weight\": a view of Q8_0 may not cut its blocks of 32 elements");
  EXPECT_HINT(to_names(gguf, NameStyle::huggingface), "decode it first, with cast() to F32, F16 or BF16");
  EXPECT_EQ(to_names(cast(gguf, DType::f16), NameStyle::huggingface).size(), 1u);
  EXPECT_ERROR(to_names(checkpoint_of("gpt2", {{"blk.0.ffn_up.weight", tensor_of({4})}}), NameStyle::huggingface),
               Errc::invalid_argument, "tensor \"blk.0.ffn_up.weight\": only a matrix can be transposed");
}

TEST(Names, CannotChangeValuesOfAnUnknownType) {
  Checkpoint gguf = checkpoint_of("gpt2", {{"blk.0.ffn_up.weight", tensor_of({4})}});
  gguf.unknown_ggml["blk.0.ffn_up.weight"] = {.id = 99, .shape = {2, 2}};
  EXPECT_ERROR(to_names(gguf, NameStyle::huggingface), Errc::unsupported, "type 99, which is unknown");
  const Checkpoint renamed = to_names(of_architecture("qwen2", gguf), NameStyle::huggingface);
  EXPECT_EQ(renamed.unknown_ggml.begin()->first, "model.layers.0.mlp.up_proj.weight");
}

TEST(Names, WithoutACounterpartStayAndAreCounted) {
  const Checkpoint gguf = checkpoint_of("phi3", {{"rope_factors_long.weight", tensor_of({4}, 1)},
                                                 {"output_norm.weight", tensor_of({4}, 2)},
                                                 {"rope_factors_short.weight", tensor_of({4}, 3)}});
  const Checkpoint model = to_names(gguf, NameStyle::huggingface);
  EXPECT_EQ(names_of(model), (Names{"rope_factors_long.weight", "model.norm.weight", "rope_factors_short.weight"}));
  ASSERT_EQ(model.notes.size(), 1u);
  EXPECT_EQ(model.notes[0].kind, Note::Kind::remark);
  EXPECT_EQ(model.notes[0].text,
            "2 of 3 names of phi3 have no counterpart in Hugging Face and stay, such as "
            "\"rope_factors_long.weight\"");
  expect_same(to_names(model, NameStyle::gguf), gguf);
}

TEST(Names, LeaveOutTensorsThatGgufHasNoNameFor) {
  const Checkpoint gpt2 = to_names(checkpoint_of("gpt2", {{"h.0.attn.bias", tensor_of({1, 1, 4, 4})},
                                                          {"h.0.attn.masked_bias", tensor_of({})},
                                                          {"h.0.attn.c_attn.bias", tensor_of({4})}}),
                                   NameStyle::gguf);
  EXPECT_EQ(names_of(gpt2), Names{"blk.0.attn_qkv.bias"});
  ASSERT_EQ(gpt2.notes.size(), 1u);
  EXPECT_EQ(gpt2.notes[0].text,
            "left out, since GGUF has no place for them: 2 of 3 tensors, such as \"h.0.attn.bias\"");
  EXPECT_EQ(to_names(checkpoint_of("gemma2", {{"lm_head.weight", tensor_of({4, 4})}}), NameStyle::gguf).size(), 0u);
  EXPECT_EQ(to_names(checkpoint_of("gemma3", {{"lm_head.weight", tensor_of({4, 4})}}), NameStyle::gguf).size(), 1u);
}

TEST(Names, OfAnUnknownArchitectureStayWithANote) {
  const Checkpoint gguf = checkpoint_of("rwkv6", {{"blk.0.attn_q.weight", tensor_of({4, 4})}});
  const Checkpoint same = to_names(gguf, NameStyle::huggingface);
  expect_same(same, gguf);
  ASSERT_EQ(same.notes.size(), 1u);
  EXPECT_EQ(same.notes[0].text, "no names are known for the architecture \"rwkv6\": all stay as they are");
  EXPECT_ERROR(to_names(gguf, NameStyle::huggingface, {.architecture = "lama"}), Errc::invalid_argument, "\"lama\"");
  EXPECT_HINT(to_names(gguf, NameStyle::huggingface, {.architecture = "lama"}), "known are llama, mistral");
}

TEST(Names, NeedAnArchitecture) {
  Checkpoint model = checkpoint_of("", {{"model.norm.weight", tensor_of({4})}});
  EXPECT_ERROR(to_names(model, NameStyle::gguf), Errc::invalid_argument, "nothing says of which architecture");
  EXPECT_HINT(to_names(model, NameStyle::gguf), "NameOptions::architecture = \"llama\"");
  model.metadata["general.architecture"] = "qwen3";
  EXPECT_EQ(names_of(to_names(model, NameStyle::gguf)), Names{"output_norm.weight"});
}

TEST(Names, ThatCollideAreAnError) {
  const Checkpoint model =
      checkpoint_of("gpt2", {{"wte.weight", tensor_of({4, 4})}, {"transformer.wte.weight", tensor_of({4, 4})}});
  EXPECT_ERROR(to_names(model, NameStyle::gguf), Errc::invalid_argument,
               "tensors \"wte.weight\" and \"transformer.wte.weight\" would both be called \"token_embd.weight\"");
  const Checkpoint mixed =
      checkpoint_of("qwen2", {{"output.weight", tensor_of({4, 4})}, {"lm_head.weight", tensor_of({4, 4})}});
  EXPECT_ERROR(to_names(mixed, NameStyle::gguf), Errc::invalid_argument, "would both be called \"output.weight\"");
}

TEST(Names, KeepTheOptionsInTheMetadata) {
  const Checkpoint model = checkpoint_of("", {{"model.norm.weight", tensor_of({4})}});
  const Checkpoint gguf =
      to_names(model, NameStyle::gguf, {.architecture = "mistral", .head_count = 32, .head_count_kv = 8});
  EXPECT_EQ(gguf.typed_metadata.find_string("general.architecture"), "llama");
  EXPECT_EQ(gguf.typed_metadata.find_uint("llama.attention.head_count"), 32u);
  EXPECT_EQ(gguf.typed_metadata.find_uint("llama.attention.head_count_kv"), 8u);
  EXPECT_EQ(gguf.typed_metadata.find("llama.attention.head_count")->type, MetadataType::u32);
}

TEST(Names, KeepAliases) {
  const Tensor shared = tensor_of({8, 4});
  Checkpoint model = checkpoint_of("llama", {{"model.embed_tokens.weight", shared}, {"lm_head.weight", shared}});
  model.aliases["lm_head.weight"] = "model.embed_tokens.weight";
  const Checkpoint gguf = to_names(model, NameStyle::gguf);
  ASSERT_EQ(gguf.aliases.size(), 1u);
  EXPECT_EQ(gguf.aliases.begin()->first, "output.weight");
  EXPECT_EQ(gguf.aliases.begin()->second, "token_embd.weight");
  EXPECT_EQ(gguf.at("output.weight").storage(), gguf.at("token_embd.weight").storage());
  EXPECT_TRUE(to_names(of_architecture("gemma2", model), NameStyle::gguf).aliases.empty());
}

TEST(Names, DoNotLetOptionsContradictTheFile) {
  Checkpoint gguf = checkpoint_of("llama", {{"blk.0.attn_q.weight", tensor_of({8, 4})}});
  gguf.typed_metadata.set(MetadataEntry::of("llama.attention.head_count", std::uint32_t{4}));
  EXPECT_ERROR(to_names(gguf, NameStyle::huggingface, {.architecture = "qwen2"}), Errc::mismatch, "not \"qwen2\"");
  EXPECT_ERROR(to_names(gguf, NameStyle::huggingface, {.head_count = 2}), Errc::mismatch, "the file says 4");
  EXPECT_EQ(to_names(gguf, NameStyle::huggingface, {.architecture = "mistral", .head_count = 4}).size(), 1u);
}

Checkpoint with_numbers(Checkpoint checkpoint, const std::map<std::string, std::uint32_t>& numbers) {
  for (const auto& [key, number] : numbers) checkpoint.typed_metadata.set(MetadataEntry::of(key, number));
  return checkpoint;
}

TEST(Names, StackTheExpertsOfABlock) {
  const std::string experts = "model.layers.3.mlp.experts.";
  Checkpoint model = checkpoint_of("qwen3moe", {{experts + "1.up_proj.weight", tensor_of({4, 6}, 2)},
                                                {experts + "0.up_proj.weight", tensor_of({4, 6}, 1)}});
  const Checkpoint gguf = to_names(model, NameStyle::gguf);
  ASSERT_EQ(names_of(gguf), Names{"blk.3.ffn_up_exps.weight"});
  EXPECT_EQ(gguf.at("blk.3.ffn_up_exps.weight").shape(), (Shape{2, 4, 6}));
  std::vector<float> expected = values_of(tensor_of({4, 6}, 1));
  const std::vector<float> second = values_of(tensor_of({4, 6}, 2));
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(values_of(gguf.at("blk.3.ffn_up_exps.weight")), expected);

  const Checkpoint back = to_names(gguf, NameStyle::huggingface);
  EXPECT_EQ(names_of(back), (Names{experts + "0.up_proj.weight", experts + "1.up_proj.weight"}));
  EXPECT_EQ(values_of(back.at(experts + "1.up_proj.weight")), second);

  model.tensors.insert(experts + "3.up_proj.weight", tensor_of({4, 6}, 4));
  EXPECT_ERROR(to_names(model, NameStyle::gguf), Errc::mismatch,
               "belongs with \"model.layers.3.mlp.experts.2.up_proj.weight\", which is not there");
}

TEST(Names, PutBlocksThatPredictFurtherTokensBehindTheOthers) {
  const Checkpoint model = with_numbers(checkpoint_of("qwen3next", {{"mtp.layers.0.mlp.gate.weight", tensor_of({2, 4})},
                                                                    {"mtp.fc.weight", tensor_of({4, 8})}}),
                                        {{"qwen3next.block_count", 49}, {"qwen3next.nextn_predict_layers", 1}});
  const Checkpoint gguf = to_names(model, NameStyle::gguf);
  EXPECT_EQ(names_of(gguf), (Names{"blk.48.ffn_gate_inp.weight", "blk.48.nextn.eh_proj.weight"}));
  EXPECT_EQ(names_of(to_names(gguf, NameStyle::huggingface)), names_of(model));

  const Checkpoint deepseek =
      with_numbers(checkpoint_of("deepseek2", {{"model.layers.2.mlp.up_proj.weight", tensor_of({4, 4})},
                                               {"model.layers.1.mlp.up_proj.weight", tensor_of({4, 4})}}),
                   {{"deepseek2.block_count", 2}});
  EXPECT_EQ(names_of(to_names(deepseek, NameStyle::gguf)), Names{"blk.1.ffn_up.weight"});
}

TEST(Names, RepackTheExpertsOfGptOss) {
  std::vector<std::uint8_t> codes(2 * 4 * 1 * 16), scales(2 * 4);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 7);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(100 + i);
  const std::string experts = "model.layers.0.mlp.experts.gate_up_proj_";
  const Checkpoint model = checkpoint_of(
      "gpt-oss", {{experts + "blocks", Tensor::from_values<std::uint8_t>(DType::u8, {2, 4, 1, 16}, codes)},
                  {experts + "scales", Tensor::from_values<std::uint8_t>(DType::u8, {2, 4, 1}, scales)}});
  const Checkpoint gguf = to_names(model, NameStyle::gguf);
  ASSERT_EQ(names_of(gguf), (Names{"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight"}));
  const Tensor& up = gguf.at("blk.0.ffn_up_exps.weight");
  EXPECT_EQ(up.dtype(), DType::mxfp4);
  EXPECT_EQ(up.shape(), (Shape{2, 2, 32}));
  const std::vector<std::byte> bytes = bytes_of(up);  // the first row is row 1 of the first expert
  EXPECT_EQ(std::to_integer<int>(bytes[0]), scales[1]);
  EXPECT_EQ(std::to_integer<int>(bytes[1]), (codes[16] & 15) | (codes[24] & 15) << 4);
  EXPECT_EQ(std::to_integer<int>(bytes[2]), codes[16] >> 4 | (codes[24] >> 4) << 4);
  expect_same(to_names(gguf, NameStyle::huggingface), model);
}

TEST(Names, RefuseShapesThatDoNotFitTheNumbers) {
  const Checkpoint model = checkpoint_of("internlm2", {{"model.layers.0.attention.wqkv.weight", tensor_of({32, 4})}});
  EXPECT_ERROR(to_names(model, NameStyle::gguf), Errc::invalid_argument, "nothing says internlm2.attention.head_count");
  const auto with_heads = [&](std::uint32_t heads, std::uint32_t keys) {
    return to_names(
        with_numbers(model, {{"internlm2.attention.head_count", heads}, {"internlm2.attention.head_count_kv", keys}}),
        NameStyle::gguf);
  };
  EXPECT_EQ(with_heads(4, 2).size(), 3u);
  EXPECT_ERROR(with_heads(4, 3), Errc::mismatch, "4 heads are no multiple of 3");
  EXPECT_ERROR(with_heads(5, 5), Errc::mismatch, "32 rows are no multiple of 15");
  for (const std::uint32_t heads : {0u, 1u << 31, ~0u})
    EXPECT_TRUE(BALLAST_ERROR_OF(with_heads(heads, heads))) << heads;
  const Checkpoint latent =
      checkpoint_of("deepseek2", {{"model.layers.0.self_attn.kv_b_proj.weight", tensor_of({32, 4})}});
  EXPECT_ERROR(to_names(latent, NameStyle::gguf), Errc::invalid_argument,
               "how it is cut depends on deepseek2.attention.key_length_mla, and nothing says that");
}

TEST(Names, OfTowersAreLeftOutAndOthersRefusedIfAsked) {
  const Checkpoint model = checkpoint_of("gemma3", {{"vision_tower.encoder.layers.0.mlp.fc1.weight", tensor_of({4, 4})},
                                                    {"model.norm.weight", tensor_of({4})}});
  const Checkpoint gguf = to_names(model, NameStyle::gguf, {.refuse_unknown = true});
  EXPECT_EQ(names_of(gguf), Names{"output_norm.weight"});
  ASSERT_EQ(gguf.notes.size(), 1u);
  EXPECT_TRUE(contains(gguf.notes[0].text, "see or hear: 1 of 2 tensors")) << gguf.notes[0].text;
  EXPECT_ERROR(to_names(checkpoint_of("gemma3", {{"model.extra.weight", tensor_of({4})}}), NameStyle::gguf,
                        {.refuse_unknown = true}),
               Errc::unsupported, "tensor \"model.extra.weight\" has no place in a GGUF of the architecture");
}

}  // namespace
}  // namespace ballast
