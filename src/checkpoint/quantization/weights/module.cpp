#include "checkpoint/quantization/weights/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "kernels/cast.hpp"
#include "tensor/doors.hpp"

namespace ballast {
namespace {

constexpr std::size_t kMostSettings = 256;

std::string what_readers_ask_for(const Json& weights) {
  std::string text;
  for (const char* key : {"num_bits", "group_size", "block_structure", "strategy", "symmetric"}) {
    const Json* value = weights.find(key);
    (text += value != nullptr ? to_string(*value) : std::string()) += '\n';
  }
  return text;
}

bool fits_blocks(const Json& weights, const Shape& weight, const Shape& scale) {
  const Json* block = weights.find("block_structure");
  if (block == nullptr || !block->is_list() || block->list().size() != 2) return true;
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& size = block->list()[i];
    if (!size.is_integer() || size.number() < 1) return true;
    const std::uint64_t each = size.count(), blocks = weight[i] / each + (weight[i] % each != 0);
    if (scale.rank() != 2 || scale[i] != blocks) return false;
  }
  return true;
}

// Whether scales of a matrix have the shape that compressed-tensors' "strategy" gives them. One that is not known may
// give them any.
bool fits_strategy(const Json& weights, const Shape& weight, const Shape& scale) {
  const Json* strategy = weights.find("strategy");
  const Json* size = weights.find("group_size");
  if (strategy == nullptr || !strategy->is_text()) return true;
  const std::uint64_t count = scale.numel().value_or(0), rows = weight[0], columns = weight[1];
  if (strategy->text() == "tensor") return count == 1;
  if (strategy->text() == "channel") return count == rows && scale[0] == rows;
  if (strategy->text() == "block") return fits_blocks(weights, weight, scale);
  if (strategy->text() != "group" || size == nullptr || !size->is_integer()) return true;
  const std::uint64_t group = size->number() >= 1 ? size->count() : columns;
  const std::uint64_t groups = group == 0 ? 0 : columns / group + (columns % group != 0);
  return scale.rank() == 2 ? scale[0] == rows && scale[1] == groups : count == rows && groups == 1;
}

}  // namespace

PackedSource::PackedSource(const Checkpoint& from, const Quantization& how) : checkpoint(from), quantization(how) {
  for (const PlainValue& value : checkpoint.values) values.emplace(value.path, &value);
  for (const Composite& composite : checkpoint.composites)
    if (composite.layout.starts_with("torchao.")) composites.emplace(composite.name, &composite);
  const Json* groups = quantization.config.find("config_groups");
  if (groups == nullptr || !groups->is_object()) return;
  std::set<std::string> known;
  for (const auto& [name, group] : groups->members()) {
    const Json* weights = group.find("weights");
    if (weights == nullptr || !weights->is_object() || !known.insert(what_readers_ask_for(*weights)).second) continue;
    // Each weight is compared with all settings. There may be a group for each module, but few of them differ.
    if (weight_settings.size() == kMostSettings)
      throw Error(Errc::limit,
                  fmt::format("quantization_config has more than {} settings of weights that differ", kMostSettings))
          .in(checkpoint.target);
    weight_settings.push_back(weights);
  }
}

std::string_view PackedModule::named(std::string_view ending) const { return (source_.name = base_) += ending; }

void PackedModule::throw_missing(std::string_view ending) const { throw MissingPart{std::string(named(ending))}; }

const Tensor* PackedModule::find(std::string_view ending) {
  const auto number = Doors::number_near(checkpoint().tensors, near_, named(ending));
  if (!number) return nullptr;
  if (std::ranges::find(parts_, *number) == parts_.end()) parts_.push_back(*number);
  return &checkpoint().tensors[*number].tensor;
}

const Tensor& PackedModule::need(std::string_view ending) {
  const Tensor* found = find(ending);
  if (found == nullptr) throw_missing(ending);
  return *found;
}

std::string_view PackedModule::text(std::string_view key) const {
  const Json* value = quantization().config.find(key);
  return value != nullptr && value->is_text() ? std::string_view(value->text()) : std::string_view();
}

