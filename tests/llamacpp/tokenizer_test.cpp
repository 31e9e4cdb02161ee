#include <gtest/gtest.h>

#include <string>

#include "builders/sentencepiece_file.hpp"
#include "llamacpp/tokenizer/tokenizer_json.hpp"
#include "support/expect_error.hpp"
#include "tokenizer_folder.hpp"

namespace ballast::test {
namespace {

using Folder = TokenizerFolder;
using Pieces = SentencePieceFile;

const std::string kAb = R"({"a":0,"b":1,"ab":2})";

Folder gpt2(const std::string& tokenizer, const std::string& settings = R"({"tokenizer_class":"X"})",
            const std::string& config = R"({"vocab_size":6})") {
  return Folder("GPT2LMHeadModel", "gpt2", config)
      .file("tokenizer.json", tokenizer)
      .file("tokenizer_config.json", settings);
}

std::optional<llamacpp::TokenizerJson> read_json(std::string_view text) {
  const auto files = std::make_shared<MemoryFiles>();
  files->add("m/tokenizer.json", text);
  OpenOptions options;
  options.files = files;
  return llamacpp::TokenizerJson::read(llamacpp::ModelFolder("m", options));
}

Pieces pieces() {
  return Pieces().piece("<unk>", 0, 2).piece("<s>", 0, 3).piece("</s>", 0, 3).piece("▁a", -1).piece("mine", -2, 4);
}

TEST(BpeTokenizer, HasTokensTypesAndMergesInThisOrder) {
  auto folder = gpt2(bpe_json(kAb, added_token(3, "<end>", true)), R"({"eos_token":"<end>"})");
  std::string keys;
  for (const MetadataEntry& entry : folder.read()) keys.append(entry.key.substr(15)).append(" ");
  EXPECT_EQ(keys, "model pre tokens token_type merges eos_token_id ");
  EXPECT_EQ(folder.value("ggml.model"), "gpt2");
}

TEST(BpeTokenizer, PadsTheVocabularyWithUnusedTokens) {
  auto folder = gpt2(bpe_json(R"({"a":0,"b":3})", ""));
  EXPECT_EQ(folder.tokens(), R"(["a", "[PAD1]", "[PAD2]", "b", "[PAD4]", "[PAD5]"])");
  EXPECT_EQ(folder.types(), "[1, 5, 5, 1, 5, 5]");
}

TEST(BpeTokenizer, KnowsControlTokensThatAreNotCalledSpecial) {
  const std::string added =
      added_token(3, "<|x|>", false) + "," + added_token(4, "<x>", false) + "," + added_token(5, "<pad>", false);
  EXPECT_EQ(gpt2(bpe_json(kAb, added)).types(), "[1, 1, 1, 3, 4, 3]");
}

TEST(BpeTokenizer, GivesAddedTokensTheNextFreeIdWhateverTheFileSays) {
  const std::string added = added_token(5, "x", false, true) + "," + added_token(1, "b", true);
  auto folder = gpt2(bpe_json(kAb, added));
  EXPECT_EQ(folder.tokens(), R"(["a", "b", "ab", "x", "[PAD4]", "[PAD5]"])");
  EXPECT_EQ(folder.types(), "[1, 3, 1, 4, 5, 5]");
}

TEST(BpeTokenizer, AddsSpecialTokensThatTokenizerJsonLacks) {
  const std::string settings = R"({"tokenizer_class":"X","bos_token":{"content":"<s>"},"eos_token":null,
      "additional_special_tokens":["<t>"],"extra_special_tokens":{"image_token":"<i>"}})";
  auto folder = gpt2(bpe_json(kAb, ""), settings);
  EXPECT_EQ(folder.tokens(), R"(["a", "b", "ab", "<s>", "<t>", "<i>"])");
  EXPECT_EQ(folder.types(), "[1, 1, 1, 3, 3, 3]");
}

TEST(BpeTokenizer, AddsTheSpecialTokensOfItsClass) {
  EXPECT_EQ(gpt2(bpe_json(kAb, ""), R"({"tokenizer_class":"LlamaTokenizerFast","unk_token":null})").tokens(),
            R"(["a", "b", "ab", "<s>", "</s>", "[PAD5]"])");
  EXPECT_EQ(gpt2(bpe_json(kAb, ""), "{}", R"({"vocab_size":6,"model_type":"llama"})").tokens(),
            R"(["a", "b", "ab", "<s>", "</s>", "<unk>"])");
}

