// Tensors that are listed as several: quantized, sparse, nested, and those of classes that wrap others.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "formats/torch/arguments.hpp"
#include "formats/torch/calls.hpp"
#include "formats/torch/mapping.hpp"
#include "formats/torch/rebuild.hpp"

namespace ballast::torch {

using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

Rebuilt Rebuilder::quantized(const RebuildCall& call) {
  const Arguments arguments(graph_, call.arguments, call.name);
  arguments.require(5);
  const Stored stored = storage_of(arguments[0], call.name);
  if (!stored.dtype) throw Error(Errc::unsupported, "a quantized tensor in an untyped storage");
  Rebuilt rebuilt{{{"", view(stored, *stored.dtype, arguments, 1)}}, Composite{}};
  Composite& composite = *rebuilt.composite;
  composite.layout = "quantized";
  composite.shape = rebuilt.parts[0].tensor.shape();
  composite.parts = {""};

  const Arguments quantizer(graph_, arguments[4], "quantizer");
  quantizer.require(1);
  const auto scheme = global_of(graph_, quantizer[0]);
  const std::string_view kind = scheme ? scheme->name : std::string_view();
  if (kind.starts_with("per_tensor_")) {
    composite.scale = quantizer.real(1, "scale");
    composite.zero_point = quantizer.integer(2, "zero point");
    return rebuilt;
  }
  if (!kind.starts_with("per_channel_")) throw Error(Errc::unsupported, "a quantizer of an unknown scheme");
  composite.axis = static_cast<std::size_t>(quantizer.count(3, "axis of a quantizer"));
  if (*composite.axis >= composite.shape.rank()) quantizer.complain(3, "the axis is not one of the tensor's");
  rebuilt.parts.push_back({"scales", numbers(quantizer[1], "scales")});
  rebuilt.parts.push_back({"zero_points", numbers(quantizer[2], "zero points")});
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (rebuilt.parts[i].tensor.numel() != composite.shape[*composite.axis])
      quantizer.complain(i, "there are not as many of them as channels");
    composite.parts.push_back(rebuilt.parts[i].suffix);
  }
  return rebuilt;
}

Rebuilt Rebuilder::sparse(const RebuildCall& call) {
  struct Layout {
    std::string_view name, compressed, plain;
  };
  constexpr std::array kLayouts = {
      Layout{"sparse_coo", "indices", ""},
      Layout{"sparse_csr", "crow_indices", "col_indices"},
      Layout{"sparse_csc", "ccol_indices", "row_indices"},
      Layout{"sparse_bsr", "crow_indices", "col_indices"},
      Layout{"sparse_bsc", "ccol_indices", "row_indices"},
  };
  const Arguments arguments(graph_, call.arguments, call.name);
  arguments.require(2);
  // torch.serialization._get_layout("torch.sparse_coo"), or the layout itself
  std::string name;
  if (graph_.kind(arguments[0]) == Kind::object) {
    const Arguments layout(graph_, graph_.object(arguments[0]).arguments, "layout");
    name = layout.text(0, "layout");
  } else if (const auto global = global_of(graph_, arguments[0])) {
    name = global->name;
  }
  if (name.starts_with("torch.")) name.erase(0, 6);
  const auto layout = std::find_if(kLayouts.begin(), kLayouts.end(), [&](const Layout& l) { return l.name == name; });
  if (layout == kLayouts.end()) throw Error(Errc::unsupported, fmt::format("a tensor of the layout {}", quote(name)));

  const Arguments data(graph_, arguments[1], "sparse tensor");
  const std::size_t indices = layout->plain.empty() ? 1 : 2;
  data.require(indices + 2);
  Rebuilt rebuilt{{}, Composite{}};
  rebuilt.parts.push_back({std::string(layout->compressed), plain_tensor(data[0], "indices")});
  if (indices == 2) rebuilt.parts.push_back({std::string(layout->plain), plain_tensor(data[1], "indices")});
  rebuilt.parts.push_back({"values", plain_tensor(data[indices], "values")});
  rebuilt.composite->layout = name;
  const auto sizes = data.counts(indices + 1, "shape of a sparse tensor");
  if (sizes.size() > limits_.max_rank)
    data.complain(indices + 1, fmt::format("the sparse tensor has {} dimensions", sizes.size()));
  rebuilt.composite->shape = Shape(sizes);
  for (const auto& part : rebuilt.parts) rebuilt.composite->parts.push_back(part.suffix);
  return rebuilt;
}

