#include "llamacpp/tokenizer/recipes.hpp"

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "llamacpp/tokenizer/bpe.hpp"
#include "llamacpp/tokenizer/llama_hf.hpp"
#include "llamacpp/tokenizer/spm.hpp"
#include "llamacpp/tokenizer/unigram.hpp"

namespace ballast::llamacpp::recipes {
namespace {

using Job = TokenizerJob;

const std::string kPieces = "tokenizer.model";

constexpr ExtraSpecial kGlm4[] = {
    {"eos", "<|endoftext|>"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"bos", "<|endoftext|>"}};
constexpr ExtraSpecial kGlm4Moe[] = {
    {"bos", "[gMASK]"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"eom", "<|observation|>"}};
constexpr ExtraSpecial kSolarOpen[] = {
    {"eos", "<|endoftext|>"}, {"eot", "<|endoftext|>"}, {"unk", "<unk>"}, {"bos", "<|startoftext|>"}};
constexpr ExtraSpecial kDots3[] = {{"eot", "<|endofassistant|>"}};

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

[[noreturn]] void refuse(const Job& job, const std::string& why, const std::string& file) {
  throw job.files.error(Errc::unsupported, fmt::format("the tokenizer of {} {}", job.class_name, why), file);
}

// Special tokens of a second kind, after the usual ones.
void write_more_special(Job& job, std::vector<std::string> kinds, std::string_view kind, std::uint64_t id,
                        bool with_templates) {
  SpecialTokens special = read_special_tokens(job.files, {.kinds = std::move(kinds)}, job.notes);
  if (id != 0) special.set_id(kind, id);
  if (!with_templates) special.templates = {};
  special.write(job.out);
}

void padded_mamba2(Job& job, std::uint64_t multiple) {
  job.vocab_multiple = multiple;
  if (job.files.has(kPieces)) return write_sentencepiece(job);
  if (job.files.has("tokenizer.json")) return write_bpe(job);
  throw job.files.missing("tokenizer.json");
}

// A template that merely includes chat_template.jinja is replaced by it.
void file_template(Job& job) {
  const auto text = read_template_file(job.files.folder(), "chat_template.jinja", job.notes);
  if (text && !text->empty()) job.out.set(MetadataEntry::of("tokenizer.chat_template", *text));
}

// <|im_end|> is where both a text and an answer end.
void end_with_chat_end(Job& job) {
  const Json* decoder = job.files.setting("added_tokens_decoder");
  if (!decoder || !decoder->is_object()) return;
  for (const auto& [key, token] : decoder->members()) {
    if (token_text(&token) != "<|im_end|>") continue;
    const auto id = static_cast<std::uint32_t>(std::strtoul(key.c_str(), nullptr, 10));
    job.set("bos_token_id", id);
    return job.set("eos_token_id", id);
  }
}

}  // namespace

void plain_bpe(Job& job) { write_bpe(job); }

void pieces_or_bpe(Job& job) { job.files.has(kPieces) ? write_sentencepiece(job) : write_bpe(job); }

// Llama, Mistral, Granite and all who are built like them.
void llama(Job& job) {
  if (job.files.has("tekken.json") && !job.files.has("tokenizer.json"))
    refuse(job, "is Mistral's own, in tekken.json, and there is no tokenizer.json", "tekken.json");
  if (token_text(job.files.setting("tokenizer_class")) == "HybridDNATokenizer")
    refuse(job, "is code that comes with the model", "tokenizer_config.json");
  job.write_prefix_space();
  if (job.files.has(kPieces))
    write_sentencepiece(job);
  else if (is_llama_hf(job.files))
    write_llama_hf(job);
  else
    write_bpe(job);

  constexpr std::uint64_t kCodeLlama = 32016, kGraniteCode = 49152, kCodeLlamaEnd = 32010;
  if (job.number("vocab_size") == kCodeLlama)
    write_more_special(job, {"prefix", "suffix", "middle", "eot"}, "eot", kCodeLlamaEnd, true);
  if (job.number("vocab_size") == kGraniteCode) job.set("add_bos_token", false);
}

void gemma(Job& job) {
  constexpr std::uint64_t kEndOfTurn = 107;
  write_sentencepiece(job);
  write_more_special(job, {"prefix", "suffix", "middle", "fsep", "eot"}, "eot", kEndOfTurn, false);
  job.set("add_space_prefix", false);
}

void gemma2(Job& job) {
  write_sentencepiece(job);
  job.set("add_space_prefix", false);
}

void gemma3(Job& job) { job.files.has(kPieces) ? gemma2(job) : write_bpe(job); }

void phi3(Job& job) {
  const std::string_view tokenizer = token_text(job.files.setting("tokenizer_class"));
  tokenizer == "GPT2Tokenizer" ? write_bpe(job) : write_phi3_pieces(job);
}

void refact(Job& job) {
  write_bpe(job);
  write_more_special(job, {"prefix", "suffix", "middle", "eot"}, "", 0, false);
}

void glm4(Job& job) { write_bpe(job, kGlm4); }
void glm4_moe(Job& job) { write_bpe(job, kGlm4Moe); }
void solar_open(Job& job) { write_bpe(job, kSolarOpen); }
void dots3(Job& job) { write_bpe(job, kDots3); }

void chatglm(Job& job) {
  if (token_text(job.config.find("_name_or_path")).find("THUDM/chatglm3-6b") != std::string_view::npos)
    refuse(job, "is code that comes with the model", "config.json");
  write_bpe(job, std::span(kGlm4).first(3));
}

// Mamba's vocabulary is padded: the embedding has more rows than there are tokens.
void mamba(Job& job) {
  job.vocab_multiple = job.number("pad_vocab_size_multiple").value_or(8);
  if (job.files.has("tokenizer.json")) return write_bpe(job);
  if (job.files.has(kPieces)) return write_sentencepiece(job);
  throw job.files.missing("tokenizer.json");
}

void mamba2(Job& job) { padded_mamba2(job, job.number("pad_vocab_size_multiple").value_or(16)); }

// A model whose layers are all attention has no padding.
void granite_hybrid(Job& job) {
  const Json* types = job.config.find("layer_types");
  bool is_attention_only = types && types->is_list() && !types->list().empty();
  if (is_attention_only)
    for (const Json& type : types->list()) is_attention_only &= token_text(&type) == "attention";
  padded_mamba2(job, is_attention_only ? 1 : 8);
}

void nemotron_h(Job& job) {
  job.vocab_multiple = 8;
  write_bpe(job);
  if (!job.config.find("num_experts_per_tok")) job.set("add_bos_token", true);
}

void nemotron(Job& job) {
  write_sentencepiece(job);
  job.set("padding_token_id", std::uint32_t{0});
  job.set("unknown_token_id", std::uint32_t{1});
}

void jamba(Job& job) {
  if (job.files.has(kPieces)) return write_sentencepiece(job);
  write_llama_hf(job);
  job.set("add_space_prefix", false);
}

void copied_prefix(Job& job) {
  write_sentencepiece(job);
  job.write_prefix_space();
}

void roberta(Job& job) {
  if (!job.files.has("tokenizer.json")) return write_wordpiece(job);
  write_bpe(job);
  job.write_type_count();
}

void nomic_bert(Job& job) {
  const Json* model = job.files.part("model");
  model&& token_text(model->find("type")) == "Unigram" ? write_xlm_roberta(job) : write_wordpiece(job);
}

void jina_bert(Job& job) {
  std::string_view tokenizer = token_text(job.files.setting("tokenizer_class"));
  if (tokenizer.ends_with("Fast")) tokenizer.remove_suffix(4);
  if (tokenizer == "BertTokenizer") return write_wordpiece(job);
  if (tokenizer != "RobertaTokenizer") refuse(job, "is neither BERT's nor RoBERTa's", "tokenizer_config.json");
  const Json* pre_tokenizer = job.files.part("pre_tokenizer");
  const bool cuts_at_spaces = pre_tokenizer && token_text(pre_tokenizer->find("type")) == "Whitespace";
  cuts_at_spaces ? write_whitespace(job) : write_bpe(job);
  job.set("token_type_count", std::uint32_t{2});
}

void modern_bert(Job& job) {
  for (const char* key : {"add_bos_token", "add_eos_token", "add_sep_token"}) job.set(key, true);
  write_bpe(job);
}

void euro_bert(Job& job) {
  job.set("add_bos_token", false);
  write_bpe(job);
}

void llada(Job& job) {
  write_bpe(job, {}, {.decodes = false, .looks_special = false, .replaces_marks = false});
  job.set("add_bos_token", true);
}

void dream(Job& job) {
  if (job.files.has(kPieces)) return write_sentencepiece(job);
  write_bpe(job, {}, {.decodes = false, .looks_special = false, .replaces_marks = false});
}

void laguna(Job& job) {
  write_bpe(job, {}, {.control = "</assistant>"});
  file_template(job);
  const Json* ends = job.config.find("eos_token_id");
  if (!ends || !ends->is_list()) return;
  for (const Json& end : ends->list()) {
    if (!end.is_integer() || end.number() < 0 || job.number("bos_token_id") == end.count()) continue;
    return job.set("eot_token_id", static_cast<std::uint32_t>(end.count()));
  }
}

void minimax(Job& job) {
  write_bpe(job);
  file_template(job);
}

void qwen3_asr(Job& job) {
  pieces_or_bpe(job);
  job.out.set(MetadataEntry::of("tokenizer.chat_template", kChatTemplate));
  end_with_chat_end(job);
}

void qwen3_omni(Job& job) {
  write_bpe(job);
  end_with_chat_end(job);
}

void interns1(Job& job) {
  constexpr std::uint64_t kEndOfText = 151643;
  write_bpe(job, {}, {.replaces_marks = false});
  if (!job.out.contains("tokenizer.ggml.bos_token_id")) job.set("bos_token_id", static_cast<std::uint32_t>(kEndOfText));
}

// eod_token_id is where the model ends. What an answer ends with is the first of several ids in generation_config.json.
void hunyuan(Job& job) {
  if (!job.files.has("tokenizer.json")) refuse(job, "is code that comes with the model", "tokenizer.json");
  write_bpe(job);
  if (const auto end = job.number("eod_token_id")) job.set("eos_token_id", static_cast<std::uint32_t>(*end));
  const auto generation = job.files.json("generation_config.json");
  const Json* ends = generation ? generation->find("eos_token_id") : nullptr;
  if (ends && ends->is_list() && ends->list().size() >= 2 && ends->list()[0].is_integer() &&
      ends->list()[0].number() >= 0)
    job.set("eot_token_id", static_cast<std::uint32_t>(ends->list()[0].count()));
}

void muse_glimmer(Job& job) {
  write_bpe(job);
  const Vocabulary vocabulary(job.files);
  if (const auto id = vocabulary.id("<|eot|>")) job.set("eot_token_id", static_cast<std::uint32_t>(*id));
}

void grok(Job& job) { pieces_or_bpe(job); }

void deci(Job& job) { job.number("vocab_size").value_or(128256) == 128256 ? write_bpe(job) : write_llama_hf(job); }

void mpt(Job& job) {
  if (job.files.has("tokenizer.json") || !job.files.has(kPieces)) return write_bpe(job);
  write_sentencepiece(job);
  job.set("add_bos_token", false);
  job.set("padding_token_id", std::uint32_t{3});
  job.set("eos_token_id", std::uint32_t{1});
  job.set("unknown_token_id", std::uint32_t{0});
}

void no_tokenizer(Job& job) { job.set("model", std::string_view("none")); }

void of_code(Job& job) {
  refuse(job, "is code that comes with the model, and Ballast runs no code", "tokenizer_config.json");
}

void of_target(Job& job) {
  refuse(job, "is that of the model that it drafts for, which is not in this folder", "config.json");
}

void of_other_kind(Job& job) { refuse(job, "is of a kind that Ballast does not read", "config.json"); }

void rwkv(Job& job) { refuse(job, "is RWKV's list of words, which Ballast does not read", "rwkv_vocab_v20230424.txt"); }

}  // namespace ballast::llamacpp::recipes
