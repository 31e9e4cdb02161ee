// torchao's tensors: a class keeps the data of a weight in attributes, which a file has as tensors of their own.
//
//   in a safetensors file           in a pickle       holds
//   M._weight_qdata                 M.weight.qdata    the elements: integers, FP8, or FP4 in bytes
//   M._weight_scale                 M.weight.scale    scales: one, one a row, or one a block
//   M._weight_zero_point            …                 integers that are taken away first
//   M._weight_per_tensor_scale      …                 NVFP4: a number that multiplies the scales
//   metadata "M.weight": JSON       the class         which class it is, and what it says of itself
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

enum class Step : std::uint8_t { once, twice };  // whether the difference from the zero point is rounded by itself

struct Class {
  std::string_view name;
  Step step;
  bool has_integers, may_be_fp4;
};
constexpr std::array kClasses = {
    Class{"Int8Tensor", Step::once, true, false},
    Class{"Float8Tensor", Step::once, false, false},
    Class{"IntxUnpackedToInt8Tensor", Step::twice, true, false},
    Class{"MXTensor", Step::once, false, true},
    Class{"NVFP4Tensor", Step::once, false, true},
};

// What a file says of a weight.
struct Wrapper {
  std::string type;
  DType dtype = DType::bf16;
  bool is_swizzled = false;
  std::string elements{};              // the dtype of the elements of an MXTensor, if it says it
  std::vector<std::uint64_t> block{};  // values that share a scale: by dimensions, or one number for the last
  std::vector<std::uint64_t> shape{};
  std::vector<std::string> attributes{};
};

std::string last_component(std::string_view text) { return std::string(text.substr(text.rfind('.') + 1)); }

DType float_dtype(const PackedModule& module, std::string_view word) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    if (info(dtype).torch_name == word) return dtype;
  module.complain(fmt::format("has the dtype {}", quote(word)));
}

const Json* inside(const Json* json, std::string_view key) { return json != nullptr ? json->find(key) : nullptr; }

// All that a file lists must be there. Another attribute would change what the weight is, or what its layer computes.
void check_attributes(PackedModule& module, const Wrapper& wrapper, std::string_view mark) {
  constexpr std::string_view kKnown[] = {"qdata", "scale", "zero_point", "per_tensor_scale"};
  constexpr std::string_view kOfActivations = "act_per_tensor_scale";
  for (const std::string& name : wrapper.attributes) {
    if (name == kOfActivations) continue;
    if (std::ranges::find(kKnown, name) == std::end(kKnown))
      module.refuse(fmt::format("is a {} of torchao with {}", wrapper.type, quote(name)));
    module.need(std::string(mark) + name);
  }
}

// A number, or a list of them; nothing if there is neither.
std::vector<std::uint64_t> sizes_at(const Json& data, std::string_view key) {
  const Json* found = data.find(key);
  if (found == nullptr) return {};
  if (found->is_integer()) return {found->count()};
  std::vector<std::uint64_t> sizes;
  if (found->is_list())
    for (const Json& size : found->list()) sizes.push_back(size.count());
  return sizes;
}

// As many scales as there are blocks.
void check_blocks(const PackedModule& module, const Wrapper& wrapper, const Shape& shape, const Tensor& scale) {
  if (!wrapper.shape.empty() && !std::ranges::equal(wrapper.shape, shape))
    module.complain(
        fmt::format("of shape {} is described as one of shape [{}]", to_string(shape), fmt::join(wrapper.shape, ", ")));
  if (wrapper.block.empty()) return;
  const std::size_t rank = shape.rank(), first = rank - std::min(rank, wrapper.block.size());
  bool fits = wrapper.block.size() <= rank && std::ranges::find(wrapper.block, 0u) == wrapper.block.end();
  std::uint64_t all = 1;
  for (std::size_t i = 0; fits && i < rank; ++i) {
    const std::uint64_t block = i < first ? 1 : wrapper.block[i - first];
    const std::uint64_t blocks = shape[i] / block + (shape[i] % block != 0);
    all *= blocks;  // fits: no more than there are elements
    fits = scale.rank() != rank || scale.shape()[i] == blocks;
  }
  fits = fits && scale.numel() == all;
  if (!fits)
    module.complain(fmt::format("of shape {} has scales of shape {} for blocks of [{}]", to_string(shape),
                                to_string(scale.shape()), fmt::join(wrapper.block, ", ")));
}

