// Adapters in folders and files: saving, loading, and what may be wrong with them.
#include <gtest/gtest.h>

#include <filesystem>

#include <ballast/merge.hpp>
#include <ballast/save.hpp>

#include "builders/safetensors_file.hpp"
#include "builders/torch_file.hpp"
#include "builders/zip_file.hpp"
#include "support/adapter_parts.hpp"
#include "support/counting_source.hpp"
#include "support/expect_error.hpp"
#include "support/fixtures.hpp"
#include "support/opencl_device.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using test::small_lora;
using test::sorted_names;
using test::state_of;
using test::TempDir;
using Names = std::vector<std::string>;

const Names kSmall = {"base_model.model.q.lora_A.weight", "base_model.model.q.lora_B.weight"};

std::string file_with(const Names& names, const std::vector<std::uint64_t>& shape = {2, 2}) {
  SafetensorsFile file;
  for (const std::string& name : names) file.tensor(name, "F32", shape);
  return file.text();
}

TEST(SavedAdapter, IsTheFolderThatPeftWrites) {
  TempDir dir;
  save_adapter(small_lora(), dir / "out");
  EXPECT_EQ(to_string(load_adapter_config(dir / "out/adapter_config.json")), dir.read("out/adapter_config.json"));
  EXPECT_EQ(open(dir / "out/adapter_model.safetensors").metadata, Metadata({{"format", "pt"}}));
  const Adapter back = load_adapter(dir / "out");
  EXPECT_EQ(sorted_names(back.tensors), kSmall);
  EXPECT_EQ(back.config.fields.at("lora_alpha").integer(), 4);
  EXPECT_ERROR(save_adapter(small_lora(), dir / "out"), Errc::invalid_argument, "already exists");
}

TEST(SavedAdapter, IsLoadedToTheDeviceThatIsAskedFor) {
  TempDir dir;
  save_adapter(small_lora(), dir / "out");
  AdapterLoadOptions options;
  options.device = "meta";
  const Adapter shapes = load_adapter(dir / "out", options);
  EXPECT_EQ(sorted_names(shapes.tensors), kSmall);
  EXPECT_EQ(shapes.tensors[0].tensor.shape(), small_lora().tensors[0].tensor.shape());
  EXPECT_FALSE(shapes.tensors[0].tensor.has_data());
}

TEST(SavedAdapter, IsFoundWhereverItsFilesAre) {
  TempDir dir;
  save_adapter(small_lora(), dir / "out");
  const auto files = std::make_shared<test::MemoryFiles>();
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
    files->add("store:/lora/" + std::string(name), dir.read("out/" + std::string(name)));
    files->add("store:/both/second/" + std::string(name), dir.read("out/" + std::string(name)));
  }
  const AdapterLoadOptions options{.open = {.files = files}};
  for (const std::string target :
       {"store:/lora", "store:/lora/adapter_model.safetensors", "store:/lora/adapter_config.json"}) {
    const Adapter adapter = load_adapter(target, options);
    EXPECT_EQ(sorted_names(adapter.tensors), kSmall) << target;
    EXPECT_EQ(adapter.config.fields.at("lora_alpha").integer(), 4) << target;
    EXPECT_EQ(test::bytes_of(adapter.tensors[0].tensor), test::bytes_of(small_lora().tensors[0].tensor)) << target;
  }
  EXPECT_EQ(load_adapter("store:/both", {.subfolder = "second", .open = {.files = files}}).tensors.size(), 2u);
  EXPECT_ERROR(load_adapter("store:/both", options), Errc::not_found, "no adapter in this folder");
  EXPECT_ERROR(load_adapter("store:/none", options), Errc::not_found, "store:/none");
}

using test::OnOpenCl;

