#include "checkpoint/agreements/composites.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/limits.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "core/json_string.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast {
namespace {

constexpr std::string_view kCompositesKey = "ballast.composites";

struct Carrier {
  DType dtype, stored_as;
};
constexpr std::array kCarriers = {
    Carrier{DType::qi8, DType::i8},   Carrier{DType::qu8, DType::u8},   Carrier{DType::qi32, DType::i32},
    Carrier{DType::qu4x2, DType::u8}, Carrier{DType::qu2x4, DType::u8},
};

const Carrier* carrier_of(DType dtype) {
  const auto found =
      std::find_if(kCarriers.begin(), kCarriers.end(), [&](const Carrier& c) { return c.dtype == dtype; });
  return found == kCarriers.end() ? nullptr : &*found;
}

// The same bytes as another dtype, with the shape that they have then.
Tensor carried(const Tensor& tensor, DType dtype, const Shape& shape) {
  if (tensor.is_contiguous()) return Tensor(dtype, shape, tensor.storage(), tensor.offset());
  return Tensor(dtype, shape, gathered_storage(tensor));
}

// Elements that share a byte are counted as one; they may reach over the end of a row, so the shape is flat then.
Shape carrier_shape(const Tensor& tensor) {
  const std::uint64_t packed = info(tensor.dtype()).block_elements;
  return packed == 1 ? tensor.shape() : Shape{tensor.nbytes()};
}

std::string json_string(std::string_view text) {
  std::string quoted;
  append_json_string(quoted, text);
  return quoted;
}

std::string to_json(const Composite& composite, const Checkpoint& checkpoint) {
  std::string text = "{\"name\":" + json_string(composite.name) + ",\"layout\":" + json_string(composite.layout);
  text += fmt::format(",\"shape\":[{}],\"parts\":[", fmt::join(composite.shape, ","));
  for (std::size_t i = 0; i < composite.parts.size(); ++i)
    text += (i == 0 ? "" : ",") + json_string(composite.parts[i]);
  text += "]";
  if (composite.layout == "quantized") {
    if (const Tensor* integers = checkpoint.find(composite.parts.at(0)))
      text += fmt::format(",\"dtype\":\"{}\"", name(integers->dtype()));
    if (composite.axis)
      text += fmt::format(",\"axis\":{}", *composite.axis);
    else
      text += fmt::format(",\"scale\":{},\"zero_point\":{}", composite.scale, composite.zero_point);
  }
  return text + "}";
}

struct Parsed {
  Composite composite;
  std::optional<DType> dtype;
};

// Throws Error for anything that is not as to_json writes it.
Parsed from_json(const Json& element) {
  Parsed parsed;
  Composite& composite = parsed.composite;
  composite.name = element.at("name").text();
  composite.layout = element.at("layout").text();
  std::vector<std::uint64_t> dims;
  for (const Json& dim : element.at("shape").list()) dims.push_back(dim.count());
  if (dims.size() > Limits{}.max_rank) throw Error(Errc::limit, "too many dimensions");
  composite.shape = Shape(dims);
  for (const Json& part : element.at("parts").list()) composite.parts.push_back(part.text());
  if (const Json* dtype = element.find("dtype")) parsed.dtype = dtype_from_name(dtype->text());
  if (const Json* scale = element.find("scale")) composite.scale = scale->number();
  if (const Json* zero = element.find("zero_point")) composite.zero_point = zero->integer();
  if (const Json* axis = element.find("axis")) composite.axis = static_cast<std::size_t>(axis->count());
  return parsed;
}

// Whether every part is there, and a quantized tensor has as many integers as elements.
bool agrees(const Parsed& parsed, const Checkpoint& checkpoint) {
  const Composite& composite = parsed.composite;
  const auto is_there = [&](const std::string& part) { return checkpoint.contains(part); };
  if (composite.parts.empty() || !std::all_of(composite.parts.begin(), composite.parts.end(), is_there)) return false;
  if (composite.layout != "quantized") return true;
  const Carrier* carrier = parsed.dtype ? carrier_of(*parsed.dtype) : nullptr;
  const Tensor& integers = checkpoint.at(composite.parts[0]);
  const auto count = composite.shape.numel();
  if (composite.axis && *composite.axis >= composite.shape.rank()) return false;
  return carrier && integers.dtype() == carrier->stored_as && count &&
         bytes_of(carrier->dtype, *count) == integers.nbytes();
}

}  // namespace

Checkpoint fold_composites(Checkpoint checkpoint) {
  std::string text;
  for (const Composite& composite : checkpoint.composites) {
    const auto is_there = [&](const std::string& part) { return checkpoint.contains(part); };
    // A selection may have removed a part: the parts that are left are plain tensors.
    if (!std::all_of(composite.parts.begin(), composite.parts.end(), is_there)) continue;
    text += (text.empty() ? "[" : ",") + to_json(composite, checkpoint);
  }
  if (!text.empty()) checkpoint.metadata[std::string(kCompositesKey)] = text + "]";
  for (const auto& [name, tensor] : StateDict(checkpoint.tensors)) {
    if (const Carrier* carrier = carrier_of(tensor.dtype()))
      checkpoint.tensors.replace(name, carried(tensor, carrier->stored_as, carrier_shape(tensor)));
  }
  checkpoint.composites.clear();
  return checkpoint;
}

Checkpoint unfold_composites(Checkpoint checkpoint) {
  const auto entry = checkpoint.metadata.find(kCompositesKey);
  if (entry == checkpoint.metadata.end()) return checkpoint;
  std::vector<Parsed> all;
  try {
    const Json root = Json::parse(entry->second);
    for (const Json& element : root.list()) all.push_back(from_json(element));
  } catch (const Error&) {
    all.clear();
  }
  const bool is_good = !all.empty() && std::all_of(all.begin(), all.end(),
                                                   [&](const Parsed& parsed) { return agrees(parsed, checkpoint); });
  if (!is_good) {
    checkpoint.notes.push_back({checkpoint.target, "the metadata \"ballast.composites\" does not fit the tensors"});
    return checkpoint;
  }
  checkpoint.metadata.erase(entry);
  for (Parsed& parsed : all) {
    if (parsed.composite.layout == "quantized") {
      const std::string& integers = parsed.composite.parts[0];
      checkpoint.tensors.replace(integers, carried(checkpoint.at(integers), *parsed.dtype, parsed.composite.shape));
    }
    checkpoint.composites.push_back(std::move(parsed.composite));
  }
  return checkpoint;
}

}  // namespace ballast