Wrapper described_by(const PackedModule& module, const std::string& text) {
  try {
    const Json json = Json::parse_python(text);
    Wrapper wrapper{.type = json.at("_type").text()};
    const Json& data = json.at("_data");
    for (const char* key : {"dtype", "orig_dtype"}) {
      const Json* dtype = inside(inside(&data, key), "_data");
      if (dtype != nullptr && dtype->is_text()) wrapper.dtype = float_dtype(module, dtype->text());
    }
    const Json* elements = data.find("elem_dtype");  // FP6 has no dtype of torch's: its name is a text
    if (elements != nullptr && elements->is_object()) elements = elements->find("_data");
    if (elements != nullptr && elements->is_text()) wrapper.elements = elements->text();
    wrapper.block = sizes_at(data, "block_size");
    wrapper.shape = sizes_at(data, "shape");
    if (const Json* names = json.find("_tensor_data_names"))
      for (const Json& name : names->list()) wrapper.attributes.push_back(name.text());
    const Json* swizzled = data.find("is_swizzled_scales");
    wrapper.is_swizzled = swizzled != nullptr && !(*swizzled == Json(false));
    return wrapper;
  } catch (const Error& error) {
    if (error.message().starts_with("the quantized weight")) throw;
    module.complain("is described by metadata that cannot be read: " + error.message());
  }
}

Wrapper wrapper_of(PackedModule& module) {
  if (const Composite* found = module.composite()) {
    const Composite& composite = *found;
    const std::string type = last_component(composite.layout);
    const auto end = type.find(' ');  // what is special about it follows
    Wrapper wrapper{.type = type.substr(0, end),
                    .dtype = composite.dtype.value_or(DType::bf16),
                    .is_swizzled = end != std::string::npos};
    for (const std::string& part : composite.parts) wrapper.attributes.push_back(last_component(part));
    return wrapper;
  }
  const auto found = module.checkpoint().metadata.find(module.weight());
  if (found == module.checkpoint().metadata.end()) throw MissingPart{"the metadata " + std::string(module.weight())};
  return described_by(module, found->second);
}

}  // namespace

Tensor read_torchao(PackedModule& module) {
  const bool is_attribute = module.find(".qdata") != nullptr;
  const std::string mark = is_attribute ? "." : "_";
  const Tensor data = module.need(mark + "qdata"), scale = module.need(mark + "scale");
  const Wrapper wrapper = wrapper_of(module);
  const auto row = std::ranges::find(kClasses, std::string_view(wrapper.type), &Class::name);
  if (row == kClasses.end())
    module.refuse(fmt::format("is a {} of torchao, whose layout is made for a kernel", wrapper.type));
  if (wrapper.is_swizzled) module.refuse(fmt::format("is a {} of torchao with swizzled scales", wrapper.type));

  const bool is_known =
      wrapper.elements.empty() || wrapper.elements.starts_with("float8_") || wrapper.elements.starts_with("float4_");
  if (!is_known) module.refuse(fmt::format("is a {} of torchao with elements of {}", wrapper.type, wrapper.elements));

  check_attributes(module, wrapper, mark);
  const bool is_float = info(data.dtype()).kind == DTypeKind::floating;
  if (row->has_integers ? data.dtype() != DType::i8 : !is_float && !(row->may_be_fp4 && data.dtype() == DType::u8))
    module.complain(fmt::format("is a {} of torchao with elements of {}", wrapper.type, name(data.dtype())));
  const bool is_fp4 = row->may_be_fp4 && (data.dtype() == DType::u8 || data.dtype() == DType::f4);
  const Shape shape = is_fp4 && data.dtype() == DType::u8 ? widened(module, data.shape(), 2) : data.shape();
  PackedRows rows{.codes = is_fp4 ? fp4_codes() : element_codes(data.dtype())};
  rows.dtype = wrapper.dtype;
  check_blocks(module, wrapper, shape, scale);
  rows.scale = numbers_by_shape(module, mark + "scale", scale, shape);
  if (scale.dtype() == DType::u8 && wrapper.type == "MXTensor") rows.scale.exponent_bias = 127;
  if (const Tensor* all = module.find(mark + "per_tensor_scale")) {
    if (all->numel() != 1) module.complain(fmt::format("has a scale for all of shape {}", to_string(all->shape())));
    module.check_numbers(mark + "per_tensor_scale", *all);
    rows.scale.multiplier = *all;
  }
  if (const Tensor* zero = module.find(mark + "zero_point")) {
    module.check_shape(mark + "zero_point", *zero, scale.shape());
    rows.zero = numbers_by_shape(module, mark + "zero_point", *zero, shape);
    if (row->step == Step::twice) rows.rounded = wrapper.dtype;
  }
  return rows_of(module, data, shape, std::move(rows));
}

}  // namespace ballast
