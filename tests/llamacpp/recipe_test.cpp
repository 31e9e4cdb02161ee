// Recipes: the types that llama-quantize and llama.cpp's converter give to tensors, and what becomes of a checkpoint.
#include <ballast/recipe.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "builders/importance_file.hpp"
#include "llamacpp/recipe/choose_types.hpp"
#include "llamacpp/recipe/tensor_roles.hpp"
#include "quantized_types.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using llamacpp::Choice;
using llamacpp::choose_types;
using llamacpp::ModelFacts;
using llamacpp::PlainTensor;

// A model by its names and shapes, in the order of llama-quantize, in BF16 as the converter writes it.
struct Model {
  ModelFacts facts;
  std::vector<std::pair<std::string, Shape>> tensors;

  Model& add(std::string name, Shape shape) {
    tensors.emplace_back(std::move(name), std::move(shape));
    return *this;
  }
  std::vector<PlainTensor> plain() const {
    std::vector<PlainTensor> result;
    for (const auto& [name, shape] : tensors) {
      PlainTensor tensor{name, shape, DType::f32};
      tensor.type = llamacpp::converter_type(tensor, DType::bf16, facts.architecture).type;
      result.push_back(std::move(tensor));
    }
    std::ranges::sort(result, llamacpp::is_written_before, &PlainTensor::name);
    return result;
  }
};

struct Widths {
  std::uint64_t blocks, columns, kv_rows, inner, heads, kv_heads, experts;
};

Model llama(const Widths& w) {
  Model model{{"llama", w.blocks, w.heads, w.kv_heads, w.experts}, {}};
  model.add("output.weight", {332, w.columns}).add("token_embd.weight", {332, w.columns});
  model.add("output_norm.weight", {w.columns});
  const bool has_experts = w.experts > 1;
  const auto stack = [&](std::uint64_t rows, std::uint64_t columns) {
    return has_experts ? Shape{w.experts, rows, columns} : Shape{rows, columns};
  };
  for (std::uint64_t i = 0; i < w.blocks; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".", ending = has_experts ? "_exps.weight" : ".weight";
    model.add(block + "attn_norm.weight", {w.columns}).add(block + "ffn_norm.weight", {w.columns});
    model.add(block + "attn_q.weight", {w.columns, w.columns}).add(block + "attn_k.weight", {w.kv_rows, w.columns});
    model.add(block + "attn_v.weight", {w.kv_rows, w.columns});
    model.add(block + "attn_output.weight", {w.columns, w.columns});
    model.add(block + "ffn_gate" + ending, stack(w.inner, w.columns));
    model.add(block + "ffn_up" + ending, stack(w.inner, w.columns));
    model.add(block + "ffn_down" + ending, stack(w.columns, w.inner));
    if (has_experts) model.add(block + "ffn_gate_inp.weight", {w.experts, w.columns});
  }
  return model;
}

const std::map<std::string_view, Model>& models() {
  static const std::map<std::string_view, Model> kModels = {
      {"eight_blocks", llama({8, 256, 128, 512, 4, 2, 0})},
      {"odd_widths", llama({3, 96, 96, 272, 4, 4, 0})},
      {"eight_experts", llama({3, 256, 128, 256, 4, 2, 8})},
  };
  return kModels;
}

std::shared_ptr<const ImportanceMatrix> importance_of(std::span<const PlainTensor> tensors) {
  test::ImportanceFile file;
  for (const PlainTensor& tensor : tensors) {
    const std::uint64_t count = llamacpp::columns_of(tensor.shape) * llamacpp::matrices_of(tensor.shape);
    file.entry(tensor.name, 1, std::vector<float>(count, 1));
  }
  const std::string text = file.end(6, "text.txt").text();
  const auto bytes = std::as_bytes(std::span(text));
  return ImportanceMatrix::read(memory_source({bytes.begin(), bytes.end()}, "imatrix.dat"));
}