TEST(BpeTokenizer, LeavesOutTokensOfItsClassThatVocabSizeHasNoRoomFor) {
  auto folder = gpt2(bpe_json(kAb, ""), R"({"tokenizer_class":"LlamaTokenizer"})", R"({"vocab_size":3})");
  EXPECT_EQ(folder.tokens(), R"(["a", "b", "ab"])");
}

TEST(BpeTokenizer, TakesFlagsFromAddedTokensDecoder) {
  const std::string settings = R"({"tokenizer_class":"X","eos_token":"<y>","added_tokens_decoder":{
      "3":{"content":"<x>","special":true},"4":{"content":"<y>","special":false},"5":{"content":"<z>"}}})";
  const std::string added = added_token(3, "<x>", false) + "," + added_token(4, "<y>", false);
  EXPECT_EQ(gpt2(bpe_json(kAb, added), settings).types(), "[1, 1, 1, 3, 3, 4]");
}

TEST(BpeTokenizer, ReadsOlderFoldersWithoutTokenizerJson) {
  auto folder =
      Folder("GPT2LMHeadModel", "gpt2", R"({"vocab_size":5})")
          .file("vocab.json", kAb)
          .file("merges.txt", "#version: 0.2\r\na b\r\n\r\nbroken\r\nx y\n")
          .file("added_tokens.json", R"({"<x>":4,"<w>":3})")
          .file("special_tokens_map.json", R"({"eos_token":"<x>"})")
          .file("tokenizer_config.json", R"({"tokenizer_class":"GPT2Tokenizer","bos_token":"a","unk_token":"a"})");
  EXPECT_EQ(folder.tokens(), R"(["a", "b", "ab", "<w>", "<x>"])");
  EXPECT_EQ(folder.types(), "[3, 1, 1, 4, 3]");
  EXPECT_EQ(folder.value("ggml.merges"), R"(["a b", "x y"])");
  EXPECT_EQ(folder.value("ggml.pre"), "gpt-2");
}

TEST(BpeTokenizer, WritesSpacesInMergesAsTheirLetter) {
  EXPECT_EQ(gpt2(bpe_json(kAb, "", "", R"([["a b","c"],["d","e"]])")).value("ggml.merges"), R"(["aĠb c", "d e"])");
  EXPECT_ERROR(gpt2(bpe_json(kAb, "", "", R"([["a"]])")).read(), Errc::malformed, "not a pair of tokens");
}

TEST(BpeTokenizer, TakesAnAddedTokenAsItsDecoderReturnsIt) {
  const std::string added =
      added_token(3, "Ġx", false) + "," + added_token(4, "▁y", false) + "," + added_token(5, "Ġz", false, true);
  EXPECT_EQ(gpt2(bpe_json(kAb, added)).tokens(), R"(["a", "b", "ab", " x", " y", "Ġz"])");
}

TEST(BpeTokenizer, RefusesTokensThatVocabSizeHasNoRoomFor) {
  EXPECT_ERROR(gpt2(bpe_json(kAb, added_token(3, "<x>", true)), "{}", R"({"vocab_size":3})").read(), Errc::mismatch,
               "the tokenizer has token \"<x>\" with id 3, but vocab_size is 3");
  EXPECT_ERROR(gpt2(bpe_json(R"({"a":7})", ""), "{}").read(), Errc::mismatch, "token id 7, but vocab_size is 6");
}

TEST(BpeTokenizer, ReadsIntegersOfAnySize) {
  auto folder = gpt2(bpe_json(kAb, ""), R"({"model_max_length":1000000000000000019884624838656,"x":NaN,"y":"12\"3"})");
  EXPECT_EQ(folder.value("ggml.model"), "gpt2");
}

TEST(TokenizerJson, KeepsTokensThatAreWrittenWithEscapes) {
  const std::string vocabulary = R"({"\u0061":0,"\"":1,"\ud83d\ude00":2,"b":3,"\\n":4,"\n":5})";
  EXPECT_EQ(gpt2(bpe_json(vocabulary, "")).tokens(), R"(["a", "\"", "😀", "b", "\\n", "\n"])");
}