std::optional<std::int64_t> PackedModule::integer(std::string_view key) const {
  const Json* value = quantization().config.find(key);
  if (value == nullptr || !value->is_integer()) return std::nullopt;
  try {
    return value->integer();
  } catch (const Error&) {
    return std::nullopt;  // it does not fit 64 bits with a sign
  }
}

std::string_view PackedModule::model_type() const {
  const Json* value = quantization().model.find("model_type");
  return value != nullptr && value->is_text() ? std::string_view(value->text()) : std::string_view();
}

void PackedModule::check_weight_settings(const Shape& weight, const Tensor& scale, bool has_zero_points) const {
  const auto& settings = weight_settings();
  if (settings.empty() || weight.rank() != 2) return;
  if (std::ranges::none_of(settings, [&](const Json* of) { return fits_strategy(*of, weight, scale.shape()); }))
    complain(fmt::format("of shape {} has scales of shape {}, which fit no strategy of config_groups",
                         to_string(weight), to_string(scale.shape())));
  const auto has_zeros = [](const Json* of) {
    const Json* is_symmetric = of->find("symmetric");
    return is_symmetric != nullptr && is_symmetric->is_bool() && !is_symmetric->boolean();
  };
  if (!has_zero_points && std::ranges::all_of(settings, has_zeros)) throw_missing("_zero_point");
}

const Composite* PackedModule::composite() const {
  const auto found = source_.composites.find(base_);
  return found == source_.composites.end() ? nullptr : found->second;
}

// The layers of a decoder, by the names that most models give them.
std::uint64_t PackedModule::inputs_by_name(std::string_view module) const {
  const auto size = [&](std::string_view key) -> std::uint64_t {
    const Json* text = quantization().model.find("text_config");
    for (const Json* config : {&quantization().model, text}) {
      const Json* found = config != nullptr ? config->find(key) : nullptr;
      if (found != nullptr && found->is_integer() && found->number() > 0) return found->count();
    }
    return 0;
  };
  const std::string_view last = module.substr(module.rfind('.') + 1);
  for (const std::string_view tower : {"vision", "visual", "audio", "image"})
    if (module.find(tower) != std::string_view::npos) return 0;
  if (last == "down_proj" && module.find("shared_expert") != std::string_view::npos)
    return size("shared_expert_intermediate_size");
  if (last == "down_proj" && module.find(".experts.") != std::string_view::npos) {
    const std::uint64_t own = size("moe_intermediate_size");
    return own != 0 || size("num_experts") != 0 ? own : size("intermediate_size");
  }
  if (last == "down_proj" || last == "fc2") return size("intermediate_size");
  if (last == "o_proj") {
    const std::uint64_t width = size("head_dim");
    return width != 0 ? checked_mul(size("num_attention_heads"), width).value_or(0) : size("hidden_size");
  }
  for (const std::string_view name :
       {"q_proj", "k_proj", "v_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj", "lm_head", "fc1"})
    if (last == name) return size("hidden_size");
  return 0;
}

// The same for the outputs.
std::uint64_t PackedModule::outputs_by_name(std::string_view module) const {
  const std::string_view last = module.substr(module.rfind('.') + 1);
  const std::size_t before = module.size() - last.size();
  if (last == "gate_proj" || last == "up_proj" || last == "fc1")  // what the layer after it takes
    return inputs_by_name(std::string(module.substr(0, before)) + (last == "fc1" ? "fc2" : "down_proj"));
  if (last == "down_proj" || last == "o_proj" || last == "fc2")
    return inputs_by_name(std::string(module.substr(0, before)) + "q_proj");
  return 0;
}

const PlainValue* PackedModule::value(std::string_view ending) const {
  const auto found = source_.values.find(named(ending));
  return found == source_.values.end() ? nullptr : found->second;
}