RecipeOptions options_called(std::string_view name, std::span<const PlainTensor> tensors) {
  if (name == "imatrix") return {.importance = importance_of(tensors)};
  if (name == "pure") return {.pure = true};
  if (name == "leave-output") return {.leave_output_tensor = true};
  if (name == "output-q8_0") return {.output_tensor_type = DType::q8_0};
  if (name == "embd-q6_K") return {.token_embedding_type = DType::q6_k};
  if (name == "tensor-type")
    return {.tensor_types = {parse_tensor_type("attn_v=q8_0"), parse_tensor_type("blk\\.0\\.ffn_down=q5_k")}};
  return {};
}

char letter(DType type) {
  static const std::map<DType, char> kLetters = {
      {DType::f32, 'f'},     {DType::f16, 'h'},    {DType::bf16, 'b'},  {DType::q4_0, '0'},    {DType::q4_1, '1'},
      {DType::q5_0, 'u'},    {DType::q5_1, 'v'},   {DType::q8_0, '8'},  {DType::q2_k, '2'},    {DType::q3_k, '3'},
      {DType::q4_k, '4'},    {DType::q5_k, '5'},   {DType::q6_k, '6'},  {DType::iq1_s, 'F'},   {DType::iq1_m, 'G'},
      {DType::iq2_xxs, 'A'}, {DType::iq2_xs, 'B'}, {DType::iq2_s, 'C'}, {DType::iq3_xxs, 'D'}, {DType::iq3_s, 'E'},
      {DType::iq4_nl, 'H'},  {DType::iq4_xs, 'I'}, {DType::tq1_0, 's'}, {DType::tq2_0, 't'},   {DType::mxfp4, 'x'},
      {DType::q1_0, 'p'},    {DType::q2_0, 'q'}};
  return kLetters.at(type);
}

// Of those that are more than vectors, as quantized_types.hpp writes them.
std::string letters(std::span<const PlainTensor> tensors, const std::vector<Choice>& choices) {
  std::string text;
  std::int64_t block = -1;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view name = tensors[i].name;
    if (name.ends_with("_norm.weight") || name.find("gate_inp") != name.npos) {
      EXPECT_EQ(choices[i].type, DType::f32) << name;
      continue;
    }
    if (llamacpp::block_of(name) != block) text += ' ';
    block = llamacpp::block_of(name);
    text += letter(choices[i].type);
  }
  return text;
}

TEST(Recipe, GivesEveryTensorTheTypeThatLlamaQuantizeGivesIt) {
  for (const test::QuantizedTypes& row : test::kQuantizedTypes) {
    SCOPED_TRACE(std::string(row.model) + " " + std::string(row.options) + " " + std::string(row.file_type));
    const Model& model = models().at(row.model);
    const auto tensors = model.plain();
    const RecipeOptions options = options_called(row.options, tensors);
    const auto choose = [&] { return choose_types(tensors, model.facts, llamacpp::file_type(row.file_type), options); };
    if (row.types == "!rows") {
      EXPECT_ERROR(choose(), Errc::unsupported, "not whole blocks");
    } else if (row.types == "!importance") {
      EXPECT_ERROR(choose(), Errc::invalid_argument, "needs an importance matrix");
    } else {
      EXPECT_EQ(letters(tensors, choose()), row.types);
    }
  }
}

DType type_in(const Model& model, std::string_view file_type, std::string_view name,
              const RecipeOptions& options = {}) {
  const auto tensors = model.plain();
  const auto choices = choose_types(tensors, model.facts, llamacpp::file_type(file_type), options);
  const auto found = std::ranges::find(tensors, name, &PlainTensor::name);
  return choices.at(static_cast<std::size_t>(found - tensors.begin())).type;
}

