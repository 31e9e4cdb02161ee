#include "checkpoint/quantization/schemes.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "checkpoint/quantization/config.hpp"
#include "core/name_hash.hpp"

namespace ballast {
namespace {

using D = DType;

class DTypes {
 public:
  constexpr DTypes(std::initializer_list<D> dtypes) {
    for (const D dtype : dtypes) bits_ |= std::uint64_t{1} << static_cast<unsigned>(dtype);
  }
  constexpr bool contain(D dtype) const { return (bits_ >> static_cast<unsigned>(dtype) & 1) != 0; }

 private:
  std::uint64_t bits_ = 0;
};
static_assert(static_cast<unsigned>(D::q2_0) < 64);

constexpr DTypes kF8 = {D::f8_e4m3, D::f8_e5m2, D::f8_e4m3fnuz, D::f8_e5m2fnuz};
constexpr DTypes kI8 = {D::i8}, kU8 = {D::u8}, kI32 = {D::i32}, kU32 = {D::u32};
constexpr DTypes kWords = {D::i8, D::u8, D::i16, D::u16, D::i32, D::u32};
// The dtypes that values are packed in. In every scheme at least one part of a weight has one of them.
constexpr DTypes kPacked = {D::i8, D::u8,      D::i16,     D::u16,     D::i32,         D::u32,
                            D::f4, D::f8_e4m3, D::f8_e5m2, D::f8_e8m0, D::f8_e4m3fnuz, D::f8_e5m2fnuz};

// How a scheme is recognized: by two tensors whose names begin alike and have these endings, the first of which has one
// of these dtypes. The common beginning of their names is a module, of which everything but the bias is packed, or a
// parameter ("weight"), with the endings that kOfParameter lists. The first row that fits counts.
struct Scheme {
  std::string_view name, ending;
  DTypes dtypes;
  std::string_view partner;
  enum class Of : std::uint8_t { module, parameter } of;
};
constexpr auto kModule = Scheme::Of::module, kParameter = Scheme::Of::parameter;
constexpr Scheme kSchemes[] = {
    {"gptq", ".qweight", kI32, ".scales", kModule},  // or AWQ
    {"exl2", ".q_weight", kI32, ".q_scale", kModule},
    {"marlin", ".B", kI32, ".s", kModule},
    {"bitsandbytes", ".quant_state.bitsandbytes__nf4", kU8, ".absmax", kParameter},
    {"bitsandbytes", ".quant_state.bitsandbytes__fp4", kU8, ".absmax", kParameter},
    {"bitsandbytes", ".weight", kI8, ".SCB", kModule},
    {"eetq", ".weight", kI8, ".weight_scales", kModule},
    {"fp8", "", kF8, "_scale_inv", kParameter},
    {"fp8", "", kI8, "_scale_inv", kParameter},  // FP4, two a byte, beside FP8
    {"fp8", "", kF8, "_scale", kParameter},
    {"fp8", ".weight", kF8, ".qscale_weight", kModule},  // Mistral
    {"fp8", ".weight", kF8, ".scale_weight", kModule},   // ComfyUI
    {"int8", "", kI8, "_scale", kParameter},
    {"nvfp4", "", kU8, "_scale_2", kParameter},
    {"bitnet", "", kU8, "_scale", kParameter},
    {"mxfp4", "_blocks", kU8, "_scales", kParameter},
    {"compressed-tensors", "_packed", kWords, "_scale", kParameter},
    {"compressed-tensors", ".bitmask", kU8, ".compressed", kParameter},
    {"mlx", ".weight", kU32, ".scales", kModule},
    {"hqq", ".W_q", kWords, ".scale", kModule},
    {"hqq", ".packing", kU8, ".W_q", kModule},  // the dtype of W_q may be floating
    {"hqq", ".nbits", kI32, ".W_q", kModule},
    {"quanto", "._data", kF8, "._scale", kParameter},
    {"quanto", "._data", kWords, "._scale", kParameter},
    {"quanto", "._data._data", kWords, "._scale", kParameter},
    {"torchao", "_qdata", kF8, "_scale", kParameter},
    {"torchao", "_qdata", kWords, "_scale", kParameter},
    {"aqlm", ".codes", kWords, ".codebooks", kModule},
    {"vptq", ".indices", kWords, ".centroids.weight", kModule},
    {"quip", ".Qidxs", kWords, ".SU", kModule},
};

constexpr std::string_view kOfParameter[] = {
    "_scale",
    "_scale_inv",
    "_scale_2",
    "_packed",
    "_shape",
    "_zero_point",
    "_g_idx",
    "_global_scale",
    "_blocks",
    "_scales",
    "_qdata",
    "_per_tensor_scale",
    "_format",  //
    ".absmax",
    ".quant_map",
    ".nested_absmax",
    ".nested_quant_map",
    ".quant_state.bitsandbytes__nf4",  //
    ".quant_state.bitsandbytes__fp4",
    "._data",
    "._data._data",
    "._scale",
    "._shift",
    ".compressed",  //
    ".bitmask",
    ".shape",
    ".row_offsets",
    "",
};
// Endings for the activations of a module of which a parameter is packed.
constexpr std::string_view kOfActivations[] = {
    ".input_scale",  ".input_scale_ub",     ".input_activation_scale", ".output_activation_scale",
    ".output_scale", ".input_global_scale", ".input_zero_point",       ".activation_scale",
    ".qscale_act",   ".scale_input",        ".pre_quant_scale",        ".comfy_quant",
};

std::string_view module_of(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

class Recognizer {
 public:
  explicit Recognizer(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  bool has_packed_dtypes() const {
    return std::ranges::any_of(checkpoint_, [](const auto& entry) { return kPacked.contain(entry.tensor.dtype()); });
  }

  // Looks at names and dtypes; false if no scheme fits.
  bool find_schemes() {
    for (const auto& [name, tensor] : checkpoint_) {
      if (!kPacked.contain(tensor.dtype())) continue;
      for (const Scheme& scheme : kSchemes) {
        if (!scheme.dtypes.contain(tensor.dtype()) || !name.ends_with(scheme.ending)) continue;
        const std::string_view base = name.substr(0, name.size() - scheme.ending.size());
        const Tensor* partner = find(base, scheme.partner);
        if (partner == nullptr || !fits(scheme, tensor, *partner)) continue;
        add(scheme, base, refined(scheme, base, tensor, *partner));
        break;
      }
    }
    return !found_.empty();
  }

  // Finds wrappers of torchao, which a pickle rebuilds and whose data only torchao reads.
  bool find_wrappers() {
    for (const Composite& composite : checkpoint_.composites) {
      if (!composite.layout.starts_with("torchao.")) continue;
      for (const std::string& part : composite.parts) {
        if (const Tensor* tensor = checkpoint_.find(part)) quantization_.parts.insert(part, *tensor);
      }
      ++quantization_.modules;
      quantization_.scheme = "torchao";
      quantization_.evidence = "the class " + composite.layout;
    }
    return quantization_.modules != 0;
  }

  // For a scheme that is known only by its configuration: takes every tensor of such a dtype, and the tensors beside
  // it.
  bool find_modules() {
    for (const auto& [name, tensor] : checkpoint_) {
      if (kPacked.contain(tensor.dtype()) && tensor.rank() != 0 && !module_of(name).empty())
        found_.emplace(module_of(name), kModule);
    }
    return !found_.empty();
  }

  Quantization finish() {
    quantization_.modules += found_.size();
    for (const auto& [name, tensor] : checkpoint_) {
      if (is_part(name)) quantization_.parts.insert(name, tensor);
    }
    return std::move(quantization_);
  }

 private:
  const Tensor* find(std::string_view base, std::string_view ending) {
    (name_ = base) += ending;
    return checkpoint_.find(name_);
  }

  static bool fits(const Scheme& scheme, const Tensor& tensor, const Tensor& partner) {
    if (scheme.ending != "_blocks") return true;
    return partner.dtype() == D::u8 && tensor.rank() > 1 && tensor.shape()[tensor.rank() - 1] == 16;
  }

  // If two schemes have the same names, shapes or other tensors tell them apart.
  std::string_view refined(const Scheme& scheme, std::string_view base, const Tensor& tensor, const Tensor& partner) {
    const bool are_matrices = tensor.rank() == 2 && partner.rank() == 2;
    if (scheme.name == "gptq" && are_matrices && tensor.shape()[1] != partner.shape()[1]) return "awq";
    if (scheme.name == "mlx" && find(base, ".qbiases") != nullptr) return "metal";
    if (scheme.name == "bitnet" && partner.numel() != 1) return partner.dtype() == D::f8_e4m3 ? "nvfp4" : "gemma";
    return scheme.name;
  }

  void add(const Scheme& scheme, std::string_view base, std::string_view name) {
    found_.emplace(base, scheme.of);
    if (scheme.of == kParameter) around_parameters_.emplace(module_of(base), true);
    if (quantization_.scheme.empty()) quantization_.scheme = name;
    quantization_.evidence = "names and dtypes";
  }

  bool is_part(std::string_view name) const {
    const std::string_view module = module_of(name);
    if (const auto found = found_.find(module); found != found_.end() && found->second == kModule)
      return !name.ends_with(".bias");
    for (const std::string_view ending : kOfParameter) {
      if (!name.ends_with(ending)) continue;
      const auto found = found_.find(name.substr(0, name.size() - ending.size()));
      if (found != found_.end() && found->second == kParameter) return true;
    }
    return around_parameters_.contains(module) &&
           std::ranges::any_of(kOfActivations, [&](std::string_view ending) { return name.ends_with(ending); });
  }

  const Checkpoint& checkpoint_;
  Quantization quantization_;
  NameViewMap<Scheme::Of> found_;        // the names of packed modules and parameters
  NameViewMap<bool> around_parameters_;  // the modules of those parameters
  std::string name_;
};

}  // namespace

Checkpoint recognize_quantization(Checkpoint checkpoint, const std::string& target, const OpenOptions& options) {
  if (checkpoint.format == Format::gguf) return checkpoint;  // ggml's own types are not parts
  Recognizer recognizer(checkpoint);
  const bool has_wrappers = recognizer.find_wrappers();
  if (!has_wrappers && !recognizer.has_packed_dtypes()) return checkpoint;
  const bool has_schemes = recognizer.find_schemes() || has_wrappers;
  const auto config = target.empty() ? std::nullopt : find_quantization_config(target, options);
  const bool is_named = config && !config->scheme.empty();
  if (!has_schemes && !(is_named && recognizer.find_modules())) return checkpoint;

  Quantization quantization = recognizer.finish();
  if (is_named) {
    quantization.scheme = config->scheme;
    quantization.evidence = config->file;
    quantization.bits = config->bits;
    quantization.group_size = config->group_size;
  }
  checkpoint.quantization = std::move(quantization);
  return checkpoint;
}

}  // namespace ballast