TEST_F(OnOpenCl, AnAdapterIsLoadedAndMergedFromThere) {
  TempDir dir;
  save_adapter(small_lora(), dir / "out");
  save_adapter(small_lora(), dir / "diffusers.safetensors", {.dialect = AdapterDialect::diffusers});
  for (const char* path : {"out", "diffusers.safetensors"}) {
    const Adapter here = load_adapter(dir / path), there = load_adapter(dir / path, {.device = "opencl:0"});
    ASSERT_EQ(sorted_names(there.tensors), sorted_names(here.tensors));
    for (const auto& [name, tensor] : there.tensors) {
      EXPECT_EQ(place_of(tensor).device, Device("opencl:0")) << path << " " << name;
      EXPECT_EQ(test::bytes_of(tensor), test::bytes_of(here.tensors.at(name))) << path << " " << name;
    }
    Checkpoint base;
    base.tensors = state_of({{"q.weight", {4, 3}}});
    EXPECT_EQ(test::bytes_of(merge(base, {there}).at("q.weight")), test::bytes_of(merge(base, {here}).at("q.weight")));
  }
}

TEST(SavedAdapter, IsReadWithoutItsPrefix) {
  TempDir dir;
  Adapter adapter = small_lora(R"({"peft_type": "VERA", "save_projection": true})");
  adapter.tensors = state_of({{"base_model.vera_A", {2, 2}}, {"base_model.model.q.vera_lambda_b", {2}}});
  save_adapter(adapter, dir / "out", {.portable = true});
  EXPECT_EQ(sorted_names(open(dir / "out/adapter_model.safetensors").tensors), Names({"q.vera_lambda_b", "vera_A"}));
  EXPECT_EQ(sorted_names(load_adapter(dir / "out").tensors), sorted_names(adapter.tensors));
}

TEST(LoadedAdapter, IsReadFromSafetensorsRatherThanFromAPickle) {
  TempDir dir;
  std::filesystem::create_directory(dir / "sub");
  dir.write("sub/adapter_config.json", test::kLora);
  dir.write("sub/adapter_model.bin", "not even looked at");
  dir.write("sub/adapter_model.safetensors", file_with(kSmall));
  EXPECT_EQ(sorted_names(load_adapter(dir.path(), {.subfolder = "sub"}).tensors), kSmall);
  EXPECT_EQ(sorted_names(load_adapter(dir / "sub/adapter_model.safetensors").tensors), kSmall);
  EXPECT_EQ(sorted_names(load_adapter(dir / "sub/adapter_config.json").tensors), kSmall);
}

TEST(LoadedAdapter, HasTheFirstMappingThatMatches) {
  TempDir dir;
  dir.write("adapter_config.json", test::kLora);
  dir.write("adapter_model.safetensors", file_with(kSmall));
  const AdapterLoadOptions options{.key_mapping = {{"^x", "y"}, {"^q", "model.q"}, {"^model", "never"}}};
  EXPECT_EQ(sorted_names(load_adapter(dir.path(), options).tensors),
            Names({"base_model.model.model.q.lora_A.weight", "base_model.model.model.q.lora_B.weight"}));
  EXPECT_ERROR(load_adapter(dir.path(), {.key_mapping = {{"(", ""}}}), Errc::invalid_argument, "is wrong");
  EXPECT_ERROR(load_adapter(dir.path(), {.key_mapping = {{".*", "x"}}}), Errc::invalid_argument, "two tensors");
}