TEST(Recipe, GivesAnEmbeddingThatIsTheOutputAsWellTheTypeOfAnOutput) {
  Model model{{"llama", 1, 4, 4, 0}, {}};
  model.add("token_embd.weight", {300, 256});
  EXPECT_EQ(type_in(model, "Q4_K_M", "token_embd.weight"), DType::q6_k);
  EXPECT_EQ(type_in(model, "IQ3_XXS", "token_embd.weight"), DType::q5_k);
  EXPECT_EQ(type_in(model, "Q4_K_M", "token_embd.weight", {.output_tensor_type = DType::q8_0}), DType::q8_0);
  model.add("output.weight", {300, 256});
  EXPECT_EQ(type_in(model, "Q4_K_M", "token_embd.weight"), DType::q4_k);
  EXPECT_EQ(type_in(model, "Q4_K_M", "token_embd.weight", {.output_tensor_type = DType::q8_0}), DType::q4_k);
}

TEST(Recipe, GivesValuesMoreBitsIfManyHeadsShareThem) {
  EXPECT_EQ(type_in(llama({8, 256, 64, 512, 4, 1, 0}), "IQ4_XS", "blk.5.attn_v.weight"), DType::q5_k);
  EXPECT_EQ(type_in(llama({8, 256, 64, 512, 4, 2, 0}), "IQ4_XS", "blk.5.attn_v.weight"), DType::iq4_xs);
}

TEST(Recipe, GivesValuesOfA70bModelFiveBits) {
  const auto values = [](std::string architecture, std::uint64_t kv_heads) {
    Model model = llama({80, 256, 256, 256, 4, kv_heads, 0});
    model.facts.architecture = std::move(architecture);
    return type_in(model, "Q3_K_S", "blk.40.attn_v.weight");
  };
  EXPECT_EQ(values("llama", 2), DType::q5_k);
  EXPECT_EQ(values("llama", 4), DType::q3_k);
  EXPECT_EQ(values("qwen2", 4), DType::q5_k);
  EXPECT_EQ(values("qwen3", 2), DType::q3_k);
}

TEST(Recipe, TreatsFalconDifferently) {
  Model model = llama({16, 256, 256, 512, 4, 4, 0});
  model.facts.architecture = "falcon";
  EXPECT_EQ(type_in(model, "Q4_K_M", "output.weight"), DType::q8_0);
  EXPECT_EQ(type_in(model, "Q4_K_M", "blk.0.ffn_down.weight"), DType::q6_k);
  EXPECT_EQ(type_in(model, "Q4_K_M", "blk.1.ffn_down.weight"), DType::q5_k);
  EXPECT_EQ(type_in(model, "Q4_K_M", "blk.2.ffn_down.weight"), DType::q4_k);
}

TEST(Recipe, LeavesRoutersPositionsAndConvolutionsAlone) {
  for (const char* name :
       {"blk.0.ffn_gate_inp.weight", "position_embd.weight", "token_types.weight", "blk.0.ssm_conv1d.weight",
        "blk.0.shortconv.conv.weight", "enc.blk.0.attn_rel_b.weight", "per_layer_model_proj.weight",
        "blk.0.time_mix_w1.weight", "v.patch_embd.weight", "blk.0.attn_q.bias", "blk.0.ssm_a"})
    EXPECT_FALSE(llamacpp::is_quantized(name, {64, 256})) << name;
  EXPECT_TRUE(llamacpp::is_quantized("blk.0.attn_q.weight", {64, 256}));
  EXPECT_FALSE(llamacpp::is_quantized("blk.0.ffn_gate_inp_shexp.weight", {1, 256}));
  EXPECT_FALSE(llamacpp::is_quantized("rope_freqs.weight", {256}));
}

TEST(Recipe, SortsByBlockAndThenByName) {
  std::vector<std::string_view> names = {"blk.10.a", "token_embd.weight", "blk.2.b", "enc.blk.0.a", "blk.2.a", "blk.x"};
  std::ranges::sort(names, llamacpp::is_written_before);
  EXPECT_EQ(names, (std::vector<std::string_view>{"blk.x", "enc.blk.0.a", "token_embd.weight", "blk.2.a", "blk.2.b",
                                                  "blk.10.a"}));
  EXPECT_EQ(llamacpp::block_of("blk.99999999999999999999.a"), -1);
}

