#include "checkpoint/sidecars/names.hpp"

#include <algorithm>
#include <array>

#include "core/shard_name.hpp"
#include "core/text.hpp"
#include "formats/all.hpp"

namespace ballast {
namespace {

using namespace std::string_view_literals;
using Kind = SidecarName::Kind;

constexpr std::uint64_t kMegabyte = 1'000'000;
constexpr std::uint64_t kLarge = 256 * kMegabyte, kMiddle = 64 * kMegabyte, kSmall = 16 * kMegabyte;

// The first row that matches counts.
constexpr SidecarName kSidecarNames[] = {
    {"config.json", kSmall, Kind::configuration},
    {"tokenizer_config.json", kMiddle, Kind::configuration},
    {"preprocessor_config.json", kSmall, Kind::configuration},
    {"processor_config.json", kSmall, Kind::configuration},
    {"generation_config.json", kSmall},
    {"video_preprocessor_config.json", kSmall},
    {"configuration.json", kSmall},  // ModelScope's
    {"params.json", kSmall},         // Mistral's and Meta's own
    // tokenizers
    {"tokenizer*.json", kLarge},
    {"tokenizer*.model", kLarge},
    {"tokenizer.model.v[0-9]*", kLarge},
    {"tekken.json", kLarge},
    {"vocab.json", kLarge},
    {"vocab.txt", kLarge},
    {"vocab.bpe", kLarge},
    {"*.vocab", kLarge},
    {"merges.txt", kLarge},
    {"*.tiktoken", kLarge},
    {"*.spm", kLarge},
    {"spiece.model", kLarge},
    {"sentencepiece*.model", kLarge},
    {"added_tokens.json", kMiddle},
    {"special_tokens_map.json", kMiddle},
    {"normalizer.json", kSmall},
    // templates
    {"*.jinja", kSmall},
    {"*.jinja2", kSmall},
    {"chat_template*.json", kSmall},
    // sentence-transformers
    {"modules.json", kSmall},
    {"sentence_*_config.json", kSmall},
    {"config_sentence_transformers.json", kSmall},
    {"[0-9]_*/config.json", kSmall},
    {"[0-9][0-9]_*/config.json", kSmall},
    {"additional_chat_templates/*.jinja", kSmall},
    // what is said of quantization outside of config.json
    {"quantize_config.json", kSmall, Kind::quantization},
    {"quant_config.json", kSmall, Kind::quantization},
    {"hf_quant_config.json", kSmall, Kind::quantization},
    {"recipe.yaml", kSmall, Kind::quantization},
    // for people
    {"README*", kSmall},
    {"MODEL_CARD*", kSmall},
    {"LICENSE*", kSmall},
    {"LICENCE*", kSmall},
    {"License*", kSmall},
    {"license*", kSmall},
    {"COPYING*", kSmall},
    {"NOTICE*", kSmall},
    {"Notice*", kSmall},
    {"USE_POLICY*", kSmall},
};

constexpr std::array kSidecarFolders = {"[0-9]_*"sv, "[0-9][0-9]_*"sv, "additional_chat_templates"sv};

// Weights that no format here has the ending of, and what a program runs.
constexpr std::array kOtherWeights = {".h5"sv,     ".msgpack"sv, ".onnx"sv,    ".onnx_data"sv, ".ot"sv, ".pkl"sv,
                                      ".pickle"sv, ".tflite"sv,  ".mlmodel"sv, ".xml"sv,       ".pb"sv, ".npy"sv,
                                      ".py"sv,     ".so"sv,      ".zip"sv,     ".tar"sv,       ".gz"sv};

}  // namespace

const SidecarName* sidecar_name(std::string_view name) {
  if (is_weights_name(name)) return nullptr;
  const auto depth = [](std::string_view path) { return std::ranges::count(path, '/'); };
  const auto row = std::ranges::find_if(kSidecarNames, [&](const SidecarName& candidate) {
    return depth(candidate.pattern) == depth(name) && glob_match(candidate.pattern, name);
  });
  return row == std::end(kSidecarNames) ? nullptr : row;
}

bool is_sidecar_folder(std::string_view name) {
  return std::ranges::any_of(kSidecarFolders, [&](std::string_view pattern) { return glob_match(pattern, name); });
}

bool is_weights_name(std::string_view name) {
  if (format_by_ending(name) != nullptr || name.ends_with(kIndexEnding)) return true;
  if (name.find(".index.") != name.npos && name.ends_with(".json")) return true;  // with a variant
  return std::ranges::any_of(kOtherWeights, [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace ballast
