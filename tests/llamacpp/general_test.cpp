#include "llamacpp/about/general.hpp"

#include <gtest/gtest.h>
#include <ballast/error.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llamacpp/about/model_card.hpp"
#include "llamacpp/about/model_name.hpp"
#include "llamacpp/model_folder_files.hpp"
#include "support/expect_error.hpp"

namespace ballast::llamacpp {
namespace {

using test::ModelFiles;

constexpr std::string_view kLlama = R"({"architectures":["LlamaForCausalLM"],"model_type":"llama"})";

struct Written {
  TypedMetadata keys;
  std::vector<Note> notes;

  std::string at(std::string_view key) const {
    const MetadataEntry* entry = keys.find(key);
    return entry == nullptr ? "missing" : text(*entry);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const MetadataEntry& entry : keys) all.emplace_back(entry.key);
    return all;
  }
};

Written write(const ModelFiles& files, std::uint64_t parameters = 0) {
  Written written;
  const ModelFolder folder = files.folder();
  const ParameterCounts counts{parameters, parameters, 0, 0};
  add_general(folder, read_model_config(folder), counts, written.keys, written.notes);
  return written;
}

Written write_with_card(std::string_view card) { return write(ModelFiles(kLlama).write("README.md", card)); }

TEST(ModelName, IsMadeOfParts) {
  struct Case {
    std::string_view id;
    std::uint64_t parameters;
    std::string_view basename, size_label, finetune, version;
  };
  constexpr Case kCases[] = {
      {"Llama-3.1-8B-Instruct", 8030261248, "Llama-3.1", "8B", "Instruct", ""},
      {"Mixtral-8x7B-v0.1", 46702792704, "Mixtral", "8x7B", "", "v0.1"},
      {"Qwen2.5-7B-Instruct-1M", 7615616512, "Qwen2.5", "7B", "Instruct-1m", ""},
      {"Phi-3-mini-4k-instruct", 3821079552, "Phi-3", "mini", "4k-instruct", ""},
      {"bloom-7b1", 7069016064, "bloom", "7.1B", "", ""},
      {"stablelm-2-1_6b", 1644515328, "stablelm-2", "1.6B", "", ""},
      {"Qwen3-30B-A3B", 30532122624, "Qwen3", "30B-A3B", "", ""},
      {"Tiny-Llama-1.1B-Chat-v1.0", 129000, "Tiny-Llama", "", "1.1b-Chat", "v1.0"},
      {"model-q4_k_m-bf16", 0, "", "", "", ""},
      {"gpt2", 0, "", "", "", ""},
      {"7B-chat", 0, "", "", "7B-chat", ""},
      {"x-large-0.5B", 0, "x-large", "0.5B", "", ""},
      {"--a--1B--", 0, "a", "1B", "", ""},
      {"", 0, "", "", "", ""},
      {"-", 0, "", "", "", ""},
  };
  for (const auto& [id, parameters, basename, size_label, finetune, version] : kCases) {
    const ModelNameParts parts = split_model_name(id, parameters);
    EXPECT_EQ(parts.basename.value_or(""), basename) << id;
    EXPECT_EQ(parts.size_label.value_or(""), size_label) << id;
    EXPECT_EQ(parts.finetune.value_or(""), finetune) << id;
    EXPECT_EQ(parts.version.value_or(""), version) << id;
  }
}

TEST(ModelName, MayHaveAnOrganization) {
  EXPECT_EQ(split_model_name("meta-llama/Llama-2-7b-hf", 0).organization, "meta-llama");
  EXPECT_EQ(split_model_name("./Llama-2-7b-hf", 0).organization, std::nullopt);
  EXPECT_EQ(split_model_name("a model of mine", 0).name, "a model of mine");
  EXPECT_EQ(split_model_name("/x", 0).organization, "");
}

TEST(ModelName, BecomesATitle) {
  EXPECT_EQ(title_of_id("gemma-3-1b-it"), "Gemma 3 1b It");
  EXPECT_EQ(title_of_id("Mixtral-8x7B-v0.1"), "Mixtral 8x7B v0.1");
  EXPECT_EQ(title_of_id("all-MiniLM-L6-v2"), "All MiniLM L6 v2");
  EXPECT_EQ(title_of_id("qwen2_moe"), "Qwen2_Moe");
  EXPECT_EQ(title_of_id("模型-chat"), "模型 Chat");
  EXPECT_EQ(title_of_id("  - "), "");
}

TEST(ModelName, HasARoundedSize) {
  constexpr std::pair<std::uint64_t, std::string_view> kCases[] = {
      {129000, "129K"},  {1235814, "1.2M"},   {8030261248, "8.0B"},    {1000000, "1000K"},
      {1000001, "1.0M"}, {9950, "10K"},       {950, "1.0K"},           {400, "0.40K"},
      {0, "0.00K"},      {494032768, "494M"}, {1500000000000, "1.5T"},
  };
  for (const auto& [count, label] : kCases) EXPECT_EQ(rounded_parameter_count(count), label);
}

TEST(General, CountsExpertsOnce) {
  const std::uint64_t embedding[] = {100, 8}, experts[] = {4, 16, 8}, biases[] = {4, 16};
  const CountedTensor tensors[] = {
      {"token_embd.weight", embedding}, {"blk.0.ffn_up_exps.weight", experts}, {"blk.0.ffn_up_exps.bias", biases}};
  const ParameterCounts counts = count_parameters(tensors);
  EXPECT_EQ(counts.total, 800u + 512u + 64u);
  EXPECT_EQ(counts.shared, 864u);
  EXPECT_EQ(counts.expert, 128u);
  EXPECT_EQ(counts.expert_count, 4u);

  const std::uint64_t huge[] = {1ull << 40, 1ull << 40};
  const CountedTensor too_much[] = {{"x", huge}};
  EXPECT_ERROR(count_parameters(too_much), Errc::malformed, "does not fit 64 bits");
}

TEST(General, TakesAllFromTheFoldersNameIfThereIsNothingElse) {
  const Written written = write(ModelFiles(kLlama, "Llama-3.1-8B-Instruct-v2"), 8030261248);
  const std::vector<std::string> expected = {"general.architecture", "general.type",     "general.name",
                                             "general.version",      "general.finetune", "general.basename",
                                             "general.size_label"};
  EXPECT_EQ(written.names(), expected);
  EXPECT_EQ(written.at("general.name"), "Llama 3.1 8B Instruct v2");
  EXPECT_EQ(written.at("general.version"), "v2");
  EXPECT_EQ(written.at("general.size_label"), "8B");
}

TEST(General, BelievesTheConfigBeforeTheFolder) {
  const Written written = write(ModelFiles(
      R"({"architectures":["LlamaForCausalLM"],"_name_or_path":"meta-llama/Llama-2-7b-hf"})", "checkpoint-500"));
  EXPECT_EQ(written.at("general.name"), "Llama 2 7b Hf");
  EXPECT_EQ(written.at("general.organization"), "Meta Llama");
  EXPECT_EQ(written.at("general.size_label"), "7B");
  EXPECT_EQ(written.at("general.version"), "500");
  EXPECT_EQ(write(ModelFiles(R"({"architectures":["X"],"_name_or_path":"/home/me/x"})")).at("general.name"), "Model");
  // A name that is there and empty is a name.
  EXPECT_EQ(write(ModelFiles(R"({"architectures":["X"],"_name_or_path":""})")).at("general.name"), "missing");
}

TEST(General, BelievesTheCardBeforeAllElse) {
  const Written written = write_with_card(
      "---\n"
      "model_name: My Model\n"
      "model_creator: Somebody\n"
      "license: [mit, apache-2.0]\n"
      "license_link: https://x.y\n"
      "base_model:\n"
      "- mistralai/Mistral-7B-v0.1\n"
      "- https://huggingface.co/google/gemma-2-2b-it\n"
      "- https://example.com/x\n"
      "- {name: Own, repo_url: https://z}\n"
      "- 5\n"
      "datasets: HuggingFaceH4/ultrachat_200k\n"
      "tags: [a, b]\n"
      "pipeline_tag: text-generation\n"
      "language:\n"
      "- en\n"
      "- no\n"
      "---\n"
      "# A model\n");
  EXPECT_EQ(written.at("general.name"), "My Model");
  EXPECT_EQ(written.at("general.author"), "Somebody");
  EXPECT_EQ(written.at("general.license"), "mit,apache-2.0");
  EXPECT_EQ(written.at("general.license.link"), "https://x.y");
  EXPECT_EQ(written.at("general.base_model.count"), "5");
  EXPECT_EQ(written.at("general.base_model.0.name"), "Mistral 7B v0.1");
  EXPECT_EQ(written.at("general.base_model.0.organization"), "Mistralai");
  EXPECT_EQ(written.at("general.base_model.0.version"), "v0.1");
  EXPECT_EQ(written.at("general.base_model.0.repo_url"), "https://huggingface.co/mistralai/Mistral-7B-v0.1");
  EXPECT_EQ(written.at("general.base_model.1.name"), "Gemma 2 2b It");
  EXPECT_EQ(written.at("general.base_model.2.name"), "missing");
  EXPECT_EQ(written.at("general.base_model.3.name"), "Own");
  EXPECT_EQ(written.at("general.dataset.0.name"), "Ultrachat_200K");
  EXPECT_EQ(written.at("general.tags"), R"(["a", "b", "text-generation"])");
  EXPECT_EQ(written.at("general.languages"), R"(["en", "no"])");
  EXPECT_TRUE(written.notes.empty());
}

TEST(General, TakesTheRecommendedSampling) {
  ModelFiles files(kLlama);
  files.write("generation_config.json", R"({"top_k":20,"top_p":1,"temperature":0.7,"min_p":null,"do_sample":true})");
  const Written written = write(files);
  EXPECT_EQ(written.keys.find("general.sampling.top_k")->type, MetadataType::i32);
  EXPECT_EQ(written.keys.find("general.sampling.top_p")->type, MetadataType::f32);
  EXPECT_EQ(written.at("general.sampling.temp"), "0.7");
  EXPECT_EQ(written.at("general.sampling.min_p"), "missing");

  files.write("generation_config.json", R"({"top_k":20.5,"top_p":"x","sequence":{}})");
  EXPECT_EQ(write(files).notes.size(), 3u);
  files.write("generation_config.json", "{x");
  EXPECT_EQ(write(files).notes.size(), 1u);
  files.write("generation_config.json", "[]");
  EXPECT_FALSE(write(files).keys.contains("general.sampling.top_k"));
}

TEST(General, SaysThatACardCannotBeRead) {
  const Written written = write_with_card("---\nlicense: &a mit\nother: *a\n---\n");
  ASSERT_EQ(written.notes.size(), 1u);
  EXPECT_NE(written.notes[0].text.find("an anchor or an alias"), std::string::npos);
  EXPECT_EQ(written.at("general.license"), "missing");
}

TEST(General, SurvivesOddCards) {
  for (const std::string_view card :
       {"", "---", "---\n", "---\n---\n", "---\n- a\n---\n", "---\ntext\n---\n", "no card", "\xff",
        "---\nlicense: {a: b}\n---\n", "---\ntags: [{a: b}, [c], 5, no]\n---\n", "---\ntags: [1, x, 2.5]\n---\n",
        "---\nversion: 1.0\nname: 5\n---\n", "---\nbase_model: {a: b}\ndatasets: [[a], null]\n---\n",
        "---\nlanguage: no\n---\n", "---\nlanguages: [[en]]\n---\n", "---\ntags: [.nan, .inf]\n---\n",
        "---\r\nlicense: mit\r\n---\r\n"}) {
    EXPECT_EQ(write_with_card(card).at("general.architecture"), "llama") << card;
  }
  EXPECT_EQ(write_with_card("---\nbase_model:\n---\n").at("general.base_model.count"), "0");
  EXPECT_EQ(write_with_card("---\nlanguage: [en, no]\n---\n").at("general.languages"), R"(["en", "no"])");
  EXPECT_EQ(write_with_card("---\nversion: 1.5\n---\n").at("general.version"), "1.5");
}

TEST(ModelCard, EndsAtTheSecondLineOfDashes) {
  EXPECT_EQ(to_string(parse_model_card("---\na: 1\n---\nb: 2\n---\n")), R"({"a":1})");
  EXPECT_EQ(to_string(parse_model_card("---\na:\t1\n")), R"({"a":1})");
  EXPECT_EQ(to_string(parse_model_card("---\r\na: 1\r\n---\r\nb: 2\r\n")), R"({"a":1})");
  EXPECT_EQ(to_string(parse_model_card("\n---\na: 1\n---\n")), "{}");
  EXPECT_EQ(to_string(parse_model_card(" ---\na: 1\n---\n")), "{}");
}

}  // namespace
}  // namespace ballast::llamacpp