TEST(Recipe, OfTheConverterKeepsVectorsAndSensitiveTensorsInF32) {
  const auto type = [](std::string_view name, Shape shape, DType wanted, std::string_view architecture = "llama") {
    return llamacpp::converter_type({name, std::move(shape), DType::bf16}, wanted, architecture).type;
  };
  EXPECT_EQ(type("blk.0.attn_q.weight", {64, 64}, DType::q8_0), DType::q8_0);
  EXPECT_EQ(type("blk.0.attn_q.weight", {64, 40}, DType::q8_0), DType::f16);
  EXPECT_EQ(type("blk.0.attn_q.bias", {64, 64}, DType::bf16), DType::f32);
  EXPECT_EQ(type("blk.0.attn_q_norm.weight", {64, 64}, DType::bf16), DType::f32);
  EXPECT_EQ(type("output_norm.weight", {64}, DType::bf16), DType::f32);
  EXPECT_EQ(type("blk.7.ffn_gate_inp.weight", {8, 64}, DType::bf16), DType::f32);
  EXPECT_EQ(type("blk.7.ffn_gate_inp.weight", {8, 64}, DType::bf16, "dbrx"), DType::bf16);
  EXPECT_EQ(type("blk.7.ffn_gate_inp_shexp.weight", {1, 64}, DType::bf16), DType::f32);
  EXPECT_EQ(type("position_embd.weight", {512, 64}, DType::bf16), DType::f32);
  EXPECT_EQ(type("enc.blk.0.attn_rel_b.weight", {32, 4}, DType::bf16), DType::bf16);
  EXPECT_EQ(
      llamacpp::converter_type({"blk.0.ffn_up_exps.weight", {4, 64, 64}, DType::mxfp4}, DType::f16, "gpt-oss").type,
      DType::mxfp4);
}

TEST(Recipe, ReadsWhatMattersFromTheMetadata) {
  TypedMetadata metadata;
  metadata.set(MetadataEntry::of("general.architecture", std::string_view("openelm")));
  metadata.set(MetadataEntry::of("openelm.block_count", 28u));
  const std::vector<std::int32_t> heads = {12, 16}, kv_heads = {3, 4};
  metadata.set(MetadataEntry::numbers<std::int32_t>("openelm.attention.head_count", heads));
  metadata.set(MetadataEntry::numbers<std::int32_t>("openelm.attention.head_count_kv", kv_heads));
  const ModelFacts facts = llamacpp::model_facts(metadata);
  EXPECT_EQ(facts.blocks, 28);
  EXPECT_EQ(facts.heads_per_kv_head(), 4);
  EXPECT_EQ(facts.experts, 0);
  EXPECT_EQ(llamacpp::model_facts({}).heads_per_kv_head(), 0);
}

TEST(FileType, IsKnownByNameInAnyCaseAndByNumber) {
  EXPECT_EQ(llamacpp::file_type("q4_k_m").number, 15);
  EXPECT_EQ(llamacpp::file_type("Q4_K").number, 15);
  EXPECT_EQ(llamacpp::file_type("15").name, "Q4_K_M");
  EXPECT_EQ(llamacpp::file_type("iq2_s").type, DType::iq2_xs);
  EXPECT_ERROR(llamacpp::file_type("15x"), Errc::invalid_argument, "there is no file type \"15x\"");
  EXPECT_ERROR(llamacpp::file_type("4"), Errc::invalid_argument, "there is no file type \"4\"");
  EXPECT_HINT(llamacpp::file_type("q4_k_n"), "did you mean Q4_K_M?");
  EXPECT_EQ(file_type_names().size(), 35 + 3 + 2);
}

// A checkpoint as it comes from a folder of Hugging Face's, with llama.cpp's names.
Checkpoint small_model(Format format = Format::safetensors, DType type = DType::bf16) {
  Checkpoint checkpoint;
  checkpoint.format = format;
  const auto put = [&](std::string_view name, Shape shape, DType dtype) {
    const std::vector<float> values(*shape.numel(), 0.5F);
    checkpoint.tensors.insert(name, Tensor::from_values<float>(DType::f32, shape, values).to(dtype));
  };
  put("token_embd.weight", {4, 256}, type);
  put("blk.1.attn_v.weight", {2, 256}, type);
  put("blk.0.attn_v.weight", {2, 256}, type);
  put("blk.0.attn_norm.weight", {256}, type);
  put("output.weight", {4, 256}, type);
  TypedMetadata& metadata = checkpoint.typed_metadata;
  metadata.set(MetadataEntry::of("general.architecture", std::string_view("llama")));
  metadata.set(MetadataEntry::of("general.file_type", 0u));
  metadata.set(MetadataEntry::of("llama.block_count", 2u));
  return checkpoint;
}