std::int64_t PackedModule::setting(std::string_view ending) {
  if (const Tensor* tensor = find(ending)) return number(ending, *tensor);
  const PlainValue* found = value(ending);
  const auto* integer = found != nullptr ? std::get_if<std::int64_t>(&found->value) : nullptr;
  if (integer == nullptr) throw_missing(ending);
  return *integer;
}

std::vector<std::int64_t> PackedModule::setting_list(std::string_view ending) {
  constexpr std::uint64_t kMost = 8;
  std::vector<std::int64_t> list;
  if (const Tensor* tensor = find(ending)) {
    if (tensor->numel() > kMost) complain(fmt::format("has {} of {} numbers", quote(ending), tensor->numel()));
    for (std::size_t i = 0; i < tensor->numel(); ++i) list.push_back(number(ending, *tensor, i));
    return list;
  }
  for (std::size_t i = 0; i < kMost; ++i) {
    const PlainValue* found = value(fmt::format("{}.{}", ending, i));
    if (found == nullptr || !std::holds_alternative<std::int64_t>(found->value)) break;
    list.push_back(std::get<std::int64_t>(found->value));
  }
  if (list.empty()) throw_missing(ending);
  return list;
}

std::string PackedModule::setting_text(std::string_view ending) {
  constexpr std::uint64_t kMost = 256;
  if (const Tensor* tensor = find(ending)) {
    const std::vector<std::byte> read = bytes(*tensor, kMost);
    return {reinterpret_cast<const char*>(read.data()), read.size()};
  }
  const PlainValue* found = value(ending);
  const auto* text = found != nullptr ? std::get_if<std::string>(&found->value) : nullptr;
  if (text == nullptr) throw_missing(ending);
  return *text;
}

std::vector<std::byte> PackedModule::bytes(const Tensor& part, std::uint64_t at_most) const {
  if (part.nbytes() > at_most)
    complain(fmt::format("has a part of {} bytes where at most {} are known", part.nbytes(), at_most));
  std::vector<std::byte> read(static_cast<std::size_t>(part.nbytes()));
  part.read(0, read);
  return read;
}

std::int64_t PackedModule::number(std::string_view ending, const Tensor& part, std::size_t at) const {
  const DTypeInfo& type = info(part.dtype());
  const bool is_integer = type.kind == DTypeKind::signed_integer || type.kind == DTypeKind::unsigned_integer;
  if (!is_integer || type.block_elements != 1 || at >= part.numel())
    complain(fmt::format("has {} of {} {}", quote(ending), type.name, to_string(part.shape())));
  std::int64_t value = 0;
  part.read(at * type.block_bytes, std::as_writable_bytes(std::span(&value, 1)).first(type.block_bytes));
  if (type.kind == DTypeKind::signed_integer) {
    const unsigned unused = 64u - 8u * type.block_bytes;
    value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused;
  }
  return value;
}

void PackedModule::complain(const std::string& what, const std::string& hint) const {
  Error error(Errc::malformed, fmt::format("the quantized weight {} {}", quote(weight()), what));
  error.in(checkpoint().target);
  if (!hint.empty()) error.hint(hint);
  throw error;
}

void PackedModule::refuse(const std::string& what) const {
  throw Error(Errc::unsupported, fmt::format("the quantized weight {} {}", quote(weight()), what))
      .in(checkpoint().target)
      .hint("the tensors can be copied as they are, without dequantizing them");
}

void PackedModule::check_shape(std::string_view ending, const Tensor& part, const Shape& shape) const {
  if (part.shape() == shape) return;
  complain(
      fmt::format("has {} of shape {}, but {} would fit", quote(ending), to_string(part.shape()), to_string(shape)));
}

void PackedModule::check_numbers(std::string_view ending, const Tensor& part) const {
  const DTypeInfo& type = info(part.dtype());
  const bool is_number = part.dtype() != DType::boolean && kernels::can_cast(part.dtype(), DType::f32);
  if (type.block_elements == 1 && is_number) return;
  complain(fmt::format("has {} of {}, which are not numbers", quote(ending), type.name));
}

}  // namespace ballast
