#include "checkpoint/quantization/find_packed.hpp"

#include <algorithm>

namespace ballast {
namespace {

// gpt-oss keeps 32 values in 16 bytes, with a scale for each.
bool fits(const PackingScheme& row, const Tensor& tensor, const Tensor& partner) {
  if (row.ending != "_blocks") return true;
  return partner.dtype() == DType::u8 && tensor.rank() > 1 && tensor.shape()[tensor.rank() - 1] == 16;
}

constexpr std::string_view kEndingsOfCodes[] = {".qweight", "_packed", ".W_q", "._data", "_qdata", "_blocks", ".codes"};

}  // namespace

std::string_view module_of(std::string_view name) noexcept {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

PackedWeights::PackedWeights(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  for (const auto& [name, tensor] : checkpoint_) {
    if (is_packed_dtype(tensor.dtype())) look_at(name, tensor);
  }
}

void PackedWeights::look_at(std::string_view name, const Tensor& tensor) {
  for (const PackingScheme& row : packing_schemes()) {
    if (!row.dtypes.contain(tensor.dtype()) || !name.ends_with(row.ending)) continue;
    const std::string_view base = name.substr(0, name.size() - row.ending.size());
    const Tensor* partner = find(base, row.partner);
    if (partner == nullptr || !fits(row, tensor, *partner)) continue;
    return add(row, base, refined(row, base, tensor, *partner));
  }
}

const Tensor* PackedWeights::find(std::string_view base, std::string_view ending) {
  (name_ = base) += ending;
  return checkpoint_.find(name_);
}

// If two schemes have the same names, shapes or other tensors tell them apart.
std::string_view PackedWeights::refined(const PackingScheme& row, std::string_view base, const Tensor& tensor,
                                        const Tensor& partner) {
  const bool are_matrices = tensor.rank() == 2 && partner.rank() == 2;
  if (row.name == "gptq" && are_matrices && tensor.shape()[1] != partner.shape()[1]) return "awq";
  if (row.name == "mlx" && find(base, ".qbiases") != nullptr) return "metal";
  if (row.name == "bitnet" && partner.numel() != 1) return partner.dtype() == DType::f8_e4m3 ? "nvfp4" : "gemma";
  return row.name;
}

void PackedWeights::add(const PackingScheme& row, std::string_view base, std::string_view scheme) {
  if (!bases_.emplace(base, row.of).second) return;
  all_.push_back({std::string(base), &row, scheme});
  has_modules_ = has_modules_ || row.of == PackingScheme::Of::module;
  const std::string_view module = row.of == PackingScheme::Of::module ? base : module_of(base);
  if (!modules_.contains(module)) modules_.emplace(module, true);
  if (!around_modules_.contains(module_of(module))) around_modules_.emplace(module_of(module), true);
}

bool PackedWeights::has_part(std::string_view name) const {
  if (has_modules_ && !name.ends_with(".bias")) {
    const auto module = bases_.find(module_of(name));
    if (module != bases_.end() && module->second == PackingScheme::Of::module) return true;
  }
  return std::ranges::any_of(endings_of_parameters(), [&](std::string_view ending) {
    if (!name.ends_with(ending)) return false;
    const auto base = bases_.find(name.substr(0, name.size() - ending.size()));
    return base != bases_.end() && base->second == PackingScheme::Of::parameter;
  });
}

bool PackedWeights::is_orphan(std::string_view name, const Tensor& tensor) const {
  if (!is_packed_dtype(tensor.dtype()) || tensor.rank() < 2 || has_part(name) || has_of_activations(name)) return false;
  const bool is_f8 = info(tensor.dtype()).kind == DTypeKind::floating && info(tensor.dtype()).block_bytes == 1;
  if (is_f8 && tensor.dtype() != DType::f8_e8m0 && name.ends_with("weight")) return true;
  return std::ranges::any_of(kEndingsOfCodes, [&](std::string_view ending) { return name.ends_with(ending); });
}

bool PackedWeights::has_of_activations(std::string_view name) const {
  const std::string_view module = module_of(name);
  if (is_of_activations(name)) return modules_.contains(module);
  const bool is_near = modules_.contains(module) || around_modules_.contains(module);
  const Tensor* tensor = is_near && is_of_cached_keys(name) ? checkpoint_.find(name) : nullptr;
  return tensor != nullptr && tensor->numel() == 1;
}

}  // namespace ballast