std::vector<std::pair<std::string, DType>> types_of(const Checkpoint& checkpoint) {
  std::vector<std::pair<std::string, DType>> types;
  for (const auto& [name, tensor] : checkpoint) types.emplace_back(name, tensor.dtype());
  return types;
}

using Types = std::vector<std::pair<std::string, DType>>;

TEST(ApplyRecipe, SortsTensorsAndMovesTheFileTypeToTheEnd) {
  const Checkpoint made = apply_recipe(small_model(), {.type = "q4_k_m"});
  EXPECT_EQ(types_of(made), (Types{{"output.weight", DType::q6_k},
                                   {"token_embd.weight", DType::q4_k},
                                   {"blk.0.attn_norm.weight", DType::f32},
                                   {"blk.0.attn_v.weight", DType::q4_k},
                                   {"blk.1.attn_v.weight", DType::q6_k}}));
  const TypedMetadata& metadata = made.typed_metadata;
  ASSERT_EQ(metadata.size(), 4);
  EXPECT_EQ(metadata[2].key, "general.quantization_version");
  EXPECT_EQ(metadata[3].key, "general.file_type");
  EXPECT_EQ(metadata[3].as_uint(), 15);
  EXPECT_EQ(made.at("output.weight").values<float>().size(), 1024);
}

TEST(ApplyRecipe, KeepsTheOrderForTypesOfTheConverter) {
  for (const char* type : {"q8_0", "Q8_0", "7"}) {
    const Checkpoint made = apply_recipe(small_model(), {.type = type});
    EXPECT_EQ(types_of(made), (Types{{"token_embd.weight", DType::q8_0},
                                     {"blk.1.attn_v.weight", DType::q8_0},
                                     {"blk.0.attn_v.weight", DType::q8_0},
                                     {"blk.0.attn_norm.weight", DType::f32},
                                     {"output.weight", DType::q8_0}}));
    EXPECT_EQ(made.typed_metadata[1].as_uint(), 7);
  }
}

TEST(ApplyRecipe, TakesTheSixteenBitsThatAModelHasAsItsAutomaticType) {
  const auto automatic = [](Checkpoint checkpoint, const RecipeOptions& options = {}) {
    const Checkpoint made = apply_recipe(std::move(checkpoint), options);
    EXPECT_EQ(made.at("blk.0.attn_norm.weight").dtype(), DType::f32);
    return std::pair(made.at("output.weight").dtype(), *made.typed_metadata.find_uint("general.file_type"));
  };
  EXPECT_EQ(automatic(small_model()), std::pair(DType::bf16, std::uint64_t{32}));
  EXPECT_EQ(automatic(small_model(Format::safetensors, DType::f16)), std::pair(DType::f16, std::uint64_t{1}));
  EXPECT_EQ(automatic(small_model(Format::safetensors, DType::f32)), std::pair(DType::f16, std::uint64_t{1}));
  EXPECT_EQ(automatic(small_model(Format::safetensors, DType::f32), {.automatic = DType::bf16}),
            std::pair(DType::bf16, std::uint64_t{32}));
}

TEST(ApplyRecipe, LeavesAGgufAsItIsIfTheTypeIsAutomatic) {
  const Checkpoint made = apply_recipe(small_model(Format::gguf, DType::q8_0), {});
  EXPECT_EQ(made.at("output.weight").dtype(), DType::q8_0);
  EXPECT_EQ(made.typed_metadata.find_uint("general.file_type"), 0);
}

