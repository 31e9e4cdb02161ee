// Files of a model's folder that want more memory, time or room than any real ones, or that are not what they say.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "builders/sentencepiece_file.hpp"
#include "builders/temp_dir.hpp"
#include "llamacpp/keys/metadata_values.hpp"
#include "llamacpp/model_folder.hpp"
#include "llamacpp/tokenizer/chat_templates.hpp"
#include "support/expect_error.hpp"
#include "tokenizer_folder.hpp"

namespace ballast::test {
namespace {

using llamacpp::ModelFolder;

const std::string kLetters = R"({"a":0,"b":1,"ab":2})";

TokenizerFolder bpe_folder(const std::string& tokenizer, const std::string& settings = R"({"tokenizer_class":"X"})") {
  return TokenizerFolder("GPT2LMHeadModel", "gpt2", R"({"vocab_size":3000})")
      .file("tokenizer.json", tokenizer)
      .file("tokenizer_config.json", settings);
}

std::string repeated(const std::string& part, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(i == 0 ? "" : ",").append(part);
  return all;
}

std::string replacement(const std::string& from, const std::string& to) {
  return R"({"type":"Replace","pattern":{"String":")" + from + R"("},"content":")" + to + R"("})";
}

std::string with_decoder(const std::string& steps, const std::string& added) {
  return bpe_json(kLetters, added,
                  R"(,"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"Sequence","decoders":[)" + steps + "]}");
}

// A file that says that it has many bytes, and has none.
class HugeSource final : public Source {
 public:
  HugeSource(std::string name, std::uint64_t size) : name_(std::move(name)), size_(size) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte> out) const override {
    for (std::byte& byte : out) byte = std::byte{'x'};
  }

 private:
  std::string name_;
  std::uint64_t size_;
};

class HugeFiles final : public Files {
 public:
  explicit HugeFiles(std::uint64_t size) : size_(size) {}
  SourcePtr open(const std::string& name) const override { return std::make_shared<HugeSource>(name, size_); }
  bool exists(const std::string&) const override { return true; }
  std::optional<std::vector<std::string>> list(const std::string&) const override { return std::vector<std::string>(); }

 private:
  std::uint64_t size_;
};

ModelFolder folder_of(FilesPtr files, const std::string& target = "m") {
  OpenOptions options;
  options.files = std::move(files);
  return {target, options};
}

TEST(HostileFolder, CannotMakeATokenGrowByItsDecoder) {
  const std::string bomb = repeated(replacement("a", "aaaaaaaaaa"), 8);
  EXPECT_ERROR(bpe_folder(with_decoder(bomb, added_token(0, "a", false))).read(), Errc::limit,
               "m/tokenizer.json: an added token has more than 65536 bytes if it is decoded");
  const std::string at_once = replacement("a", std::string(200, 'b')) + "," + replacement("b", std::string(400, 'c'));
  EXPECT_ERROR(bpe_folder(with_decoder(at_once, added_token(0, "a", false))).read(), Errc::limit, "65536 bytes");
  EXPECT_ERROR(bpe_folder(bpe_json(kLetters, added_token(3, std::string(70000, 'x'), false))).read(), Errc::limit,
               "65536 bytes");
}

TEST(HostileFolder, CannotMakeManyTokensGrowByTheirDecoder) {
  std::string added;
  for (int i = 0; i < 2000; ++i) added.append(i == 0 ? "" : ",") += added_token(3 + i, "z" + std::to_string(i), false);
  const std::string to_and_fro = replacement("z", std::string(60000, 'y')) + "," + replacement("yyy", "");
  EXPECT_ERROR(bpe_folder(with_decoder(to_and_fro, added)).read(), Errc::limit, "takes more work");
}

TEST(HostileFolder, HasADecoderOfFewSteps) {
  EXPECT_ERROR(bpe_folder(with_decoder(repeated(R"({"type":"ByteLevel"})", 65), "")).read(), Errc::limit,
               "the decoder has more than 64 steps");
  EXPECT_NO_THROW(bpe_folder(with_decoder(repeated(R"({"type":"ByteLevel"})", 64), "")).read());
}