TEST(TokenizerJson, TakesItsLongValuesInAnyOrderAndOnlyFromItsModel) {
  const std::string json = R"({"vocab": {"z": 9}, "merges": 1, "model": {"merges": [], "type": "BPE",
      "x": {"vocab": {"y": 1}}, "vocab": {"a": 0, "b": 1, "ab": 2}}, "pre_tokenizer": {"type": "ByteLevel"},
      "decoder": {"type": "ByteLevel"}})";
  const auto read = read_json(json);
  ASSERT_TRUE(read && read->vocabulary() && read->merges());
  EXPECT_EQ(read->vocabulary()->count(), 3u);
  EXPECT_EQ(read->merges()->count(), 0u);
  EXPECT_EQ(to_string(*read->root().find("model")), R"({"merges":[],"type":"BPE","x":{"vocab":{"y":1}},"vocab":{}})");
  EXPECT_EQ(to_string(*read->root().find("vocab")), R"({"z":9})");
}

TEST(TokenizerJson, NamesTheByteOfWhatIsWrong) {
  const std::string vocabulary = R"({"model": {"vocab": {"a": 0, "b": x}}})";
  const std::string behind = R"({"model": {"vocab": {"a": 0}, "merges": []}, "x": ,})";
  for (const std::string& json : {vocabulary, behind}) {
    try {
      (void)read_json(json);
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_EQ(error.offset(), json.find(json == behind ? ",}" : "x}")) << json;
    }
  }
}

TEST(TokenizerJson, RefusesKeysThatAreThereTwice) {
  for (const std::string json :
       {R"({"model": {"vocab": {"a": 0, "a": 1}}})", R"({"model": {"vocab": {}, "vocab": {"a": 1}}})",
        R"({"model": {"vocab": {}}, "model": {"merges": []}})", R"({"model": {"merges": [{"a": 1, "a": 2}]}})"}) {
    EXPECT_ERROR((void)read_json(json), Errc::malformed, "twice");
  }
}

TEST(SpecialTokens, TakeTheirIdsFromTheTextsFirst) {
  const std::string added = added_token(3, "<x>", true) + "," + added_token(4, "<y>", true);
  const std::string settings = R"({"bos_token":"<x>","eos_token":{"content":"<y>"},"pad_token":null})";
  auto folder = gpt2(bpe_json(kAb, added), settings,
                     R"({"vocab_size":6,"bos_token_id":0,"pad_token_id":1,"text_config":{"mask_token_id":2}})");
  EXPECT_EQ(folder.value("ggml.bos_token_id"), "3");
  EXPECT_EQ(folder.value("ggml.eos_token_id"), "4");
  EXPECT_EQ(folder.value("ggml.padding_token_id"), "1");
  EXPECT_EQ(folder.value("ggml.mask_token_id"), "2");
}

TEST(SpecialTokens, LeaveOutListsAndIdsThatAreNoTokens) {
  auto folder =
      Folder("BertModel", "bert", R"({"vocab_size":2,"eos_token_id":[0,1],"pad_token_id":-1,"sep_token_id":9})")
          .file("vocab.txt", "a\nb\n")
          .file("tokenizer_config.json", R"({"tokenizer_class":"X"})");
  EXPECT_EQ(folder.value("ggml.eos_token_id"), "none");
  EXPECT_EQ(folder.value("ggml.padding_token_id"), "none");
  EXPECT_EQ(folder.value("ggml.seperator_token_id"), "none");
  EXPECT_EQ(folder.notes.size(), 2u);
}

std::string templates(const std::string& single, const std::string& pair) {
  return R"(,"post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing","single":[)" +
         single + R"(],"pair":[)" + pair + R"(]}]})";
}
std::string special(const std::string& text) { return R"({"SpecialToken":{"id":")" + text + R"("}})"; }
const std::string kA = R"({"Sequence":{"id":"A"}})", kB = R"({"Sequence":{"id":"B"}})";

TEST(SpecialTokens, StandAroundATextAsTheTemplateSays) {
  const std::string added = added_token(3, "<s>", true) + "," + added_token(4, "</s>", true);
  const std::string parts =
      templates(special("<s>") + "," + kA + "," + special("</s>"),
                special("<s>") + "," + kA + "," + special("</s>") + "," + kB + "," + special("</s>"));
  auto folder = gpt2(bpe_json(kAb, added, parts), R"({"bos_token":"<s>","eos_token":"</s>","add_eos_token":false})");
  EXPECT_EQ(folder.value("ggml.add_bos_token"), "true");
  EXPECT_EQ(folder.value("ggml.add_eos_token"), "false");  // what the settings say counts more
  EXPECT_EQ(folder.value("ggml.add_sep_token"), "false");
}