TEST(ApplyRecipe, CopiesWhateverTheTypes) {
  const Checkpoint made = apply_recipe(small_model(Format::gguf, DType::q8_0), {.type = "copy"});
  EXPECT_EQ(made.tensors[0].name, "output.weight");
  EXPECT_EQ(made.at("output.weight").dtype(), DType::q8_0);
}

TEST(ApplyRecipe, SaysNoFileTypeWhereTheConverterSaysNone) {
  Checkpoint model = small_model();
  model.typed_metadata = {};
  model.typed_metadata.set(MetadataEntry::of("general.architecture", std::string_view("gptneox")));
  EXPECT_FALSE(apply_recipe(model, {.type = "f16"}).typed_metadata.contains("general.file_type"));
  EXPECT_TRUE(apply_recipe(model, {.type = "Q4_K_M"}).typed_metadata.contains("general.file_type"));
}

TEST(ApplyRecipe, KeepsTheBlocksOfExpertsThatCameInThem) {
  const auto with_experts = [] {
    Checkpoint model = small_model();
    const std::vector<float> values(2 * 32 * 256, 1);
    model.tensors.insert("blk.0.ffn_up_exps.weight",
                         Tensor::from_values<float>(DType::f32, {2, 32, 256}, values).to(DType::mxfp4));
    return model;
  };
  for (const auto& [type, number] : {std::pair("f32", 38u), std::pair("auto", 38u), std::pair("q8_0", 7u)}) {
    const Checkpoint made = apply_recipe(with_experts(), {.type = type});
    EXPECT_EQ(made.at("blk.0.ffn_up_exps.weight").dtype(), DType::mxfp4);
    EXPECT_EQ(made.typed_metadata.find_uint("general.file_type"), number);
  }
  EXPECT_EQ(apply_recipe(with_experts(), {.type = "MXFP4_MOE"}).at("blk.0.ffn_up_exps.weight").dtype(), DType::mxfp4);
  EXPECT_ERROR(apply_recipe(with_experts(), {.type = "Q4_K_M"}), Errc::invalid_argument, "is MXFP4 already");
}

TEST(ApplyRecipe, EncodesBlocksAgainOnlyIfThatIsAllowed) {
  const auto model = [] { return small_model(Format::gguf, DType::q8_0); };
  EXPECT_ERROR(apply_recipe(model(), {.type = "Q4_0"}), Errc::invalid_argument,
               "tensor \"output.weight\" is Q8_0 already, and would be encoded again as Q6_K");
  EXPECT_HINT(apply_recipe(model(), {.type = "Q4_0"}), "RecipeOptions::allow_requantize");
  EXPECT_EQ(apply_recipe(model(), {.type = "Q4_0", .allow_requantize = true}).at("blk.0.attn_v.weight").dtype(),
            DType::q4_0);
  EXPECT_EQ(apply_recipe(model(), {.type = "Q8_0"}).at("output.weight").dtype(), DType::q8_0);
  EXPECT_EQ(apply_recipe(model(), {.type = "F16"}).at("output.weight").dtype(), DType::f16);
}

TEST(ApplyRecipe, NotesRowsThatAreNoWholeBlocks) {
  Checkpoint model = small_model();
  const std::vector<float> values(2 * 96, 1);
  for (const char* name : {"blk.0.ffn_up.weight", "blk.1.ffn_up.weight"})
    model.tensors.insert(name, Tensor::from_values<float>(DType::f32, {2, 96}, values));
  const Checkpoint made = apply_recipe(model, {.type = "Q4_K_M"});
  EXPECT_EQ(made.at("blk.0.ffn_up.weight").dtype(), DType::q5_0);
  ASSERT_EQ(made.notes.size(), 1);
  EXPECT_EQ(
      made.notes[0].text,
      "rows of 96 are no whole blocks of Q4_K: written as Q5_0: \"blk.0.ffn_up.weight\", \"blk.1.ffn_up.weight\"");
}