TEST(LoadedAdapter, OfAnyDialectHasItsNamesMapped) {
  TempDir dir;
  dir.write("kohya.safetensors", test::SafetensorsFile()
                                     .tensor("lora_unet_q.lora_down.weight", "F32", {2, 3})
                                     .tensor("lora_unet_q.lora_up.weight", "F32", {4, 2})
                                     .tensor("lora_unet_k.lora_down.weight", "F32", {1, 3})
                                     .tensor("lora_unet_k.lora_up.weight", "F32", {4, 1})
                                     .text());
  const Adapter adapter = load_adapter(dir / "kohya.safetensors", {.key_mapping = {{"^unet\\.q\\.", "model.query."}}});
  EXPECT_EQ(sorted_names(adapter.tensors),
            Names({"base_model.model.model.query.lora_A.weight", "base_model.model.model.query.lora_B.weight",
                   "base_model.model.unet.k.lora_A.weight", "base_model.model.unet.k.lora_B.weight"}));
  EXPECT_EQ(lora_rank(adapter.config, "model.query"), 2) << "the configuration names the modules as the tensors do";
  EXPECT_EQ(lora_rank(adapter.config, "unet.k"), 1);
  EXPECT_ERROR(load_adapter(dir / "kohya.safetensors", {.key_mapping = {{"[qk]\\.", "x."}}}), Errc::invalid_argument,
               "two modules of the adapter would be called \"unet.x\"");
  EXPECT_ERROR(load_adapter(dir / "kohya.safetensors", {.key_mapping = {{"weight", "x"}}}), Errc::invalid_argument,
               "change more of");
  for (const RenameRule& wrong : {RenameRule{"(", ""}, RenameRule{"q", "\\7"}})
    EXPECT_ERROR(load_adapter(dir / "kohya.safetensors", {.key_mapping = {wrong}}), Errc::invalid_argument, "is wrong");
}

TEST(LoadedAdapter, SaysWhichMappingsNameNothing) {
  TempDir dir;
  dir.write("adapter_config.json", test::kLora);
  dir.write("adapter_model.safetensors", file_with(kSmall));
  const Adapter adapter =
      load_adapter(dir.path(), {.key_mapping = {{"^nosuch", "y"}, {"^q", "model.q"}, {"^q\\.", "z."}}});
  ASSERT_EQ(adapter.notes.size(), 2u);
  EXPECT_EQ(adapter.notes[0].text, "the expression \"^nosuch\" matches no name: nothing is renamed");
  EXPECT_EQ(adapter.notes[1].text, "the expression \"^q\\\\.\" comes too late: an earlier one matches the same names");
}

TEST(LoadedAdapter, InAnArchiveIsRefused) {
  TempDir dir;
  const std::string zip = test::ZipFile().stored("adapter_model.safetensors", file_with(kSmall)).text();
  dir.write("adapter.zip", zip);
  EXPECT_ERROR(load_adapter(dir / "adapter.zip"), Errc::unsupported, "this is an archive");
  EXPECT_HINT(load_adapter(dir / "adapter.zip"), "unpack it");
}

TEST(LoadedAdapter, WithoutAConfigurationIsKnownByItsTensors) {
  TempDir dir;
  dir.write("adapter_model.safetensors", file_with({"q.lora_A.weight", "q.lora_B.weight", "head.weight"}));
  const Adapter lora = load_adapter(dir.path());
  EXPECT_EQ(lora.config.peft_type(), "LORA");
  EXPECT_EQ(lora_scaling(lora.config, "q"), 1);
  EXPECT_EQ(lora.config.fields.at("modules_to_save").list()[0].text(), "head");
  EXPECT_EQ(lora.notes.size(), 1u);

  dir.write("adapter_model.safetensors", file_with({"base_model.model.q.ia3_l"}));
  EXPECT_EQ(load_adapter(dir.path()).config.peft_type(), "IA3");
}

TEST(LoadedAdapter, HasIntegersIfWindowsWroteFloats) {
  TempDir dir;
  dir.write("adapter_model.safetensors",
            SafetensorsFile()
                .values<float>("base_model.model.q.shira_indices", "F32", {2, 1}, {3, 70000})
                .tensor("base_model.model.q.shira_weight", "F32", {1})
                .text());
  const Tensor indices = load_adapter(dir.path()).tensors.at("base_model.model.q.shira_indices").realize();
  EXPECT_EQ(indices.as<std::int32_t>()[1], 70000);
}