TEST(SpecialTokens, MakeWhatEndsATextTheEndAndKeepTheOldEnd) {
  const std::string added = added_token(3, "<old>", true) + "," + added_token(4, "<new>", true);
  auto folder = gpt2(bpe_json(kAb, added, templates(kA + "," + special("<new>"), "")), R"({"eos_token":"<old>"})");
  EXPECT_EQ(folder.value("ggml.eos_token_id"), "4");
  EXPECT_EQ(folder.value("ggml.eot_token_id"), "3");
  EXPECT_EQ(folder.value("ggml.add_eos_token"), "true");
}

TEST(SpecialTokens, SeparateTwoTextsIfTheTemplateDoes) {
  const std::string added = added_token(3, "<sep>", true);
  auto folder =
      gpt2(bpe_json(kAb, added, templates(kA, kA + "," + special("<sep>") + "," + kB)), R"({"sep_token":"<sep>"})");
  EXPECT_EQ(folder.value("ggml.add_sep_token"), "true");
  EXPECT_EQ(folder.value("ggml.eos_token_id"), "3");  // there is no other end
}

TEST(ChatTemplates, ComeFromTheSettingsFirst) {
  auto folder = gpt2(bpe_json(kAb, ""), R"({"chat_template":"one"})").file("chat_template.jinja", "two");
  EXPECT_EQ(folder.value("chat_template"), "one");
  EXPECT_EQ(
      gpt2(bpe_json(kAb, ""), R"({"chat_template":null})").file("chat_template.jinja", "two").value("chat_template"),
      "none");
}

TEST(ChatTemplates, MayHaveNames) {
  auto folder = gpt2(bpe_json(kAb, ""), R"({"chat_template":[{"name":"default","template":"a"},
      {"name":"tool-use é","template":"b"},{"name":"rag","template":"c"},{"name":"","template":"d"},{"name":"x"}]})");
  EXPECT_EQ(folder.value("chat_template"), "a");
  EXPECT_EQ(folder.value("chat_template.tool_use__"), "b");
  EXPECT_EQ(folder.value("chat_templates"), R"(["tool_use__", "rag"])");
}

TEST(ChatTemplates, MayBeFiles) {
  auto folder = gpt2(bpe_json(kAb, ""), R"({"x":1})")
                    .file("chat_template.jinja", "a\r\nb")
                    .file("additional_chat_templates/rag.jinja", "c")
                    .file("additional_chat_templates/notes.txt", "d");
  EXPECT_EQ(folder.value("chat_template"), "a\nb");
  EXPECT_EQ(folder.value("chat_templates"), R"(["rag"])");
  EXPECT_EQ(gpt2(bpe_json(kAb, ""), R"({"x":1})")
                .file("chat_template.json", R"({"chat_template":"e"})")
                .value("chat_template"),
            "e");
}

TEST(WordPieceTokenizer, MarksTheBeginningOfWords) {
  auto folder = Folder("BertModel", "bert", R"({"vocab_size":5,"type_vocab_size":2})")
                    .file("vocab.txt", "[CLS]\nrun\n##ning\n")
                    .file("tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer","unk_token":"[CLS]",
                          "sep_token":"[CLS]","pad_token":"[CLS]","mask_token":"[CLS]"})");
  EXPECT_EQ(folder.value("ggml.model"), "bert");
  EXPECT_EQ(folder.tokens(), R"(["[CLS]", "▁run", "ning", "▁[PAD3]", "▁[PAD4]"])");
  EXPECT_EQ(folder.value("ggml.token_type_count"), "2");
}

TEST(WordPieceTokenizer, TakesTheLaterOfTwoEqualLines) {
  auto folder = Folder("BertModel", "bert", R"({"vocab_size":3})")
                    .file("vocab.txt", "a\nb\na\n")
                    .file("tokenizer_config.json", R"({"tokenizer_class":"X"})");
  EXPECT_EQ(folder.tokens(), R"(["▁[PAD0]", "▁b", "▁a"])");
}

