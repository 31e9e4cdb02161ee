#include "checkpoint/quantization/neighbours.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include "core/text.hpp"

namespace ballast {
namespace {

// Factors that were moved from the activations into a weight.
constexpr std::string_view kFactors[] = {".pre_quant_scale", ".act_pre_scale", "_act_pre_scale", ".smooth",
                                         ".input_smooth_scale"};
// GPTQModel's EoRA: a product of two matrices that is added to what the layer computes.
constexpr std::string_view kCorrections[] = {".lora_A.weight", ".lora_A"};
constexpr std::string_view kComfy = ".comfy_quant";
constexpr std::uint64_t kMostComfyBytes = 4096;

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

Neighbours::Neighbours(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  for (const auto& [name, tensor] : checkpoint) {
    // All of these end with one of four letters, and most names of large checkpoints with "inv" or "weight".
    const char last = name.empty() ? '\0' : name.back();
    if (last == 'e' || last == 'h') has_factors_ = has_factors_ || ends_with_any(name, kFactors);
    if (last == 't' || last == 'A') {
      has_corrections_ = has_corrections_ || ends_with_any(name, kCorrections);
      has_comfy_ = has_comfy_ || name.ends_with(kComfy);
    }
  }
}

void Neighbours::check(const PackedModule& module, const PackedWeight& weight) const {
  if (!has_factors_ && !has_corrections_ && !has_comfy_) return;
  const bool is_module = weight.row->of == PackingScheme::Of::module;
  const std::string base(weight.base);
  const std::string layer(is_module ? std::string_view(base) : module_of(base));
  const auto refuse_with = [&](std::string_view what, std::span<const std::string_view> endings) {
    for (const std::string_view ending : endings)
      for (const std::string& before : {layer, base})
        if (const std::string name = before + std::string(ending); checkpoint_.contains(name))
          module.refuse(fmt::format("goes with {} ({})", what, quote(name)));
  };
  if (has_factors_) refuse_with("factors for its inputs", kFactors);
  if (has_corrections_) refuse_with("matrices that correct what it computes", kCorrections);
  const Tensor* said = has_comfy_ ? checkpoint_.find(layer + std::string(kComfy)) : nullptr;
  if (said != nullptr) check_comfy(module, weight, *said);
}

void Neighbours::check_comfy(const PackedModule& module, const PackedWeight& weight, const Tensor& said) const {
  const std::vector<std::byte> bytes = module.bytes(said, kMostComfyBytes);
  std::string form;
  try {
    form = Json::parse_python({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).at("format").text();
  } catch (const Error& error) {
    module.complain("has a comfy_quant that cannot be read: " + error.message());
  }
  const DType dtype = checkpoint_.tensors[weight.number].tensor.dtype();
  const bool is_fp8 =
      (form == "float8_e4m3fn" && dtype == DType::f8_e4m3) || (form == "float8_e5m2" && dtype == DType::f8_e5m2);
  if (!is_fp8) module.refuse(fmt::format("is kept in ComfyUI's form {}", quote(form)));
}

}  // namespace ballast