TEST(HostileFolder, HasFilesNoLargerThanRealOnes) {
  const ModelFolder folder = folder_of(std::make_shared<HugeFiles>(300'000'000));
  for (const char* file : {"config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json",
                           "vocab.json", "vocab.txt", "tokenizer.model", "chat_template.jinja", "chat_template.json",
                           "modules.json", "1_Pooling/config.json", "additional_chat_templates/x.jinja"})
    EXPECT_ERROR(folder.bytes(file), Errc::limit, std::string("m/") + file + ": has 300000000 bytes") << file;
  const ModelFolder smaller = folder_of(std::make_shared<HugeFiles>(17'000'000));
  EXPECT_ERROR(smaller.json("config.json"), Errc::limit, "at most 16000000");
  EXPECT_ERROR(smaller.text("chat_template.jinja"), Errc::limit, "at most 4000000");
  EXPECT_EQ(smaller.bytes("tokenizer.json")->size(), 17'000'000u);
}

TEST(HostileFolder, HasACardThatIsCut) {
  EXPECT_EQ(folder_of(std::make_shared<HugeFiles>(17'000'000)).text("README.md")->size(), 4'000'000u);
}

TEST(HostileFolder, NeverLeadsOutOfItself) {
  const ModelFolder folder = folder_of(std::make_shared<HugeFiles>(1));
  for (const std::string& file :
       {std::string("../../outside/config.json"), std::string("/etc/config.json"), std::string("a/../config.json"),
        std::string("./config.json"), std::string("a//config.json"), std::string("a/"), std::string(),
        std::string("a\\config.json"), std::string("a\0b/config.json", 15)}) {
    SCOPED_TRACE(file);
    EXPECT_ERROR(folder.path(file), Errc::unsafe, "is not in the model's folder");
    EXPECT_ERROR(folder.json(file), Errc::unsafe, "is not in the model's folder");
  }
  EXPECT_EQ(folder.path("1_Pooling/config.json"), "m/1_Pooling/config.json");
  EXPECT_EQ(folder.path("a/b/c.json"), "m/a/b/c.json");
}

TEST(HostileFolder, HasItsFilesBesideTheFileThatWasNamed) {
  const auto files = std::make_shared<MemoryFiles>();
  files->add("m/model.safetensors", "x");
  EXPECT_EQ(folder_of(files, "m/model.safetensors").path("a/b.json"), "m/a/b.json");
}

// The note of a template that is a link.
std::string note_of_link(const std::filesystem::path& model, const std::string& file) {
  return folder_of(local_files(), model.string()).leads_out(file) ? "leads out" : "";
}

TEST(HostileFolder, TellsLinksThatLeadOutOfItFromThoseOfTheHubsCache) {
  namespace fs = std::filesystem;
  const TempDir dir;
  const fs::path hub = fs::path(dir / "models--a--b"), model = hub / "snapshots" / "c0ffee";
  fs::create_directories(hub / "blobs");
  fs::create_directories(model / "additional_chat_templates");
  std::ofstream(hub / "blobs" / "1234") << "template";
  std::ofstream(dir / "secret") << "secret";
  fs::create_symlink("../../blobs/1234", model / "chat_template.jinja");
  fs::create_symlink("../../../blobs/1234", model / "additional_chat_templates" / "blob.jinja");
  fs::create_symlink(dir / "secret", model / "additional_chat_templates" / "secret.jinja");
  std::ofstream(model / "additional_chat_templates" / "own.jinja") << "own";
  fs::create_directories(dir / "elsewhere");
  std::ofstream(fs::path(dir / "elsewhere") / "x.jinja") << "x";
  fs::create_symlink(dir / "elsewhere", model / "linked");

  EXPECT_EQ(note_of_link(model, "chat_template.jinja"), "");
  EXPECT_EQ(note_of_link(model, "additional_chat_templates/blob.jinja"), "");
  EXPECT_EQ(note_of_link(model, "additional_chat_templates/own.jinja"), "");
  EXPECT_EQ(note_of_link(model, "additional_chat_templates/secret.jinja"), "leads out");
  EXPECT_EQ(note_of_link(model, "linked/x.jinja"), "leads out");

  std::vector<Note> notes;
  const ModelFolder folder = folder_of(local_files(), model.string());
  const llamacpp::TokenizerFiles files(folder);
  EXPECT_EQ(llamacpp::read_chat_templates(files, notes).named.size(), 3u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].where.ends_with("secret.jinja"));
}