TEST(WordPieceTokenizer, SaysHowTheTextIsNormalized) {
  const std::string tokenizer = R"({"model":{"type":"WordPiece","vocab":{"a":0,"b":1}},
      "pre_tokenizer":{"type":"BertPreTokenizer"},
      "normalizer":{"type":"Sequence","normalizers":[{"type":"StripAccents"},{"type":"BertNormalizer","lowercase":false,"strip_accents":null}]}})";
  auto folder = Folder("BertModel", "bert", R"({"vocab_size":3})").file("tokenizer.json", tokenizer);
  EXPECT_EQ(folder.value("ggml.normalizer.lowercase"), "false");
  EXPECT_EQ(folder.value("ggml.normalizer.strip_accents"), "none");
}

TEST(SentencePieceTokenizer, HasPiecesAndPadding) {
  auto folder = Folder("GemmaForCausalLM", "gemma", R"({"vocab_size":6})").file("tokenizer.model", pieces().text());
  EXPECT_EQ(folder.tokens(), R"(["<unk>", "<s>", "</s>", "▁a", "mine", "[PAD5]"])");
  EXPECT_EQ(folder.types(), "[2, 3, 3, 1, 1, 5]");
  EXPECT_EQ(folder.value("ggml.scores"), "[0, 0, 0, -1, -2, -10000]");
  EXPECT_EQ(folder.value("ggml.eot_token_id"), "107");
  EXPECT_EQ(folder.value("ggml.add_space_prefix"), "false");
}

TEST(SentencePieceTokenizer, PutsAddedTokensOverPieces) {
  auto folder = Folder("LlamaForCausalLM", "llama", R"({"vocab_size":7})")
                    .file("tokenizer.model", pieces().text())
                    .file("added_tokens.json", R"({"x":5,"far":99})")
                    .file("tokenizer_config.json", R"({"added_tokens_decoder":{"1":{"content":"<s>","special":true},
                          "6":{"content":"▁y","special":false},"77":{"content":"z"}},"add_prefix_space":true})");
  EXPECT_EQ(folder.tokens(), R"(["<unk>", "<s>", "</s>", "▁a", "mine", "x", " y"])");
  EXPECT_EQ(folder.types(), "[2, 3, 3, 1, 1, 4, 4]");
  EXPECT_EQ(folder.value("ggml.scores"), "[0, -1000, 0, -1, -2, -1000, -1000]");
  EXPECT_EQ(folder.read()[0].key, "tokenizer.ggml.add_space_prefix");
}

TEST(SentencePieceTokenizer, IsLookedForBeforeTokenizerJson) {
  auto folder = Folder("Qwen2ForCausalLM", "qwen2")
                    .file("tokenizer.model", pieces().text())
                    .file("tokenizer.json", bpe_json(kAb, ""));
  EXPECT_EQ(folder.value("ggml.model"), "llama");
  EXPECT_EQ(folder.value("ggml.pre"), "default");
}

TEST(SentencePieceTokenizer, IsNeededByGemma) {
  EXPECT_ERROR(Folder("Gemma2ForCausalLM", "gemma2").file("tokenizer.json", bpe_json(kAb, "")).read(), Errc::not_found,
               "has no tokenizer.model");
}

TEST(SentencePieceTokenizer, OfPhi3HasNoRoomForOtherTokens) {
  auto folder = Folder("Phi3ForCausalLM", "phi3", R"({"vocab_size":6})")
                    .file("tokenizer.model", pieces().text())
                    .file("tokenizer.json", bpe_json(kAb, added_token(5, "<|x|>", false)));
  EXPECT_EQ(folder.types(), "[2, 3, 3, 1, 1, 4]");
  folder.file("tokenizer.json", bpe_json(kAb, added_token(6, "y", false)));
  EXPECT_ERROR(folder.read(), Errc::mismatch, "token \"y\" has id 6, but there are 6 tokens");
}

TEST(SentencePieceTokenizer, OfInternLm2EndsWithTheChat) {
  auto folder =
      Folder("InternLM2ForCausalLM", "internlm2", R"({"vocab_size":4,"eos_token_id":2})")
          .file("tokenizer.model",
                Pieces().piece("<unk>", 0, 2).piece(std::string_view("\0", 1)).piece("[UNUSED_1]").piece("b").text())
          .file("tokenizer_config.json", R"({"added_tokens_decoder":{"3":{"content":"<|im_end|>","special":true}}})");
  EXPECT_EQ(folder.tokens(), R"(["<unk>", "🐉", "[UNUSED_1]", "<|im_end|>"])");
  EXPECT_EQ(folder.types(), "[2, 1, 5, 3]");
  EXPECT_EQ(folder.value("ggml.eos_token_id"), "3");
}

