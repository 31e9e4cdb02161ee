// The files beside the weights: which are taken along, and what becomes of config.json.
#include <gtest/gtest.h>

#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/sidecars.hpp>
#include <ballast/transform.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "builders/safetensors_file.hpp"
#include "builders/temp_dir.hpp"
#include "checkpoint/sidecars/names.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

Names names_of(const Sidecars& sidecars) {
  Names names;
  for (const Sidecar& file : sidecars.files) names.push_back(file.name);
  return names;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string notes_of(const std::vector<Note>& notes) {
  std::string text;
  for (const Note& note : notes) text += note.where + ": " + note.text + "\n";
  return text;
}

class SidecarsTest : public testing::Test {
 protected:
  SidecarsTest() {
    fs::create_directory(source_);
    write("model.safetensors", test::SafetensorsFile().tensor("w", "F32", {4}).text());
    write("config.json", R"({"torch_dtype": "float32", "eps": 1e-05})");
  }

  void write(const fs::path& name, const std::string& text) {
    fs::create_directories((source_ / name).parent_path());
    std::ofstream(source_ / name, std::ios::binary) << text;
  }

  Sidecars found() const { return find_sidecars(open(source_.string())); }

  // Saves the model, cast, into the folder; returns the notes.
  std::string save_as(DType dtype, const fs::path& out, const SaveOptions& options = {}) {
    const Checkpoint model = open(source_.string()), written = cast(model, dtype);
    fs::create_directory(out);
    SavePlan plan = plan_save(written, out.string() + "/", options);
    add_sidecars(plan, find_sidecars(model), model, written);
    return notes_of(execute(plan, options).notes);
  }

  test::TempDir dir_;
  fs::path source_ = fs::path(dir_.path()) / "model", out_ = fs::path(dir_.path()) / "out";
};

TEST_F(SidecarsTest, AreKnownByTheirNames) {
  for (const char* name : {"config.json",
                           "generation_config.json",
                           "tokenizer.json",
                           "tokenizer_config.json",
                           "tokenizer.model",
                           "vocab.json",
                           "vocab.txt",
                           "merges.txt",
                           "chat_template.jinja",
                           "chat_template.json",
                           "special_tokens_map.json",
                           "added_tokens.json",
                           "preprocessor_config.json",
                           "README.md",
                           "LICENSE",
                           "LICENSE.txt",
                           "NOTICE",
                           "cl100k.tiktoken",
                           "spiece.model",
                           "1_Pooling/config.json",
                           "modules.json",
                           "sentence_bert_config.json",
                           "config_sentence_transformers.json"})
    EXPECT_NE(sidecar_name(name), nullptr) << name;
  for (const char* name :
       {"model.safetensors", "pytorch_model.bin", "model.safetensors.index.json", "model.safetensors.index.fp16.json",
        "optimizer.pt", "trainer_state.json", "training_args.bin", "tokenizer.bin", "LICENSE.py", "README.onnx", "x.py",
        "onnx/config.json", "1_Pooling/x/config.json", "README/x", "modeling_x.py"})
    EXPECT_EQ(sidecar_name(name), nullptr) << name;
}

TEST_F(SidecarsTest, AreThoseOfAFolderOnly) {
  write("tokenizer.json", "{}");
  write("1_Pooling/config.json", "{}");
  write("optimizer.pt", "x");
  write(".hidden/README.md", "x");
  write(".README.md", "x");
  write("onnx/config.json", "x");
  EXPECT_EQ(names_of(found()), (Names{"1_Pooling/config.json", "config.json", "tokenizer.json"}));
  EXPECT_EQ(found().left, (Names{"onnx/", "optimizer.pt"}));
  EXPECT_TRUE(find_sidecars(open((source_ / "model.safetensors").string())).files.empty());
}

TEST_F(SidecarsTest, AreNotTakenThroughLinksThatLeadOut) {
  std::ofstream(fs::path(dir_.path()) / "secret") << "secret";
  fs::create_symlink("../secret", source_ / "README.md");
  fs::create_symlink("nowhere", source_ / "LICENSE");
  fs::create_symlink("..", source_ / "1_Pooling");
  fs::create_symlink("config.json", source_ / "generation_config.json");
  const Sidecars sidecars = found();
  EXPECT_EQ(names_of(sidecars), (Names{"config.json", "generation_config.json"}));
  EXPECT_EQ(sidecars.left, Names{"LICENSE"});
  EXPECT_EQ(sidecars.notes.size(), 2u) << notes_of(sidecars.notes);
}

TEST_F(SidecarsTest, AreTakenFromWhereTheHubsCacheKeepsThem) {
  const fs::path repository = fs::path(dir_.path()) / "models--a--b", snapshot = repository / "snapshots" / "123";
  fs::create_directories(snapshot);
  fs::create_directories(repository / "blobs");
  fs::copy(source_ / "model.safetensors", repository / "blobs" / "aa");
  fs::copy(source_ / "config.json", repository / "blobs" / "bb");
  fs::create_symlink("../../blobs/aa", snapshot / "model.safetensors");
  fs::create_symlink("../../blobs/bb", snapshot / "config.json");
  EXPECT_EQ(names_of(find_sidecars(open(snapshot.string()))), Names{"config.json"});
}

TEST_F(SidecarsTest, AreNotTakenIfTheyAreHuge) {
  write("README.md", "");
  fs::resize_file(source_ / "README.md", 17'000'000);
  const Sidecars sidecars = found();
  EXPECT_EQ(names_of(sidecars), Names{"config.json"});
  EXPECT_NE(notes_of(sidecars.notes).find("README.md: has 17.0 MB, more than any such file"), std::string::npos);
}

TEST_F(SidecarsTest, TakeCodeOnlyIfAConfigurationNamesIt) {
  write(
      "config.json",
      R"({"auto_map": {"AutoModel": "modeling_x.X", "AutoConfig": "../evil.X", "T": ["tok.A", null], "R": "a/b--other.Y"}})");
  for (const char* name : {"modeling_x.py", "tok.py", "other.py", "setup.py"}) write(name, "print()");
  const Sidecars sidecars = found();
  EXPECT_EQ(names_of(sidecars), (Names{"config.json", "modeling_x.py", "tok.py"}));
  EXPECT_EQ(sidecars.left, (Names{"other.py", "setup.py"}));
  EXPECT_NE(notes_of(sidecars.notes).find("nothing of it is run: \"modeling_x.py\", \"tok.py\""), std::string::npos);
}

// Lists names that lead elsewhere.
class LyingFiles final : public Files {
 public:
  explicit LyingFiles(Names names) : names_(std::move(names)) {}
  SourcePtr open(const std::string& name) const override { return local_files()->open(name); }
  bool exists(const std::string& name) const override { return local_files()->exists(name); }
  std::optional<Names> list(const std::string& name) const override {
    auto names = local_files()->list(name);
    if (names) names->insert(names->end(), names_.begin(), names_.end());
    return names;
  }

 private:
  Names names_;
};

TEST_F(SidecarsTest, DoNotFollowNamesThatLeadElsewhere) {
  std::ofstream(fs::path(dir_.path()) / "README.md") << "secret";
  OpenOptions options;
  options.files = std::make_shared<LyingFiles>(Names{"../README.md", "a/../../README.md", "", "..", "/etc/passwd"});
  const Sidecars sidecars = find_sidecars(open(source_.string()), options);
  EXPECT_EQ(names_of(sidecars), Names{"config.json"});
  EXPECT_FALSE(sidecars.notes.empty());
}

TEST_F(SidecarsTest, AreWrittenWithTheWeights) {
  write("README.md", "# Hi\n");
  write("merges.txt", "");
  write("1_Pooling/config.json", "{}");
  const std::string notes = save_as(DType::f32, out_);
  EXPECT_EQ(text_of(out_ / "README.md"), "# Hi\n");
  EXPECT_EQ(text_of(out_ / "merges.txt"), "");
  EXPECT_EQ(text_of(out_ / "1_Pooling" / "config.json"), "{}");
  EXPECT_EQ(text_of(out_ / "config.json"), text_of(source_ / "config.json"));
  EXPECT_NE(notes.find("taken along: \"1_Pooling/config.json\", \"README.md\", \"config.json\", \"merges.txt\"\n"),
            std::string::npos)
      << notes;
}

TEST_F(SidecarsTest, SayTheDTypeThatTheWeightsHaveNow) {
  const std::string notes = save_as(DType::bf16, out_);
  EXPECT_EQ(text_of(out_ / "config.json"), R"({"torch_dtype": "bfloat16", "eps": 1e-05})");
  EXPECT_NE(notes.find("in config.json, torch_dtype is bfloat16"), std::string::npos) << notes;
}

TEST_F(SidecarsTest, LeaveAConfigurationThatIsNoJsonAlone) {
  write("config.json", "{\"torch_dtype\": ");
  const std::string notes = save_as(DType::bf16, out_);
  EXPECT_EQ(text_of(out_ / "config.json"), "{\"torch_dtype\": ");
  EXPECT_NE(notes.find("config.json is copied as it is"), std::string::npos) << notes;
}

TEST_F(SidecarsTest, AreRefusedTogetherWithTheWeights) {
  fs::create_directory(out_);
  std::ofstream(out_ / "config.json") << "mine";
  write("1_Pooling/config.json", "{}");
  EXPECT_ERROR(save_as(DType::f32, out_), Errc::invalid_argument, "already exists");
  EXPECT_EQ(text_of(out_ / "config.json"), "mine");
  EXPECT_FALSE(fs::exists(out_ / "model.safetensors"));
  EXPECT_FALSE(fs::exists(out_ / "1_Pooling"));
  SaveOptions options;
  options.overwrite = true;
  save_as(DType::f32, out_, options);
  EXPECT_EQ(text_of(out_ / "config.json"), text_of(source_ / "config.json"));
}

TEST_F(SidecarsTest, LeaveNothingBehindIfTheWeightsCannotBeWritten) {
  write("1_Pooling/config.json", "{}");
  SaveOptions options;
  options.progress = [](const ProgressState&) { return false; };
  EXPECT_ERROR(save_as(DType::f16, out_, options), Errc::cancelled, "");
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(SidecarsTest, StayWhereTheyAreIfTheModelIsWrittenOverItself) {
  write("README.md", "# Hi\n");
  SaveOptions options;
  options.overwrite = true;
  const std::string notes = save_as(DType::bf16, source_, options);
  EXPECT_EQ(text_of(source_ / "config.json"), R"({"torch_dtype": "bfloat16", "eps": 1e-05})");
  EXPECT_NE(notes.find("taken along: \"config.json\";"), std::string::npos) << notes;
}

TEST_F(SidecarsTest, ComeBeforeTheIndexOfShards) {
  write("model.safetensors", test::SafetensorsFile().tensor("a", "F32", {4}).tensor("b", "F32", {4}).text());
  const Checkpoint model = open(source_.string());
  SavePlan plan = plan_save(model, out_.string() + "/", {.max_shard_bytes = 16});
  const std::string key = plan.key;
  add_sidecars(plan, find_sidecars(model), model, model);
  EXPECT_TRUE(plan.files.back().path.ends_with("model.safetensors.index.json"));
  EXPECT_NE(plan.key, key);  // what an earlier run finished is not taken for files that changed since
  EXPECT_EQ(plan.key.size(), key.size());
}

TEST_F(SidecarsTest, AreNotWrittenOutsideOfTheFolder) {
  const Checkpoint model = open(source_.string());
  for (const char* name : {"../x", "/x", "a/../../x", "", ".", "a//b"}) {
    SavePlan plan = plan_save(model, out_.string() + "/");
    EXPECT_ERROR(add_sidecars(plan, {{{name, memory_source({})}}, {}, {}}, model, model), Errc::unsafe, "folder")
        << name;
  }
}

TEST_F(SidecarsTest, SayThatTheNamesAreOthers) {
  const Checkpoint model = open(source_.string()), written = add_prefix(model, "x.");
  SavePlan plan = plan_save(written, out_.string() + "/");
  add_sidecars(plan, find_sidecars(model), model, written);
  EXPECT_NE(notes_of(plan.notes).find("describes the names that the model had"), std::string::npos);
}

TEST_F(SidecarsTest, DropWhatIsSaidOfQuantizationIfTheWeightsAreDense) {
  write("config.json", R"({"quantization_config": {"quant_method": "fp8"}, "a": 1})");
  write("hf_quant_config.json", "{}");
  write("model.safetensors",
        test::SafetensorsFile().tensor("l.weight", "F8_E4M3", {4, 4}).tensor("l.weight_scale", "F32", {1}).text());
  const Checkpoint model = open(source_.string());
  ASSERT_TRUE(model.quantization);
  Checkpoint dense;
  dense.tensors.insert("l.weight", Tensor::from_values<float>(DType::f32, {1}, std::vector<float>{1}));
  fs::create_directories(out_);
  SavePlan plan = plan_save(dense, out_.string() + "/");
  add_sidecars(plan, find_sidecars(model), model, dense);
  execute(plan);
  EXPECT_EQ(text_of(out_ / "config.json"), R"({"a": 1})");
  EXPECT_FALSE(fs::exists(out_ / "hf_quant_config.json"));

  const fs::path copy = fs::path(dir_.path()) / "copy";
  fs::create_directories(copy);
  plan = plan_save(model, copy.string() + "/");
  add_sidecars(plan, find_sidecars(model), model, model);
  execute(plan);
  EXPECT_EQ(text_of(copy / "config.json"), text_of(source_ / "config.json"));
  EXPECT_TRUE(fs::exists(copy / "hf_quant_config.json"));
}

}  // namespace
}  // namespace ballast