TEST(HostileFolder, HasFewChatTemplates) {
  auto folder = bpe_folder(bpe_json(kLetters, ""), R"({"x":1})").file("chat_template.jinja", "a");
  for (int i = 0; i < 65; ++i) folder.file("additional_chat_templates/" + std::to_string(i) + ".jinja", "b");
  EXPECT_ERROR(folder.read(), Errc::limit, "there are 65 chat templates");
}

TEST(HostileFolder, HasTextsOfUtf8) {
  const std::string broken = "ab\xff\xfe";
  const std::string tokenizer = bpe_json(kLetters, "");
  EXPECT_ERROR_AT(bpe_folder(tokenizer, R"({"x":1})").file("chat_template.jinja", broken).read(), Errc::malformed,
                  "m/chat_template.jinja: the text is not UTF-8", 2);
  EXPECT_ERROR(bpe_folder(tokenizer, R"({"x":1})")
                   .file("chat_template.jinja", "a")
                   .file("additional_chat_templates/x.jinja", broken)
                   .read(),
               Errc::malformed, "m/additional_chat_templates/x.jinja: ");
  EXPECT_ERROR(TokenizerFolder("MiniMaxM1ForCausalLM", "minimax", "{}")
                   .file("tokenizer.json", tokenizer)
                   .file("tokenizer_config.json", R"({"chat_template":"x"})")
                   .file("chat_template.jinja", broken)
                   .read(),
               Errc::malformed, "m/chat_template.jinja: ");
  EXPECT_ERROR(TokenizerFolder("BertModel", "bert", "{}").file("vocab.txt", broken).read(), Errc::malformed,
               "m/vocab.txt: ");
  EXPECT_ERROR(
      TokenizerFolder("GPT2LMHeadModel", "gpt2", "{}").file("vocab.json", kLetters).file("merges.txt", broken).read(),
      Errc::malformed, "m/merges.txt: ");
}

TEST(PythonJson, KeepsNumbersThatAreNotFinite) {
  const Json json = Json::parse_python(
      R"({"a":null,"b":NaN,"c":["NaN",null,Infinity,{"d":-Infinity,"null":null}],"e":"x\"NaN","f":-1})");
  EXPECT_TRUE(json.at("a").is_null());
  EXPECT_TRUE(std::isnan(json.at("b").number()));
  const Json::List& list = json.at("c").list();
  EXPECT_EQ(list[0].text(), "NaN");
  EXPECT_TRUE(list[1].is_null());
  EXPECT_EQ(list[2].number(), HUGE_VAL);
  EXPECT_EQ(list[3].at("d").number(), -HUGE_VAL);
  EXPECT_TRUE(list[3].at("null").is_null());
  EXPECT_EQ(json.at("e").text(), "x\"NaN");
  EXPECT_EQ(json.at("f").integer(), -1);
  EXPECT_TRUE(std::isnan(Json::parse_python("NaN").number()));
  EXPECT_ERROR(Json::parse_python(R"({"a":xNaN})"), Errc::malformed, "");
}

TEST(PythonJson, GivesNoKeyANumberThatIsNotFinite) {
  for (const char* number : {"NaN", "Infinity", "-Infinity", "1e39"})
    EXPECT_ERROR(llamacpp::f32_entry("llama.rope.freq_base", Json::parse_python(number)), Errc::malformed,
                 "the value of \"llama.rope.freq_base\" would be ");
  EXPECT_ERROR(llamacpp::u32_entry("llama.block_count", Json::parse_python("NaN")), Errc::malformed,
               "the value of \"llama.block_count\" would be NaN");
  EXPECT_ERROR(llamacpp::list_entry("x", Json::parse_python("[1.5,NaN]")), Errc::malformed, "the value of \"x\"");
}