TEST(LoadedAdapter, SaysWhatIsMissing) {
  TempDir dir;
  EXPECT_ERROR(load_adapter(dir.path()), Errc::not_found, "no adapter in this folder");
  dir.write("adapter_config.json", test::kLora);
  EXPECT_ERROR(load_adapter(dir.path()), Errc::not_found, "a configuration without weights");
  EXPECT_HINT(load_adapter(dir.path()), "was the download complete?");
  dir.write("adapter_model.safetensors", file_with({"x"}));
  dir.write("adapter_config.json", "{\"lora_alpha\": NaN}");
  EXPECT_HINT(load_adapter(dir.path()), "JSON has no NaN");
  std::filesystem::remove(dir / "adapter_config.json");
  EXPECT_ERROR(load_adapter(dir.path()), Errc::not_found, "do not tell what kind of adapter");
  EXPECT_ERROR(load_adapter(dir / "nothing"), Errc::not_found, "");
}

// The sentence that check_adapter() has for an adapter with these tensors.
struct Problem {
  const char* config;
  std::vector<std::pair<std::string, Shape>> tensors;
  const char *text, *hint;
};
TEST(AdapterProblems, AreSentencesThatSayWhatToDo) {
  const std::pair<std::string, Shape> a = {kSmall[0], {2, 3}}, b = {kSmall[1], {4, 2}}, wide = {kSmall[1], {4, 3}};
  const Problem table[] = {
      {R"({"peft_type": "LORA", "r": 4})", {a, b}, "says rank 4 for module \"q\", its tensors have 2", "correct \"r\""},
      {R"({"peft_type": "LORA", "r": 2})", {a, wide}, "an A of rank 2 and a B of rank 3", "the same adapter"},
      {R"({"peft_type": "LORA", "r": 2})", {a}, "only one half of its LoRA", "saved completely"},
      {R"({"peft_type": "LORA", "r": 2, "lora_alpha": 0})", {a, b}, "an alpha of 0", "correct \"lora_alpha\""},
      {R"({"peft_type": "LORA", "r": 2, "lora_alpha": "x"})", {a, b}, "\"x\" is no number", ""},
      {R"({"peft_type": "IA3"})", {a, b}, "no tensor is one of IA3", "belongs to the weights"},
      {R"({"peft_type": "LORA"})", {}, "has no tensors", "saved completely"},
      {R"({"peft_type": "LORA", "modules_to_save": ["head"]})",
       {{"base_model.model.tail.weight", {2, 3}}},
       "no tensor is one of LORA",
       "belongs to the weights"},
      {R"({})", {a}, "no \"peft_type\"", "add"},
  };
  for (const Problem& bad : table) {
    const Adapter adapter{.config = test::config_of(bad.config), .tensors = state_of(bad.tensors)};
    const std::vector<AdapterProblem> found = find_problems(adapter);
    ASSERT_EQ(found.size(), 1u) << bad.text;
    EXPECT_NE(found[0].text.find(bad.text), std::string::npos) << found[0].text;
    EXPECT_NE(found[0].hint.text().find(bad.hint), std::string::npos) << found[0].hint.text();
    if (found[0].is_harmless) {
      EXPECT_NO_THROW(check_adapter(adapter));
    } else {
      EXPECT_ERROR(check_adapter(adapter), found[0].code, bad.text);
    }
  }
}

TEST(AdapterProblems, AreNotFoundInAnAdapterOfModulesThatWereTrainedWhole) {
  const Adapter adapter{.config = test::config_of(R"({"peft_type": "LORA", "modules_to_save": ["head"]})"),
                        .tensors = state_of({{"base_model.model.head.weight", {2, 3}}})};
  EXPECT_TRUE(find_problems(adapter).empty());
}

TEST(AdapterSummary, GivesModulesMeaningfulNames) {
  const auto shown = [](const std::vector<std::string>& modules) {
    std::vector<std::pair<std::string, Shape>> tensors;
    for (const std::string& module : modules) {
      tensors.emplace_back("base_model.model." + module + ".lora_A.weight", Shape{2, 3});
      tensors.emplace_back("base_model.model." + module + ".lora_B.weight", Shape{4, 2});
    }
    const Adapter adapter{.config = test::config_of(test::kLora), .tensors = state_of(tensors)};
    std::string text;
    for (const auto& [name, count] : summarize(adapter).modules) text += name + " " + std::to_string(count) + ", ";
    return text;
  };
  EXPECT_EQ(shown({"b.0.attn.to_out.0", "b.1.attn.to_out.0", "b.0.ff.net.2", "b.0.ff.net.0.proj"}),
            "net.2 1, proj 1, to_out.0 2, ");
  EXPECT_EQ(shown({"0", "1"}), "0 1, 1 1, ") << "they have no other names";
  EXPECT_EQ(shown({"mlp.experts.base_layer", "mlp.experts"}), "experts 1, ") << "one module, wrapped twice";
}