// A tensor of a class that keeps its values in attributes, which are part of its state: it has a shape and a dtype, but
// no data here. If the class quantizes (torchao), the tensors among its attributes are listed as its parts.
Rebuilt Rebuilder::wrapped(const RebuildCall& call) {
  Rebuilt rebuilt{{{"", meta(call, 1)}}, std::nullopt};
  const auto wrapper = global_of(graph_, Arguments(graph_, call.arguments, call.name)[0]);
  if (!wrapper || !wrapper->module.starts_with("torchao.")) return rebuilt;
  rebuilt.composite.emplace();
  Composite& composite = *rebuilt.composite;
  composite.layout = fmt::format("{}.{}", wrapper->module, wrapper->name);
  composite.shape = rebuilt.parts[0].tensor.shape();
  composite.dtype = rebuilt.parts[0].tensor.dtype();
  std::vector<Rebuilt::Part> attributes = attribute_tensors(call.state);
  if (!attributes.empty()) rebuilt.parts = std::move(attributes);
  for (const Rebuilt::Part& part : rebuilt.parts) composite.parts.push_back(part.suffix);
  const NodeId swizzled = call.state == kNoNode ? kNoNode : find_key(graph_, call.state, "is_swizzled_scales");
  if (swizzled != kNoNode && graph_.kind(swizzled) == Kind::boolean && graph_[swizzled].integer != 0)
    composite.layout += " with swizzled scales";
  return rebuilt;
}

// The plain tensors of a dict of attributes.
std::vector<Rebuilt::Part> Rebuilder::attribute_tensors(NodeId state) {
  constexpr std::size_t kMostAttributes = 64;
  std::vector<Rebuilt::Part> parts;
  if (state == kNoNode || graph_.kind(state) != Kind::dict || graph_.length(state) > kMostAttributes) return parts;
  NodeId key = kNoNode;  // keys and values follow each other
  for (const NodeId node : graph_.pairs(state)) {
    if (key == kNoNode) {
      key = node;
      continue;
    }
    const NodeId name = std::exchange(key, kNoNode);
    if (graph_.kind(name) != Kind::text || graph_.kind(node) != Kind::object) continue;
    const RebuildCall made = rebuild_call_of(graph_, node);
    if (made.is_of_storage()) parts.push_back({std::string(graph_.chars(name)), one_tensor(made)});
  }
  return parts;
}

// Rows of one buffer, each with a shape of its own. The sizes, strides and offsets are the only data that opening
// reads.
Rebuilt Rebuilder::nested_tensor(const RebuildCall& call) {
  const Arguments arguments(graph_, call.arguments, call.name);
  arguments.require(4);
  const Tensor buffer = plain_tensor(arguments[0], "buffer");
  const auto read = [&](std::size_t i) {
    const Tensor tensor = plain_tensor(arguments[i], "sizes");
    if (tensor.dtype() != DType::i64) throw Error(Errc::malformed, "the sizes of a nested tensor are no I64");
    // There are about as many numbers as rows; a stride of 0 or a compressed record could make them too many.
    constexpr std::uint64_t kMostNumbers = 1'000'000;
    if (tensor.numel() > kMostNumbers) throw Error(Errc::limit, "a nested tensor has too many parts");
    std::vector<std::uint64_t> values(static_cast<std::size_t>(tensor.numel()));
    tensor.read(0, std::as_writable_bytes(std::span(values)));
    if (std::any_of(values.begin(), values.end(), [](std::uint64_t v) { return v > INT64_MAX; }))
      throw Error(Errc::malformed, "the sizes of a nested tensor are negative");
    return std::pair(std::move(values), tensor.shape());
  };
  const auto [sizes, layout] = read(1);
  const auto [steps, steps_layout] = read(2);
  const auto [offsets, offsets_layout] = read(3);
  const bool fits_together = layout.rank() == 2 && steps_layout == layout && offsets.size() == layout[0];
  if (!fits_together || layout[1] > limits_.max_rank)
    throw Error(Errc::malformed, "the sizes, strides and offsets of a nested tensor do not go together");

  Rebuilt rebuilt{{}, Composite{}};
  rebuilt.composite->layout = "nested";
  const auto rank = static_cast<std::size_t>(layout[1]);
  const std::uint64_t width = info(buffer.dtype()).block_bytes;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    Shape shape(std::span<const std::uint64_t>(sizes).subspan(i * rank, rank));
    Strides strides(steps.begin() + static_cast<std::ptrdiff_t>(i * rank),
                    steps.begin() + static_cast<std::ptrdiff_t>((i + 1) * rank));
    const auto reached = reach(shape, strides);
    const auto end = reached ? checked_add(offsets[i], *reached) : std::nullopt;
    if (!buffer.is_contiguous() || !end || *end > buffer.numel())
      throw Error(Errc::malformed, fmt::format("part {} of a nested tensor reaches outside its buffer", i));
    rebuilt.parts.push_back({std::to_string(i), Tensor(buffer.dtype(), std::move(shape), std::move(strides),
                                                       buffer.storage(), buffer.offset() + offsets[i] * width)});
    rebuilt.composite->parts.push_back(rebuilt.parts.back().suffix);
  }
  return rebuilt;
}

}  // namespace ballast::torch
