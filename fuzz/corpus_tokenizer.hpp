// The inputs that fuzzing tokenizers begins with. The first byte of each says which file the rest is, as
// tokenizer_fuzz.cpp has it.
#pragma once

#include <string>
#include <vector>

#include "builders/sentencepiece_file.hpp"

namespace ballast::fuzz {

inline std::vector<std::string> tokenizers() {
  using test::SentencePieceFile;
  const auto pieces = [] {
    SentencePieceFile file;
    return file.piece("<unk>", 0, 2).piece("<s>", 0, 3).piece("</s>", 0, 3).piece("▁a", -1).piece("<0x0A>", 0, 6);
  };
  std::vector<std::string> inputs = {
      std::string("\0", 1),
      std::string("\0", 1) + pieces().text(),
      std::string("\0", 1) + pieces().trainer(2).normalizer("map", true, false).text(),
      std::string("\0", 1) + SentencePieceFile().piece("x", 1, 9).raw(SentencePieceFile::number(9, 5)).text(),
      "\1{}",
      R"({"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁a",-1.5]]},"normalizer":{"precompiled_charsmap":"YWI="}})",
      R"({"model":{"type":"WordPiece","vocab":{"[CLS]":0,"a":1,"##b":2}},"pre_tokenizer":{"type":"BertPreTokenizer"},
          "normalizer":{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"BertNormalizer","lowercase":true}]}})",
      R"({"model":{"type":"BPE","byte_fallback":true,"vocab":{"<unk>":0,"<0x0A>":1,"▁a":2}},"decoder":{"type":"Sequence",
          "decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},
          {"type":"Strip","content":" ","start":1,"stop":0}]},"added_tokens":[{"id":3,"content":"▁x","special":false,"normalized":false}]})",
      R"({"model":{"type":"BPE","ignore_merges":true,"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"],"a b"]},
          "added_tokens":[{"id":3,"content":"<|s|>","special":true,"normalized":false},{"id":4,"content":"Ġx"}],
          "pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},
          "behavior":"Removed","invert":true},{"type":"Digits","individual_digits":true},{"type":"Punctuation",
          "behavior":"Contiguous"},{"type":"ByteLevel","use_regex":false}]},"decoder":{"type":"ByteLevel"},
          "post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing","single":[
          {"SpecialToken":{"id":"<|s|>"}},{"Sequence":{"id":"A"}},{"SpecialToken":{"id":"<|e|>"}}],"pair":[
          {"Sequence":{"id":"A"}},{"SpecialToken":{"id":"<|e|>"}},{"Sequence":{"id":"B"}}]}]}})",
      R"({"model":{"vocab":{"a":0},"merges":["a a"]},"pre_tokenizer":{"type":"ByteLevel"},"post_processor":{"type":"RobertaProcessing",
          "cls":["a",0],"sep":["a",0]},"padding":{"pad_token":"[PAD]"},"decoder":{"type":"Metaspace","replacement":"▁"}})",
      R"({"tokenizer_class":"LlamaTokenizerFast","bos_token":"<s>","eos_token":{"content":"</s>"},"unk_token":null,
          "added_tokens_decoder":{"0":{"content":"<unk>","special":true},"7":{"content":"▁▁","special":false}},
          "additional_special_tokens":["<t>"],"extra_special_tokens":{"i":"<i>"},"add_bos_token":true,"add_prefix_space":false,
          "model_max_length":1000000000000000019884624838656,"chat_template":[{"name":"default","template":"a"},{"name":"b c","template":"d"}]})",
      R"({"tokenizer_class":"GPT2Tokenizer","clean_up_tokenization_spaces":true,"chat_template":"x","sep_token":"a","cls_token":"b"})",
  };
  for (std::size_t i = 5; i < inputs.size(); ++i) inputs[i].insert(0, i + 2 < inputs.size() ? "\1" : "\2");
  return inputs;
}

}  // namespace ballast::fuzz
