#include "checkpoint/quantization/find_packed.hpp"

#include <algorithm>

#include "tensor/doors.hpp"

namespace ballast {
namespace {

// gpt-oss keeps 32 values in 16 bytes, with a scale for each.
bool fits(const PackingScheme& row, const Tensor& tensor, const Tensor& partner) {
  if (row.read != read_mxfp4_blocks) return true;
  return partner.dtype() == DType::u8 && tensor.rank() > 1 && tensor.shape()[tensor.rank() - 1] == 16;
}

}  // namespace

std::string_view module_of(std::string_view name) noexcept {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string PackedWeight::name() const {
  if (row->of == PackingScheme::Of::module) return std::string(base) + ".weight";
  const std::size_t last = base.rfind('.') + 1;  // torchao's files have M._weight_qdata of M.weight
  const bool is_marked = row->ending == "_qdata" && base.substr(last).starts_with('_');
  return is_marked ? std::string(base.substr(0, last)) + std::string(base.substr(last + 1)) : std::string(base);
}

PackedWeights::PackedWeights(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), is_part_(checkpoint.size()), is_of_activations_(checkpoint.size()) {
  const StateDict& tensors = checkpoint_.tensors;
  const auto is_packed = [](const auto& entry) { return may_tell_scheme(entry.name, entry.tensor.dtype()); };
  bases_.reserve(static_cast<std::size_t>(std::ranges::count_if(tensors, is_packed)));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (is_packed(tensors[i])) look_at(i);
  if (all_.empty()) return;
  // Most parts are known by now: those that tell the schemes, and are not of activations.
  std::vector<std::size_t> of_activations;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (is_part_[i]) continue;
    const std::string_view name = tensors[i].name;
    is_part_[i] = weight_with(name).has_value();
    if (is_of_activations(name) || is_of_cached_keys(name)) of_activations.push_back(i);
  }
  find_activations(of_activations);
}

void PackedWeights::look_at(std::size_t number) {
  const auto& [name, tensor] = checkpoint_.tensors[number];
  for (const PackingScheme& row : packing_schemes()) {
    if (!row.dtypes.contain(tensor.dtype()) || !name.ends_with(row.ending)) continue;
    const std::string_view base = name.substr(0, name.size() - row.ending.size());
    (name_ = base) += row.partner;
    const auto partner = Doors::number_near(checkpoint_.tensors, number, name_);
    if (!partner || !fits(row, tensor, checkpoint_.tensors[*partner].tensor)) continue;
    // Attributes that a pickle has are parts only if a class lists them.
    if (row.ending != ".qdata") is_part_[number] = is_part_[*partner] = true;
    if (!bases_.emplace(base, all_.size()).second) return;
    all_.push_back({number, base, &row, refined(row, base, tensor, checkpoint_.tensors[*partner].tensor)});
    has_modules_ = has_modules_ || row.of == PackingScheme::Of::module;
    return;
  }
}

bool PackedWeights::has(std::string_view base, std::string_view ending) {
  (name_ = base) += ending;
  return checkpoint_.contains(name_);
}

// If two schemes have the same names, shapes or other tensors tell them apart.
std::string_view PackedWeights::refined(const PackingScheme& row, std::string_view base, const Tensor& tensor,
                                        const Tensor& partner) {
  const bool are_matrices = tensor.rank() == 2 && partner.rank() == 2;
  if (row.name == "gptq" && are_matrices && tensor.shape()[1] != partner.shape()[1]) return "awq";
  if (row.name == "mlx" && has(base, ".qbiases")) return "metal";
  if (row.name == "bitnet" && partner.numel() != 1) return partner.dtype() == DType::f8_e4m3 ? "nvfp4" : "gemma";
  return row.name;
}

std::optional<std::size_t> PackedWeights::weight_with(std::string_view name) const {
  if (has_modules_ && !name.ends_with(".bias")) {
    const auto module = bases_.find(module_of(name));
    if (module != bases_.end() && is_module(module->second)) return module->second;
  }
  for (const std::string_view ending : endings_of_parameters()) {
    if (!name.ends_with(ending)) continue;
    const auto base = bases_.find(name.substr(0, name.size() - ending.size()));
    if (base != bases_.end() && !is_module(base->second)) return base->second;
  }
  return std::nullopt;
}

std::optional<std::size_t> PackedWeights::weight_of(std::size_t number) const {
  return is_part_[number] ? weight_with(checkpoint_.tensors[number].name) : std::nullopt;
}

void PackedWeights::find_activations(const std::vector<std::size_t>& likely) {
  if (likely.empty()) return;
  const StateDict& tensors = checkpoint_.tensors;
  NameViewMap<bool> modules, around;  // those that packed parameters are in, and what these modules are in
  for (const auto& [base, weight] : bases_) {
    const std::string_view module = is_module(weight) ? base : module_of(base);
    modules.emplace(module, true);
    around.emplace(module_of(module), true);
  }
  for (const std::size_t i : likely) {
    const std::string_view module = module_of(tensors[i].name);
    const bool is_inside = modules.contains(module);
    is_of_activations_[i] = is_of_activations(tensors[i].name)
                                ? is_inside || bases_.contains(module)
                                : (is_inside || around.contains(module)) && tensors[i].tensor.numel() == 1;
  }
}

std::string PackedWeights::orphan_of(std::size_t number) const {
  const auto& [name, tensor] = checkpoint_.tensors[number];
  if (is_part_[number] || is_of_activations_[number]) return {};
  const DType dtype = tensor.dtype();
  if (is_packed_dtype(dtype) && tensor.rank() >= 2) {
    const bool is_f8 = info(dtype).kind == DTypeKind::floating && info(dtype).block_bytes == 1;
    if (is_f8 && dtype != DType::f8_e8m0 && name.ends_with("weight")) return std::string(name);
    const bool is_integer = dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i32 || dtype == DType::u32;
    if (is_integer && name.ends_with(".weight")) return std::string(name);
    if (std::string weight = weight_of_codes(name); !weight.empty()) return weight;
    if (dtype == DType::u8 && name.ends_with("_scales")) return std::string(name.substr(0, name.size() - 7));
  }
  const std::string weight = weight_of_partner(name);
  if (weight.empty()) return {};
  const Tensor* floats = checkpoint_.find(weight);
  const bool is_whole =
      floats != nullptr && !is_of_4_bits(name) && is_floating(floats->dtype()) && !is_packed_dtype(floats->dtype());
  return is_whole ? std::string() : weight;
}

}  // namespace ballast