TEST(LlamaTokenizer, MayBeInTokenizerJson) {
  const std::string json = R"({"model":{"type":"BPE","byte_fallback":true,"vocab":{"<unk>":0,"<0x0A>":1,"a":2}},
      "decoder":{"type":"Sequence"},"added_tokens":[)" +
                           added_token(3, "x", false) + "]}";
  auto folder = Folder("MistralForCausalLM", "llama", R"({"vocab_size":9})")
                    .file("tokenizer.json", json)
                    .file("tokenizer_config.json", R"({"tokenizer_class":"X","unk_token":"<unk>"})");
  EXPECT_EQ(folder.value("ggml.model"), "llama");
  EXPECT_EQ(folder.types(), "[3, 6, 1, 4]");
  EXPECT_EQ(folder.value("ggml.scores"), "[-1000, -1000, -1000, -1000]");
}

TEST(LlamaTokenizer, OfCodeLlamaHasAnEndOfTurn) {
  auto folder = Folder("LlamaForCausalLM", "llama", R"({"vocab_size":32016})").file("tokenizer.model", pieces().text());
  EXPECT_EQ(folder.value("ggml.eot_token_id"), "32010");
}

TEST(LlamaTokenizer, OfGraniteCodeBeginsWithNothing) {
  auto folder = Folder("LlamaForCausalLM", "llama", R"({"vocab_size":49152})").file("tokenizer.model", pieces().text());
  EXPECT_EQ(folder.value("ggml.add_bos_token"), "false");
}

TEST(UnigramTokenizer, OfT5HasItsCharsmap) {
  auto folder = Folder("T5ForConditionalGeneration", "t5", R"({"vocab_size":6})")
                    .file("spiece.model", pieces().trainer(1).normalizer("ab", true, false).text());
  EXPECT_EQ(folder.value("ggml.model"), "t5");
  EXPECT_EQ(folder.value("ggml.precompiled_charsmap"), "[97, 98]");
  EXPECT_EQ(folder.value("ggml.remove_extra_whitespaces"), "false");
  folder.file("spiece.model", pieces().trainer(2).text());
  EXPECT_ERROR(folder.read(), Errc::unsupported, "not a unigram model");
}

TEST(UnigramTokenizer, OfXlmRobertaHasFairseqsIds) {
  auto folder = Folder("XLMRobertaModel", "bert", R"({"vocab_size":7})")
                    .file("sentencepiece.bpe.model", pieces().trainer(1).text());
  EXPECT_EQ(folder.tokens(), R"(["<s>", "<pad>", "</s>", "<unk>", "▁a", "mine", "[PAD5]"])");
  EXPECT_EQ(folder.types(), "[3, 3, 3, 2, 1, 1, 5]");
}

TEST(UnigramTokenizer, OfXlmRobertaMayBeInTokenizerJson) {
  auto folder = Folder("XLMRobertaModel", "bert", R"({"vocab_size":5})")
                    .file("tokenizer.json",
                          R"({"model":{"type":"Unigram","unk_id":1,"vocab":[["<s>",0],["<unk>",0.0],["▁a",-1.5]]},
                          "normalizer":{"type":"Precompiled","precompiled_charsmap":"YWI="},"added_tokens":[)" +
                              added_token(0, "<s>", true) + "]}")
                    .file("tokenizer_config.json", R"({"tokenizer_class":"X","bos_token":"<s>"})");
  EXPECT_EQ(folder.tokens(), R"(["<s>", "<unk>", "▁a", "[PAD3]", "[PAD4]"])");
  EXPECT_EQ(folder.types(), "[3, 2, 1, 5, 5]");
  EXPECT_EQ(folder.value("ggml.scores"), "[0, 0, -1.5, -10000, -10000]");
  EXPECT_EQ(folder.value("ggml.precompiled_charsmap"), "[97, 98]");
}

TEST(TokenizerFamilies, PadMambasVocabulary) {
  auto folder = Folder("MambaForCausalLM", "mamba", R"({"vocab_size":5})").file("tokenizer.json", bpe_json(kAb, ""));
  EXPECT_EQ(folder.value("ggml.token_type"), "[1, 1, 1, 5, 5, 5, 5, 5]");
  Folder hostile("MambaForCausalLM", "mamba", R"({"vocab_size":5,"pad_vocab_size_multiple":0})");
  EXPECT_ERROR(hostile.file("tokenizer.json", bpe_json(kAb, "")).read(), Errc::malformed,
               "pad_vocab_size_multiple is 0");
}