TEST(TokenizerModel, IsOfTheKindThatIsWritten) {
  const std::string rest = R"(,"pre_tokenizer":{"type":"ByteLevel"}})";
  EXPECT_ERROR(bpe_folder(R"({"model":{"type":"Unigram","vocab":[["a",0],["b",-1]]})" + rest).read(), Errc::unsupported,
               "a model of the kind \"Unigram\", and this class of models has \"BPE\"");
  EXPECT_ERROR(bpe_folder(R"({"model":{"vocab":[["a",0],["b",-1]]})" + rest).read(), Errc::unsupported, "Unigram");
  EXPECT_ERROR(bpe_folder(R"({"model":{"type":"WordPiece","vocab":{"a":0}})" + rest).read(), Errc::unsupported,
               "WordPiece");
  EXPECT_ERROR(bpe_folder(R"({"model":{"type":"WordLevel","vocab":{"a":0}})" + rest).pre("gpt-2").read(),
               Errc::unsupported, "WordLevel");
  EXPECT_ERROR(bpe_folder(R"({"model":{"type":"BPE","vocab":[["a",0]],"merges":["a b"]})" + rest).read(),
               Errc::malformed, "the vocabulary is not one of the kind \"BPE\"");
  EXPECT_NO_THROW(bpe_folder(R"({"model":{"vocab":{"a":0,"b":1},"merges":["a b"]})" + rest).read());

  const auto bert = [](const char* model) {
    return TokenizerFolder("BertModel", "bert", "{}")
        .file("tokenizer.json", std::string(R"({"model":)") + model + "}")
        .read();
  };
  EXPECT_ERROR(bert(R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})"), Errc::unsupported, "BPE");
  EXPECT_ERROR(bert(R"({"vocab":{"a":0},"merges":["a b"]})"), Errc::unsupported, "BPE");
  EXPECT_ERROR(bert(R"({"type":"Unigram","vocab":[["a",0]]})"), Errc::unsupported, "Unigram");
  EXPECT_NO_THROW(bert(R"({"vocab":{"a":0}})"));
  EXPECT_ERROR(TokenizerFolder("JambaForCausalLM", "jamba", "{}")
                   .file("tokenizer.json", R"({"model":{"type":"WordPiece","vocab":{"a":0}}})")
                   .read(),
               Errc::unsupported, "not a BPE model with bytes to fall back to");
  EXPECT_ERROR(TokenizerFolder("XLMRobertaModel", "bert", "{}")
                   .file("tokenizer.json", R"({"model":{"type":"BPE","vocab":[["a",0]]}})")
                   .read(),
               Errc::unsupported, "BPE");
}

TEST(TokenizerModel, HasMergesOfTwoTokens) {
  for (const char* merges : {R"(["a"])", R"(["a b c"])", R"(["a b",""])", R"([" b"])", R"(["a "])", R"([["a",""]])",
                             R"([["a","b","c"]])", R"([["a",3]])", R"([3])"})
    EXPECT_ERROR(bpe_folder(bpe_json(kLetters, "", "", merges)).read(), Errc::malformed, "is not a pair of tokens")
        << merges;
}

TEST(TokenizerModel, HasMergesUnlessItIsKimis) {
  const std::string nothing = bpe_json(kLetters, "", "", "[]");
  EXPECT_ERROR(bpe_folder(nothing).read(), Errc::unsupported, "the tokenizer has no merges");
  EXPECT_ERROR(TokenizerFolder("GPT2LMHeadModel", "gpt2", "{}").file("vocab.json", kLetters).read(), Errc::unsupported,
               "the tokenizer has no merges");
  EXPECT_EQ(bpe_folder(nothing).pre("kimi-k2").value("ggml.merges"), "none");
}

TEST(TokenizerModel, HasOneTokenForEachId) {
  EXPECT_ERROR(bpe_folder(bpe_json(R"({"b":1,"a":0,"c":1})", "")).read(), Errc::malformed,
               "m/tokenizer.json: the tokens \"b\" and \"c\" both have id 1");
  EXPECT_ERROR(bpe_folder(bpe_json(kLetters, added_token(3, "x", true) + "," + added_token(3, "y", true))).read(),
               Errc::malformed, "the tokens \"x\" and \"y\" both have id 3");
  EXPECT_ERROR(bpe_folder(bpe_json(R"({"a":0,"b":2})", added_token(3, "x", true))).read(), Errc::malformed,
               "the tokens \"b\" and \"x\" both have id 2");
  EXPECT_ERROR(TokenizerFolder("LlamaForCausalLM", "llama", "{}")
                   .file("tokenizer.model", SentencePieceFile().piece("a", 0).piece("b", 0).text())
                   .file("added_tokens.json", R"({"x":1,"y":1})")
                   .read(),
               Errc::malformed, "m/added_tokens.json: the tokens \"x\" and \"y\" both have id 1");
  EXPECT_ERROR(
      bpe_folder(bpe_json(kLetters, ""), R"({"added_tokens_decoder":{"3":{"content":"x"},"03":{"content":"y"}}})")
          .read(),
      Errc::malformed, "added_tokens_decoder has the id \"03\" twice");
}

}  // namespace
}  // namespace ballast::test
