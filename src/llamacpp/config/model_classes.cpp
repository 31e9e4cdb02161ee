#include "llamacpp/config/model_classes.hpp"

namespace ballast::llamacpp {
namespace {

struct ClassesOfArchitecture {
  std::string_view architecture;
  std::string_view classes;  // with a space between two
};

// clang-format off
constexpr ClassesOfArchitecture kModelClasses[] = {
    {"afmoe", "AfmoeForCausalLM"},
    {"apertus", "ApertusForCausalLM"},
    {"arcee", "ArceeForCausalLM"},
    {"arctic", "ArcticForCausalLM"},
    {"arwkv7", "RwkvHybridForCausalLM"},
    {"baichuan", "BaiChuanForCausalLM BaichuanForCausalLM"},
    {"bailingmoe", "BailingMoeForCausalLM"},
    {"bailingmoe2", "BailingMoeV2ForCausalLM SarvamMoEForCausalLM modeling_sarvam_moe.SarvamMoEForCausalLM"},
    {"bailingmoe3", "BailingMoeV3ForCausalLM"},
    {"bert", "BertForMaskedLM BertForSequenceClassification BertModel CamembertModel DistilBertForMaskedLM "
     "DistilBertForSequenceClassification DistilBertModel NomicBertModel RobertaForSequenceClassification "
     "RobertaModel XLMRobertaForSequenceClassification XLMRobertaModel"},
    {"bitnet", "BitNetForCausalLM BitnetForCausalLM"},
    {"bloom", "BloomForCausalLM BloomModel"},
    {"chameleon", "ChameleonForCausalLM ChameleonForConditionalGeneration"},
    {"chatglm", "ChatGLMForConditionalGeneration ChatGLMModel GlmForCausalLM"},
    {"codeshell", "CodeShellForCausalLM"},
    {"cogvlm", "CogVLMForCausalLM"},
    {"cohere2", "Cohere2ForCausalLM"},
    {"cohere2moe", "Cohere2MoeForCausalLM"},
    {"command-r", "CohereForCausalLM"},
    {"dbrx", "DbrxForCausalLM"},
    {"deci", "DeciLMForCausalLM"},
    {"deepseek", "DeepseekForCausalLM"},
    {"deepseek2", "DeepseekOCRForCausalLM DeepseekV2ForCausalLM DeepseekV3ForCausalLM Glm4MoeLiteForCausalLM "
     "KimiK25ForConditionalGeneration KimiVLForConditionalGeneration UnlimitedOCRForCausalLM YoutuForCausalLM "
     "YoutuVLForConditionalGeneration"},
    {"deepseek32", "DeepseekV32ForCausalLM"},
    {"deepseek4", "DeepseekV4ForCausalLM"},
    {"dflash", "DFlashDraftModel DSparkDraftModel DSparkSpeculator DeepseekV4DSparkModel Lfm2DSparkDraftModel "
     "LingDSparkModel MuseGlimmerAssistantModel Qwen3DSparkModel"},
    {"dots1", "Dots1ForCausalLM"},
    {"dots3note", "Dots3NoteForCausalLM Dots3NoteForConditionalGeneration Dots3NoteTextForCausalLM"},
    {"dream", "DreamModel"},
    {"ernie4_5", "Ernie4_5ForCausalLM Ernie4_5_ForCausalLM"},
    {"ernie4_5-moe", "Ernie4_5_MoeForCausalLM"},
    {"eurobert", "EuroBertModel JinaEmbeddingsV5Model"},
    {"exaone", "ExaoneForCausalLM"},
    {"exaone-moe", "ExaoneMoEForCausalLM ExaoneMoeForCausalLM"},
    {"exaone4", "Exaone4ForCausalLM Exaone4_5_ForConditionalGeneration"},
    {"falcon", "FalconForCausalLM RWForCausalLM"},
    {"falcon-h1", "FalconH1ForCausalLM"},
    {"gemma", "GemmaForCausalLM"},
    {"gemma-embedding", "Gemma3TextModel"},
    {"gemma2", "Gemma2ForCausalLM"},
    {"gemma3", "Gemma3ForCausalLM Gemma3ForConditionalGeneration"},
    {"gemma3n", "Gemma3nForCausalLM Gemma3nForConditionalGeneration"},
    {"gemma4", "Gemma4ForCausalLM Gemma4ForConditionalGeneration Gemma4UnifiedForConditionalGeneration"},
    {"gemma4-assistant", "Gemma4AssistantForCausalLM Gemma4UnifiedAssistantForCausalLM"},
    {"glm-dsa", "GlmMoeDsaForCausalLM"},
    {"glm4", "Glm4ForCausalLM Glm4vForConditionalGeneration GlmOcrForConditionalGeneration"},
    {"glm4moe", "Glm4MoeForCausalLM Glm4vMoeForConditionalGeneration SolarOpenForCausalLM"},
    {"gpt-oss", "GptOssForCausalLM"},
    {"gpt2", "GPT2LMHeadModel RuGPT3XLForCausalLM"},
    {"gptneox", "GPTNeoXForCausalLM"},
    {"granite", "GraniteForCausalLM"},
    {"granite_swa", "GraniteMoeSWAForCausalLM GraniteSWAForCausalLM"},
    {"granitehybrid", "BambaForCausalLM GraniteMoeHybridForCausalLM"},
    {"granitemoe", "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM"},
    {"graniteswitch", "GraniteSwitchForCausalLM"},
    {"grok", "Grok1ForCausalLM GrokForCausalLM"},
    {"grovemoe", "GroveMoeForCausalLM modeling_grove_moe.GroveMoeForCausalLM"},
    {"hunyuan-dense", "HunYuanDenseV1ForCausalLM"},
    {"hunyuan-moe", "HunYuanMoEV1ForCausalLM"},
    {"hunyuan_vl", "HunYuanVLForConditionalGeneration"},
    {"hy_v3", "HYV3ForCausalLM"},
    {"internlm2", "InternLM2ForCausalLM"},
    {"jais", "JAISLMHeadModel"},
    {"jais2", "Jais2ForCausalLM"},
    {"jamba", "JambaForCausalLM"},
    {"jina-bert-v2", "JinaBertForMaskedLM JinaBertModel"},
    {"kimi-k3", "KimiK3ForConditionalGeneration"},
    {"kimi-linear", "KimiLinearForCausalLM KimiLinearModel"},
    {"laguna", "LagunaForCausalLM"},
    {"lfm2", "LFM2ForCausalLM Lfm25AudioTokenizer Lfm2BidirectionalModel Lfm2ForCausalLM Lfm2Model"},
    {"lfm2moe", "Lfm2MoeForCausalLM"},
    {"llada", "LLaDAModelLM"},
    {"llada-moe", "LLaDAMoEModel LLaDAMoEModelLM"},
    {"llama", "Eagle3DraftModel Eagle3LlamaForCausalLM Eagle3Speculator IQuestCoderForCausalLM "
     "InternLM3ForCausalLM JanusForConditionalGeneration LLaMAForCausalLM LlamaForCausalLM "
     "LlamaForCausalLMEagle3 LlamaModel LlavaForConditionalGeneration MistralForCausalLM MixtralForCausalLM "
     "Sarashina2VisionForCausalLM UltravoxModel VLlama3ForCausalLM VoxtralForConditionalGeneration"},
    {"llama-embed", "LlamaBidirectionalModel"},
    {"llama4", "Llama4ForCausalLM Llama4ForConditionalGeneration"},
    {"maincoder", "MaincoderForCausalLM"},
    {"mamba", "FalconMambaForCausalLM MambaForCausalLM MambaLMHeadModel"},
    {"mamba2", "Mamba2ForCausalLM"},
    {"mellum", "MellumForCausalLM"},
    {"mimo2", "MiMoV2FlashForCausalLM MiMoV2ForCausalLM"},
    {"minicpm", "MiniCPMForCausalLM"},
    {"minicpm3", "MiniCPM3ForCausalLM"},
    {"minimax-01", "MiniMaxM1ForCausalLM MiniMaxText01ForCausalLM"},
    {"minimax-m2", "MiniMaxM2ForCausalLM"},
    {"minimax-m3", "MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration"},
    {"mistral3", "Ministral3ForCausalLM Mistral3ForConditionalGeneration"},
    {"modern-bert", "ModernBertForMaskedLM ModernBertForSequenceClassification ModernBertModel"},
    {"mpt", "MPTForCausalLM"},
    {"muse-glimmer", "MuseGlimmerForConditionalGeneration"},
    {"nanbeige", "NanbeigeForCausalLM"},
    {"nemotron", "NemotronForCausalLM"},
    {"nemotron_h", "NemotronHForCausalLM"},
    {"neo-bert", "NeoBERT NeoBERTForSequenceClassification NeoBERTLMHead"},
    {"olmo", "OLMoForCausalLM OlmoForCausalLM"},
    {"olmo2", "Olmo2ForCausalLM Olmo3ForCausalLM"},
    {"olmoe", "OlmoeForCausalLM"},
    {"openelm", "OpenELMForCausalLM"},
    {"orion", "OrionForCausalLM"},
    {"paddleocr", "PaddleOCRVLForConditionalGeneration"},
    {"pangu-embedded", "PanguEmbeddedForCausalLM"},
    {"phi2", "PhiForCausalLM"},
    {"phi3", "Phi3ForCausalLM Phi4ForCausalLMV"},
    {"phimoe", "PhiMoEForCausalLM"},
    {"plamo", "PlamoForCausalLM"},
    {"plamo2", "PLaMo2ForCausalLM Plamo2ForCausalLM"},
    {"plamo3", "PLaMo3ForCausalLM Plamo3ForCausalLM"},
    {"plm", "PLMForCausalLM"},
    {"pockettts", "PocketTTSModel"},
    {"qwen", "QWenLMHeadModel"},
    {"qwen2", "AudioFlamingo3ForConditionalGeneration DotsOCRForCausalLM KORMoForCausalLM "
     "Qwen2AudioForConditionalGeneration Qwen2ForCausalLM Qwen2Model"},
    {"qwen2moe", "Qwen2MoeForCausalLM"},
    {"qwen2vl", "Qwen2VLForConditionalGeneration Qwen2VLModel Qwen2_5OmniModel "
     "Qwen2_5_VLForConditionalGeneration"},
    {"qwen3", "Qwen3ForCausalLM Qwen3Model StepVLForConditionalGeneration"},
    {"qwen35", "MiniCPMV4_6ForConditionalGeneration Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration"},
    {"qwen35moe", "Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration"},
    {"qwen3moe", "Qwen3MoeForCausalLM"},
    {"qwen3next", "Qwen3NextForCausalLM"},
    {"qwen3tts", "Qwen3TTSForConditionalGeneration"},
    {"qwen3vl", "Qwen3ASRForConditionalGeneration Qwen3VLForConditionalGeneration"},
    {"qwen3vlmoe", "Qwen3OmniMoeForConditionalGeneration Qwen3VLMoeForConditionalGeneration"},
    {"refact", "GPTRefactForCausalLM"},
    {"rnd1", "RND1"},
    {"rwkv6", "Rwkv6ForCausalLM"},
    {"rwkv6qwen2", "RWKV6Qwen2ForCausalLM"},
    {"rwkv7", "RWKV7ForCausalLM Rwkv7ForCausalLM"},
    {"seed_oss", "SeedOssForCausalLM"},
    {"smallthinker", "SmallThinkerForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM"},
    {"stablelm", "LlavaStableLMEpochForCausalLM StableLMEpochForCausalLM StableLmForCausalLM"},
    {"starcoder", "GPTBigCodeForCausalLM"},
    {"starcoder2", "Starcoder2ForCausalLM"},
    {"step35", "Step3p5ForCausalLM Step3p7ForConditionalGeneration"},
    {"t5", "MT5ForConditionalGeneration T5ForConditionalGeneration T5WithLMHeadModel "
     "UMT5ForConditionalGeneration UMT5Model"},
    {"t5encoder", "T5EncoderModel"},
    {"talkie", "TalkieForCausalLM"},
    {"wavtokenizer-dec", "WavTokenizerDec"},
    {"xverse", "XverseForCausalLM"},
};
// clang-format on

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = words.find(' ');
    if (words.substr(0, end) == word) return true;
    words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  }
  return false;
}

}  // namespace

std::string_view architecture_of(std::string_view class_name) {
  for (const auto& [architecture, classes] : kModelClasses) {
    if (has_word(classes, class_name)) return architecture;
  }
  return {};
}

}  // namespace ballast::llamacpp