TEST(ApplyRecipe, TakesTheTypeOfTheFirstRuleThatMatches) {
  const Checkpoint made = apply_recipe(
      small_model(), {.type = "Q8_0",
                      .tensor_types = {parse_tensor_type("BLK\\.[01]=q4_0"), parse_tensor_type("attn_v=Q5_0"),
                                       parse_tensor_type("^output=f16")}});
  EXPECT_EQ(made.at("blk.0.attn_v.weight").dtype(), DType::q4_0);
  EXPECT_EQ(made.at("blk.0.attn_norm.weight").dtype(), DType::f32);
  EXPECT_EQ(made.at("output.weight").dtype(), DType::f16);
  ASSERT_EQ(made.notes.size(), 1);
  EXPECT_EQ(made.notes[0].text, "no tensor gets its type from \"attn_v\"");
}

TEST(ApplyRecipe, RefusesWhatMakesNoSense) {
  EXPECT_ERROR(apply_recipe(small_model(), {.type = "Q4_K_X"}), Errc::invalid_argument, "there is no file type");
  EXPECT_ERROR(apply_recipe(small_model(), {.type = "Q2_K_S"}), Errc::invalid_argument, "needs an importance matrix");
  EXPECT_HINT(apply_recipe(small_model(), {.type = "Q2_K_S"}), "RecipeOptions::importance");
  EXPECT_ERROR(apply_recipe(small_model(), {.type = "Q6_K", .tensor_types = {{"(", DType::q8_0}}}),
               Errc::invalid_argument, "the expression \"(\" is wrong");
  EXPECT_ERROR(apply_recipe(small_model(), {.type = "Q6_K", .output_tensor_type = DType::u8}), Errc::invalid_argument,
               "cannot be U8");
  EXPECT_ERROR(apply_recipe(small_model(), {.pure = true}), Errc::invalid_argument, "auto quantizes nothing");
  EXPECT_ERROR(parse_tensor_type("attn_v"), Errc::invalid_argument, "has no '='");
  EXPECT_ERROR(parse_tensor_type("attn_v=q9"), Errc::invalid_argument, "cannot be \"q9\"");
}

TEST(ApplyRecipe, SaysWhichImportanceMatrixItUsed) {
  const std::vector<PlainTensor> tensors = {{"blk.0.attn_v.weight", {2, 256}, DType::bf16},
                                            {"blk.1.attn_v.weight", {2, 256}, DType::bf16}};
  for (const char* type : {"Q4_K_M", "F16"}) {
    const Checkpoint made = apply_recipe(small_model(), {.type = type, .importance = importance_of(tensors)});
    const TypedMetadata& metadata = made.typed_metadata;
    EXPECT_EQ(metadata.find_string("quantize.imatrix.file"), "imatrix.dat");
    EXPECT_EQ(metadata.find_string("quantize.imatrix.dataset"), "text.txt");
    EXPECT_EQ(metadata.find_uint("quantize.imatrix.entries_count"), 2);
    EXPECT_EQ(metadata.find_uint("quantize.imatrix.chunks_count"), 6);
  }
}

TEST(ApplyRecipe, RefusesImportanceOfAnotherShapeExceptForEmbeddings) {
  const auto options = [](std::string_view name) {
    const std::vector<PlainTensor> tensors = {{name, {2, 64}, DType::bf16},
                                              {"blk.1.attn_v.weight", {2, 256}, DType::bf16}};
    return RecipeOptions{.type = "Q4_K_M", .importance = importance_of(tensors)};
  };
  EXPECT_ERROR(apply_recipe(small_model(), options("blk.0.attn_v.weight")), Errc::invalid_argument,
               "the importance of tensor \"blk.0.attn_v.weight\" has 64 values");
  EXPECT_NO_THROW(apply_recipe(small_model(), options("token_embd.weight")));
  const std::vector<PlainTensor> others = {{"blk.7.attn_v.weight", {2, 256}, DType::bf16}};
  EXPECT_ERROR(apply_recipe(small_model(), {.type = "Q4_K_M", .importance = importance_of(others)}),
               Errc::invalid_argument, "no tensor of the model is in the importance matrix");
}

}  // namespace
}  // namespace ballast
