#include "checkpoint/quantization/scheme_table.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace ballast {
namespace {

using D = DType;

static_assert(static_cast<unsigned>(D::q2_0) < 64, "DTypes is a word");

constexpr DTypes kF8 = {D::f8_e4m3, D::f8_e5m2, D::f8_e4m3fnuz, D::f8_e5m2fnuz};
constexpr DTypes kI8 = {D::i8}, kU8 = {D::u8}, kI32 = {D::i32}, kU32 = {D::u32};
constexpr DTypes kWords = {D::i8, D::u8, D::i16, D::u16, D::i32, D::u32};
constexpr DTypes kIndices = {D::i16, D::i32, D::i64};
constexpr DTypes kCodes = {D::i8, D::u8, D::f4, D::f8_e4m3, D::f8_e5m2, D::f8_e4m3fnuz, D::f8_e5m2fnuz};

constexpr auto kModule = PackingScheme::Of::module, kParameter = PackingScheme::Of::parameter;
constexpr PackingScheme kSchemes[] = {
    {"gptq", ".qweight", kI32, ".scales", kModule, read_gptq},  // or AWQ
    {"exl2", ".q_weight", kI32, ".q_scale", kModule, nullptr},
    {"marlin", ".B", kI32, ".s", kModule, nullptr},
    {"bitsandbytes", ".quant_state.bitsandbytes__nf4", kU8, ".absmax", kParameter, read_bnb_4bit},
    {"bitsandbytes", ".quant_state.bitsandbytes__fp4", kU8, ".absmax", kParameter, read_bnb_4bit},
    {"bitsandbytes", ".weight", kI8, ".SCB", kModule, read_bnb_8bit},
    {"eetq", ".weight", kI8, ".weight_scales", kModule, nullptr},
    {"fp8", "", kF8, "_scale_inv", kParameter, read_scaled},
    {"fp8", "", kI8, "_scale_inv", kParameter, read_scaled},  // FP4, two a byte, beside FP8
    {"fp8", "", kF8, "_scale", kParameter, read_scaled},
    {"fp8", ".weight", kF8, ".qscale_weight", kModule, read_mistral_fp8},  // Mistral
    {"fp8", ".weight", kF8, ".scale_weight", kModule, read_comfy_fp8},     // ComfyUI
    {"int8", "", kI8, "_scale", kParameter, read_scaled},
    {"nvfp4", "", kU8, "_scale_2", kParameter, read_modelopt_fp4},
    {"bitnet", "", kU8, "_scale", kParameter, read_scaled_bytes},
    {"mxfp4", "_blocks", kU8, "_scales", kParameter, read_mxfp4_blocks},
    {"mxfp4", ".blocks", kU8, ".scales", kParameter, read_mxfp4_blocks},  // as OpenAI publishes it
    {"compressed-tensors", "_packed", kWords, "_scale", kParameter, read_packed},
    {"compressed-tensors", ".bitmask", kU8, ".compressed", kParameter, read_bitmask},
    {"mlx", ".weight", kU32, ".scales", kModule, read_mlx},
    {"hqq", ".W_q", kWords, ".scale", kModule, read_hqq},
    {"hqq", ".packing", kU8, ".W_q", kModule, read_hqq},  // the dtype of W_q may be floating
    {"hqq", ".nbits", kI32, ".W_q", kModule, read_hqq},
    {"quanto", "._data", kF8, "._scale", kParameter, read_quanto},
    {"quanto", "._data", kWords, "._scale", kParameter, read_quanto},
    {"quanto", "._data._data", kWords, "._scale", kParameter, read_quanto},
    {"torchao", "_qdata", kCodes, "_scale", kParameter, read_torchao},
    {"torchao", ".qdata", kCodes, ".scale", kParameter, read_torchao},  // attributes that a pickle has
    {"aqlm", ".codes", kWords, ".codebooks", kModule, nullptr},
    {"vptq", ".indices", kWords, ".centroids.weight", kModule, nullptr},
    {"quip", ".Qidxs", kIndices, ".SU", kModule, nullptr},
    {"higgs", ".weight", kWords, ".tables2", kModule, nullptr},
    {"spqr", ".col_vals", kI32, ".dense_weights", kModule, nullptr},
};

// clang-format off
constexpr std::string_view kOfParameter[] = {
    "", "_scale", "_scale_inv", "_scale_2", "_packed", "_shape", "_zero_point", "_g_idx", "_global_scale", "_blocks",
    "_scales", "_qdata", "_per_tensor_scale", "_format",
    ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map",
    ".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4",
    "._data", "._data._data", "._scale", "._shift",
    ".compressed", ".bitmask", ".shape", ".row_offsets", ".blocks", ".scales",
};
constexpr std::string_view kOfActivations[] = {
    ".input_scale", ".input_scale_ub", ".input_activation_scale", ".output_activation_scale", ".output_scale",
    ".input_global_scale", ".input_zero_point", ".activation_scale", ".qscale_act", ".scale_input", ".comfy_quant",
    ".pre_quant_scale", ".act_pre_scale", ".smooth", "_act_per_tensor_scale", ".act_per_tensor_scale",
};
constexpr std::string_view kOfCachedKeys[] = {".k_scale", ".v_scale", ".kv_scale"};

constexpr std::string_view kDecoded[] = {
    "gptq", "awq", "auto-round", "bitsandbytes", "fp8", "fbgemm_fp8", "int8", "nvfp4", "mxfp4", "modelopt",
    "compressed-tensors", "hqq", "torchao", "quanto", "bitnet", "gemma", "mlx", "metal",
};

// An ending of a part, and that of the weight in its place.
struct PartEnding {
  std::string_view of_part, of_weight;
};
constexpr PartEnding kEndingsOfCodes[] = {
    {".qweight", ".weight"}, {"_packed", ""}, {".W_q", ".weight"}, {"._data._data", ""}, {"._data", ""}, {"_qdata", ""},
    {"_blocks", ""}, {".blocks", ""}, {".codes", ".weight"},
};
constexpr PartEnding kEndingsOfPartners[] = {
    {".qzeros", ".weight"}, {".scales", ".weight"}, {".g_idx", ".weight"}, {".SCB", ".weight"},
    {".qscale_weight", ".weight"}, {".scale_weight", ".weight"}, {".nbits", ".weight"}, {".nested_absmax", ""},
    {".nested_quant_map", ""}, {".absmax", ""}, {".quant_map", ""}, {".quant_state.bitsandbytes__nf4", ""},
    {".quant_state.bitsandbytes__fp4", ""}, {"_scale_inv", ""}, {"weight_scale", "weight"},
    {"weight_scale_2", "weight"}, {"weight_shape", "weight"}, {"weight_zero_point", "weight"},
    {"weight_g_idx", "weight"}, {"weight_global_scale", "weight"}, {"._scale", ""}, {"._shift", ""}, {".compressed", ""},
    {".bitmask", ""},
};
// clang-format on

bool has_one_of(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

std::string weight_by_ending(std::string_view name, std::span<const PartEnding> endings) {
  for (const auto& [of_part, of_weight] : endings)
    if (name.ends_with(of_part))
      return std::string(name.substr(0, name.size() - of_part.size())) + std::string(of_weight);
  return {};
}

}  // namespace

std::span<const PackingScheme> packing_schemes() noexcept { return kSchemes; }

std::string undecoded_scheme(std::string_view scheme, const Json& config) {
  if (scheme.empty()) return {};
  const std::string layout = layout_of_kernel(config);
  if (!layout.empty()) return std::string(scheme) + " for a kernel (" + layout + ")";
  return std::ranges::find(kDecoded, scheme) == std::end(kDecoded) ? std::string(scheme) : std::string();
}

std::string layout_of_kernel(const Json& config) {
  const auto layout_in = [](const Json& settings) -> std::string {
    for (const char* key : {"checkpoint_format", "format", "version", "packing_format", "backend"}) {
      const Json* found = settings.find(key);
      const std::string word = found != nullptr && found->is_text() ? lower_case(found->text()) : std::string();
      for (const char* layout : {"marlin", "qqq", "bitblas", "gemv", "llm-awq", "exllama_v3", "planar"})
        if (word.find(layout) != std::string::npos) return word;
    }
    return {};
  };
  const Json* is_marlin = config.find("is_marlin_format");
  if (is_marlin != nullptr && is_marlin->is_bool() && is_marlin->boolean()) return "marlin";
  if (std::string layout = layout_in(config); !layout.empty()) return layout;
  const Json* groups = config.find("config_groups");
  if (groups == nullptr || !groups->is_object()) return {};
  for (const auto& [name, group] : groups->members())
    if (std::string layout = layout_in(group); !layout.empty()) return layout;
  return {};
}

std::string weight_of_codes(std::string_view name) { return weight_by_ending(name, kEndingsOfCodes); }

std::string weight_of_partner(std::string_view name) { return weight_by_ending(name, kEndingsOfPartners); }

bool is_of_4_bits(std::string_view name) noexcept {
  return name.ends_with("absmax") || name.ends_with("quant_map") || name.find(".quant_state.") != name.npos;
}

std::span<const std::string_view> endings_of_parameters() noexcept { return kOfParameter; }

bool is_of_activations(std::string_view name) noexcept { return has_one_of(name, kOfActivations); }

bool is_of_cached_keys(std::string_view name) noexcept { return has_one_of(name, kOfCachedKeys); }

}  // namespace ballast