TEST(TokenizerFamilies, GiveGlmItsSpecialTokens) {
  const std::string added = added_token(3, "<|endoftext|>", true) + "," + added_token(4, "<|user|>", true) + "," +
                            added_token(5, "[gMASK]", true) + "," + added_token(6, "<|observation|>", true);
  const std::string config = R"({"vocab_size":7,"eos_token_id":4})";
  const auto json = bpe_json(kAb, added);
  Folder glm4("Glm4ForCausalLM", "glm4", config), moe("Glm4MoeForCausalLM", "glm4moe", config);
  glm4.file("tokenizer.json", json);
  moe.file("tokenizer.json", json);
  EXPECT_EQ(glm4.value("ggml.bos_token_id"), "3");
  EXPECT_EQ(glm4.value("ggml.eos_token_id"), "4");
  EXPECT_EQ(moe.value("ggml.bos_token_id"), "5");
  EXPECT_EQ(moe.value("ggml.eom_token_id"), "6");
}

TEST(TokenizerFamilies, TellWhatIsCodeOrElsewhere) {
  EXPECT_ERROR(Folder("QWenLMHeadModel", "qwen").read(), Errc::unsupported, "is code that comes with the model");
  EXPECT_ERROR(Folder("DFlashDraftModel", "dflash").read(), Errc::unsupported, "model that it drafts for");
  EXPECT_ERROR(Folder("LlamaForCausalLM").file("tekken.json", "{}").read(), Errc::unsupported, "tekken.json");
  EXPECT_ERROR(Folder("GPT2LMHeadModel", "gpt2").read(), Errc::not_found, "has no tokenizer.json");
}

TEST(Tokenizer, RefusesJsonOfOtherShapes) {
  const char* kFiles[] = {
      "[]",
      "3",
      "{",
      "{}",
      R"({"model":3})",
      R"({"model":{"vocab":3}})",
      R"({"model":{"vocab":{"a":-1}}})",
      R"({"model":{"vocab":{"a":"0"}}})",
      R"({"model":{"vocab":{"a":99999999999}}})",
      R"({"model":{"vocab":[3]}})",
      R"({"model":{"vocab":[[3]]}})",
      R"({"model":{"vocab":{"a":0},"merges":[3]},"pre_tokenizer":{"type":"ByteLevel"}})",
      R"({"model":{"vocab":{"a":0}},"added_tokens":[{"content":"x","id":-3}],"pre_tokenizer":{"type":"ByteLevel"}})"};
  for (const char* file : kFiles) {
    SCOPED_TRACE(file);
    const auto error = error_of([&] { gpt2(file).read(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::malformed) << error->what();
    EXPECT_EQ(error->where(), "m/tokenizer.json");
  }
  for (const char* settings :
       {"[]", R"({"added_tokens_decoder":[]})", R"({"added_tokens_decoder":{"x":{"content":"y"}}})"})
    EXPECT_ERROR(gpt2(bpe_json(kAb, ""), settings).read(), Errc::malformed, "m/tokenizer_config.json: ");
}

TEST(Tokenizer, ReadsOverPartsOfOtherShapes) {
  const char* kParts[] = {R"(,"post_processor":3)",
                          R"(,"post_processor":{"processors":[3,{"type":"TemplateProcessing","single":3}]})",
                          R"(,"post_processor":{"type":"TemplateProcessing","single":[3,3],"pair":[3]})",
                          R"(,"post_processor":{"type":"RobertaProcessing","cls":3,"sep":[]})", R"(,"padding":7)"};
  for (const char* parts : kParts)
    EXPECT_NO_THROW(
        gpt2(bpe_json(kAb, "3", parts), R"({"chat_template":3,"eos_token":[],"extra_special_tokens":[]})").read())
        << parts;
}

TEST(Tokenizer, RefusesAVocabularyThatNobodyHas) {
  EXPECT_ERROR(gpt2(bpe_json(kAb, ""), "{}", R"({"vocab_size":1000000000000})").read(), Errc::limit, "not plausible");
}

}  // namespace
}  // namespace ballast::test