TEST(AdapterSummary, NamesTheVariantOfALoraAndWhetherItCanBeMerged) {
  struct Row {
    const char *field, *value, *variant;
    bool is_merged;
  };
  const Row rows[] = {
      {"use_dora", "true", "DoRA", true},
      {"monteclora_config", R"({"num_samples": 8})", "MonteCLoRA", true},
      {"alora_invocation_tokens", "[7, 8]", "aLoRA", false},
      {"arrow_config", R"({"top_k": 2})", "Arrow", false},
      {"use_qalora", "true", "QA-LoRA", false},
  };
  for (const Row& row : rows) {
    Adapter adapter = small_lora();
    EXPECT_TRUE(summarize(adapter).variants.empty());
    adapter.config.fields.set(row.field, Json::parse(row.value));
    const AdapterSummary summary = summarize(adapter);
    EXPECT_EQ(summary.type, "LORA");
    EXPECT_EQ(summary.variants, Names({row.variant}));
    EXPECT_EQ(summary.formula.empty(), !row.is_merged) << row.variant;
    EXPECT_EQ(summary.why_not_merged.empty(), row.is_merged) << row.variant;
    EXPECT_EQ(summary.scales.size(), 1u);
  }
  Adapter other = small_lora(R"({"peft_type": "ADALORA", "use_dora": true})");
  EXPECT_TRUE(summarize(other).variants.empty()) << "only a LoRA has variants";
}

TEST(AdapterSummary, CountsTheModulesOfVbloraThatHaveOnlyTheLargestLogits) {
  const std::string at = "base_model.model.q.vblora_logits_";
  const Adapter adapter{.config = test::config_of(R"({"peft_type": "VBLORA"})"),
                        .tensors = state_of({{"base_model.vblora_vector_bank", {4, 2}},
                                             {at + "A_topk_indices", {2, 2, 2}},
                                             {at + "A_topk_weights", {2, 2, 1}},
                                             {at + "B_topk_indices", {2, 2, 2}},
                                             {at + "B_topk_weights", {2, 2, 1}}})};
  const AdapterSummary summary = summarize(adapter);
  ASSERT_EQ(summary.modules.size(), 1u);
  EXPECT_EQ(summary.modules[0].name, "q");
  EXPECT_TRUE(summary.saved_whole.empty());
}

TEST(AdapterFixtures, CanBeLoadedShownAndSaved) {
  SKIP_WITHOUT_FIXTURES("adapters");
  for (const auto& entry : std::filesystem::directory_iterator(test::fixture_path("adapters"))) {
    const Adapter adapter = load_adapter(entry.path().string());
    const AdapterSummary summary = summarize(adapter);
    EXPECT_EQ(summary.type, "LORA");
    EXPECT_EQ(summary.scales.size(), 1u);
    EXPECT_EQ(summary.scales.at(0).rank, 8);
    EXPECT_GE(summary.modules.size(), 2u);
    EXPECT_EQ(find_problems(adapter).size(), 0u);

    TempDir dir;
    save_adapter(adapter, dir / "out");
    const Adapter back = load_adapter(dir / "out");
    ASSERT_EQ(sorted_names(back.tensors), sorted_names(adapter.tensors));
    for (const auto& [name, tensor] : adapter.tensors)
      EXPECT_EQ(test::values_of(back.tensors.at(name)), test::values_of(tensor)) << name;
  }
}

}  // namespace
}  // namespace ballast
