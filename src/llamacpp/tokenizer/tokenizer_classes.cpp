#include "llamacpp/tokenizer/tokenizer_classes.hpp"

namespace ballast::llamacpp {
namespace {

using Specials = std::array<std::string_view, 7>;

constexpr Specials kBertSpecials = {"", "", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
constexpr Specials kClsSepSpecials = {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
constexpr Specials kRobertaSpecials = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Specials kEndOfText = {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"};
constexpr Specials kLlamaSpecials = {"<s>", "</s>", "<unk>"};

//                               bos, eos, unk, sep, pad, cls, mask
constexpr TokenizerClass kClasses[] = {
    {"AlbertTokenizer", {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"}},
    {"BartTokenizer", kRobertaSpecials},
    {"BertTokenizer", kBertSpecials},
    {"BigBirdTokenizer", {"<s>", "</s>", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"}},
    {"BloomTokenizer", {"<s>", "</s>", "<unk>", "", "<pad>"}},
    {"CamembertTokenizer", kRobertaSpecials},
    {"CodeGenTokenizer", kEndOfText},
    {"CodeLlamaTokenizer", kLlamaSpecials, true},
    {"CohereTokenizer", {"<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>"}, true},
    {"ConvBertTokenizer", kBertSpecials},
    {"DebertaTokenizer", kClsSepSpecials},
    {"DebertaV2Tokenizer", kClsSepSpecials},
    {"DistilBertTokenizer", kBertSpecials},
    {"ElectraTokenizer", kBertSpecials},
    {"GPT2Tokenizer", kEndOfText},
    {"GPTNeoXTokenizer", kEndOfText, false},
    {"GemmaTokenizer", {"<bos>", "<eos>", "<unk>", "", "<pad>"}, true},
    {"LlamaTokenizer", kLlamaSpecials, true},
    {"LongformerTokenizer", kRobertaSpecials},
    {"MPNetTokenizer", {"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"}},
    {"MT5Tokenizer", {"", "</s>", "<unk>", "", "<pad>"}},
    {"MobileBertTokenizer", kBertSpecials},
    {"NllbTokenizer", kRobertaSpecials},
    {"PegasusTokenizer", {"", "</s>", "<unk>", "", "<pad>", "", "<mask_2>"}},
    {"Qwen2Tokenizer", {"", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>"}},
    {"RobertaTokenizer", kRobertaSpecials},
    {"SqueezeBertTokenizer", kBertSpecials},
    {"T5Tokenizer", {"", "</s>", "<unk>", "", "<pad>"}},
    {"WhisperTokenizer", kEndOfText},
    {"XLMRobertaTokenizer", kRobertaSpecials},
    {"XLNetTokenizer", {"<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>"}},
};
constexpr TokenizerClass kPlainClass = {"PreTrainedTokenizer"};

struct ModelType {
  std::string_view model_type, tokenizer;
};

// The class of a folder whose tokenizer_config.json names none.
constexpr ModelType kModelTypes[] = {
    {"arcee", "LlamaTokenizer"},
    {"bert", "BertTokenizer"},
    {"bloom", "BloomTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"chameleon", "LlamaTokenizer"},
    {"cohere", "CohereTokenizer"},
    {"cohere2", "CohereTokenizer"},
    {"dbrx", "GPT2Tokenizer"},
    {"deepseek_v2", "LlamaTokenizer"},
    {"deepseek_v3", "LlamaTokenizer"},
    {"distilbert", "DistilBertTokenizer"},
    {"ernie4_5", "LlamaTokenizer"},
    {"exaone4", "GPT2Tokenizer"},
    {"falcon_mamba", "GPTNeoXTokenizer"},
    {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},
    {"gemma3", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
    {"gemma3n", "GemmaTokenizer"},
    {"gemma3n_text", "GemmaTokenizer"},
    {"gpt2", "GPT2Tokenizer"},
    {"gpt_bigcode", "GPT2Tokenizer"},
    {"gpt_neox", "GPTNeoXTokenizer"},
    {"granite", "GPT2Tokenizer"},
    {"granitemoe", "GPT2Tokenizer"},
    {"granitemoehybrid", "GPT2Tokenizer"},
    {"jamba", "LlamaTokenizer"},
    {"llama", "LlamaTokenizer"},
    {"llama4", "LlamaTokenizer"},
    {"llama4_text", "LlamaTokenizer"},
    {"llava", "LlamaTokenizer"},
    {"mamba", "GPTNeoXTokenizer"},
    {"mamba2", "GPTNeoXTokenizer"},
    {"mistral", "LlamaTokenizer"},
    {"mistral3", "LlamaTokenizer"},
    {"mixtral", "LlamaTokenizer"},
    {"mllama", "LlamaTokenizer"},
    {"mpt", "GPTNeoXTokenizer"},
    {"mt5", "MT5Tokenizer"},
    {"olmo", "GPTNeoXTokenizer"},
    {"olmo2", "GPTNeoXTokenizer"},
    {"olmo3", "GPT2Tokenizer"},
    {"olmoe", "GPTNeoXTokenizer"},
    {"phi", "CodeGenTokenizer"},
    {"phi3", "LlamaTokenizer"},
    {"phimoe", "LlamaTokenizer"},
    {"qwen2", "Qwen2Tokenizer"},
    {"qwen2_5_vl", "Qwen2Tokenizer"},
    {"qwen2_moe", "Qwen2Tokenizer"},
    {"qwen2_vl", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"},
    {"qwen3_next", "Qwen2Tokenizer"},
    {"qwen3_vl", "Qwen2Tokenizer"},
    {"qwen3_vl_moe", "Qwen2Tokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"stablelm", "GPTNeoXTokenizer"},
    {"starcoder2", "GPT2Tokenizer"},
    {"t5", "T5Tokenizer"},
    {"umt5", "T5Tokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"},
};

const TokenizerClass& class_named(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  for (const TokenizerClass& row : kClasses)
    if (row.name == name) return row;
  return kPlainClass;
}

}  // namespace

const TokenizerClass& tokenizer_class(const TokenizerFiles& files) {
  std::string_view name = token_text(files.setting("tokenizer_class"));
  if (name.empty() && files.config()) name = token_text(files.config()->find("tokenizer_class"));
  if (!name.empty()) return class_named(name);
  const std::string_view type = files.config() ? token_text(files.config()->find("model_type")) : std::string_view();
  for (const ModelType& row : kModelTypes)
    if (row.model_type == type) return class_named(row.tokenizer);
  return kPlainClass;
}

}  // namespace ballast::llamacpp
