#include "transform/quantized/choose.hpp"

#include <algorithm>
#include <array>

#include "core/glob.hpp"
#include "kernels/quantize.hpp"

namespace ballast {
namespace {

std::string_view last_word(std::string_view module) { return module.substr(module.rfind('.') + 1); }

template <class Test>
bool any_word(std::string_view module, const Test& test) {
  for (std::size_t begin = 0; begin <= module.size();) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    if (test(module.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

bool is_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// Layers inside a block that are small and matter a lot, or are no linear layers.
bool is_delicate(std::string_view module) {
  const std::string_view word = last_word(module);
  const auto ends = [&](std::string_view ending) { return word == ending.substr(1) || word.ends_with(ending); };
  const auto is_router = [](std::string_view w) { return w == "router" || w.ends_with("_router"); };
  return ends("_gate") || ends("_head") || ends("_classifier") || ends("_bias") || any_word(module, is_router) ||
         word.find("embed") != word.npos || word.find("norm") != word.npos;
}

bool can_be_encoded(DType dtype) {
  constexpr std::array kFloats = {DType::f64, DType::f32, DType::f16, DType::bf16};
  return std::ranges::find(kFloats, dtype) != kFloats.end() || info(dtype).kind == DTypeKind::ggml;
}

bool is_experts_of_gpt_oss(const Checkpoint& checkpoint, std::string_view name, const Tensor& tensor) {
  return tensor.rank() == 3 && (name.ends_with(".experts.gate_up_proj") || name.ends_with(".experts.down_proj")) &&
         checkpoint.contains(std::string(name) + "_bias");
}

constexpr std::string_view kWeight = ".weight";

// GPT-2's own layer has its inputs first: its bias is as long as a row.
bool is_conv1d(const Checkpoint& checkpoint, std::string_view name, const Tensor& tensor) {
  if (tensor.rank() != 2 || !name.ends_with(kWeight) || tensor.shape()[0] == tensor.shape()[1]) return false;
  const Tensor* bias = checkpoint.find(std::string(module_of_parameter(name)) + ".bias");
  return bias != nullptr && bias->rank() == 1 && bias->shape()[0] == tensor.shape()[1];
}

bool has_name_of_conv1d(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"c_attn", "c_proj", "c_fc", "q_attn"};
  return std::ranges::find(kNames, last_word(module_of_parameter(name))) != kNames.end();
}

}  // namespace

std::string_view module_of_parameter(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

WeightChooser::WeightChooser(const Checkpoint& checkpoint, const QuantizeOptions& options) : options_(options) {
  for (const auto& [name, tensor] : checkpoint) {
    is_gpt_oss_ = is_gpt_oss_ || is_experts_of_gpt_oss(checkpoint, name, tensor);
    has_conv1d_ = has_conv1d_ || (has_name_of_conv1d(name) && is_conv1d(checkpoint, name, tensor));
  }
  is_gpt_oss_ = is_gpt_oss_ && options.scheme == WeightScheme::mxfp4;
}

bool WeightChooser::is_wanted(std::string_view name) const {
  if (!options_.weights.empty())
    return std::ranges::any_of(options_.weights, [&](const std::string& glob) { return glob_match(glob, name); });
  const std::string_view module = module_of_parameter(name);
  return any_word(module, is_number) && !is_delicate(module);
}

Choice WeightChooser::operator()(std::string_view name, const Tensor& tensor) const {
  if (!can_be_encoded(tensor.dtype()) || tensor.numel() == 0) return Choice::not_a_weight;
  if (is_gpt_oss_ && tensor.rank() == 3 && name.find(".experts.") != name.npos) {
    const bool is_one = name.ends_with(".experts.gate_up_proj") || name.ends_with(".experts.down_proj");
    if (!is_one) return Choice::not_a_weight;
    if (!options_.weights.empty() && !is_wanted(name)) return Choice::left;
    return tensor.shape()[1] % kernels::kMxfp4Block == 0 ? Choice::quantized : Choice::left_uneven;
  }
  const bool is_stack = tensor.rank() == 3 && name.find(".experts.") != name.npos;
  if (is_stack && options_.scheme == WeightScheme::fp8_block && is_wanted(name)) return Choice::stack;
  if (tensor.rank() != 2 || !name.ends_with(kWeight)) return Choice::not_a_weight;
  if (is_gpt_oss_ || !is_wanted(name)) return Choice::left;
  if (has_conv1d_ && has_name_of_conv1d(name)) return Choice::left_as_conv1d;
  const bool is_even = options_.scheme != WeightScheme::mxfp4 || tensor.shape()[1] % kernels::kMxfp4Block == 0;
  return is_even ? Choice::quantized : Choice::left_uneven;
}

}  // namespace ballast
