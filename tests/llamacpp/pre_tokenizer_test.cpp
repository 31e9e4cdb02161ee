#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.hpp"
#include "tokenizer_folder.hpp"

namespace ballast::test {
namespace {

const std::string kBytes = R"({"type":"ByteLevel","use_regex":false})";
const std::string kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";
const std::string kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";

std::string split(const std::string& regex, const std::string& how = R"("behavior":"Isolated","invert":false)") {
  return R"({"type":"Split","pattern":{"Regex":")" + regex + R"("},)" + how + "}";
}
std::string sequence(const std::string& parts) { return R"({"type":"Sequence","pretokenizers":[)" + parts + "]}"; }

struct Case {
  std::string pre_tokenizer, normalizer = "null", settings = R"({"tokenizer_class":"X"})", added = "";
};

TokenizerFolder folder_of(const Case& c) {
  return TokenizerFolder("GPT2LMHeadModel", "gpt2", R"({"vocab_size":9})")
      .file("tokenizer.json", bpe_json(R"({"a":0,"b":1})", c.added,
                                       R"(,"normalizer":)" + c.normalizer + R"(,"pre_tokenizer":)" + c.pre_tokenizer))
      .file("tokenizer_config.json", c.settings);
}
std::string name_of(const Case& c) { return folder_of(c).value("ggml.pre"); }

TEST(PreTokenizer, HasTheNameOfItsStructure) {
  const std::string nfc = R"({"type":"NFC"})", digits = R"({"type":"Digits","individual_digits":true})";
  const std::string llama = sequence(split(kLlama3) + "," + kBytes), qwen = sequence(split(kQwen2) + "," + kBytes);
  EXPECT_EQ(name_of({R"({"type":"ByteLevel"})"}), "gpt-2");
  EXPECT_EQ(name_of({R"({"type":"ByteLevel","trim_offsets":false,"use_regex":true})", nfc}), "olmo");
  EXPECT_EQ(name_of({sequence(digits + R"(,{"type":"ByteLevel"})")}), "starcoder");
  EXPECT_EQ(name_of({sequence(digits + R"(,{"type":"ByteLevel"})"), nfc}), "command-r");
  EXPECT_EQ(name_of({llama}), "dbrx");
  EXPECT_EQ(name_of({llama, "null", R"({"tokenizer_class":"LlamaTokenizer","add_bos_token":true})"}), "llama-bpe");
  EXPECT_EQ(name_of({llama, "null", R"({"tokenizer_class":"X"})", added_token(2, "[gMASK]", true)}), "glm4");
  EXPECT_EQ(name_of({qwen, nfc}), "qwen2");
  EXPECT_EQ(name_of({qwen, R"({"type":"Sequence","normalizers":[]})"}), "stablelm2");
  EXPECT_EQ(name_of({R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious"})",
                     R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})"}),
            "granite-embed-multi-311m");
}

TEST(PreTokenizer, IsTheSameInOtherWords) {
  const std::string removed = split(kLlama3, R"("behavior":"Removed","invert":true)");
  EXPECT_EQ(name_of({sequence(removed + "," + kBytes)}), "dbrx");
  EXPECT_EQ(name_of({sequence(sequence(split(kLlama3)) + "," + kBytes)}), "dbrx");
  EXPECT_EQ(name_of({sequence(split("[\\r\\n]") + "," + split("\\\\s?\\\\p{L}+") + "," + split("\\\\s?\\\\p{P}+") +
                              "," + split("[一-龥ࠀ-一가-퟿]+") +
                              R"(,{"type":"Digits","individual_digits":true},)" + kBytes)}),
            "deepseek-coder");
}

TEST(PreTokenizer, IsNeverGuessed) {
  auto folder = folder_of({sequence(split("x+") + "," + kBytes)});
  EXPECT_ERROR(folder.read(), Errc::unsupported,
               "no known name for this pre-tokenizer: Split /x+/, ByteLevel without regex (normalizer: none)");
  EXPECT_HINT(folder.read(), "pre_tokenizer");
  EXPECT_ERROR(folder_of({R"({"type":"ByteLevel"})", R"({"type":"NFKC"})"}).read(), Errc::unsupported, "NFKC");
  EXPECT_ERROR(
      folder_of({R"({"type":"ByteLevel","add_prefix_space":true})", "null", R"({"add_prefix_space":true})"}).read(),
      Errc::unsupported, "with a space before the text");
  EXPECT_ERROR(folder_of({"3"}).read(), Errc::unsupported, "something without a type");
  EXPECT_ERROR(folder_of({"null"}).read(), Errc::unsupported, "pre-tokenizer: nothing");
}

TEST(PreTokenizer, MayBeNamed) {
  auto folder = folder_of({sequence(split("x+") + "," + kBytes)}).pre("qwen2");
  EXPECT_EQ(folder.value("ggml.pre"), "qwen2");
  EXPECT_ERROR(folder.pre("qwen-2").read(), Errc::invalid_argument, "llama.cpp knows no pre-tokenizer \"qwen-2\"");
  EXPECT_HINT(folder.pre("qwen-2").read(), "did you mean \"qwen2\"?");
}

TEST(PreTokenizer, IsOfNoUseToOtherKinds) {
  auto folder =
      TokenizerFolder("T5ForConditionalGeneration", "t5").file("spiece.model", "\x0a\x03\x0a\x01x").pre("qwen2");
  EXPECT_EQ(folder.value("ggml.pre"), "default");
  EXPECT_EQ(folder.notes.size(), 1u);
}

}  // namespace
}  // namespace ballast::test
