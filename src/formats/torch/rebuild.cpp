#include "formats/torch/rebuild.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/checked.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/pickle/joblib.hpp"
#include "formats/torch/arguments.hpp"
#include "formats/torch/calls.hpp"
#include "formats/torch/mapping.hpp"
#include "formats/torch/numpy.hpp"
#include "formats/torch/pickled_bytes.hpp"
#include "formats/torch/signs.hpp"
#include "formats/torch/types.hpp"

namespace ballast::torch {
namespace {

using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

enum class Function : std::uint8_t {
  none,
  tensor,            // (storage, offset, size, stride)
  tensor_v2,         // (storage, offset, size, stride, requires_grad, hooks [, metadata])
  tensor_v3,         // (storage, offset, size, stride, requires_grad, hooks, dtype [, metadata])
  first_argument,    // of a function that only adds to a tensor: (data, …)
  first_of_state,    // the same, or the first item of a state: a Parameter or Variable of the years before 0.4
  from_type,         // (function, class, arguments, state)
  qtensor,           // (storage, offset, size, stride, quantizer, requires_grad, hooks)
  sparse,            // (layout, (indices, values, size))
  meta,              // (dtype, size, stride, requires_grad)
  wrapper_subclass,  // (class, dtype, size, stride, …)
  nested,            // (buffer, sizes, strides, offsets)
  legacy_class,      // built by a state (storage, offset, size, stride)
  numpy,             // an array
};

struct Known {
  std::string_view module, name;
  Function function;
};

// clang-format off
constexpr std::array kFunctions = {
    Known{"torch._utils", "_rebuild_tensor_v2", Function::tensor_v2},
    Known{"torch._utils", "_rebuild_parameter", Function::first_argument},
    Known{"torch._utils", "_rebuild_tensor", Function::tensor},
    Known{"torch._utils", "_rebuild_tensor_v3", Function::tensor_v3},
    Known{"torch._utils", "_rebuild_parameter_with_state", Function::first_argument},
    Known{"torch._utils", "_rebuild_qtensor", Function::qtensor},
    Known{"torch._utils", "_rebuild_sparse_tensor", Function::sparse},
    Known{"torch._utils", "_rebuild_sparse_csr_tensor", Function::sparse},
    Known{"torch._utils", "_rebuild_meta_tensor_no_storage", Function::meta},
    Known{"torch._utils", "_rebuild_wrapper_subclass", Function::wrapper_subclass},
    Known{"torch._utils", "_rebuild_nested_tensor", Function::nested},
    Known{"torch._utils", "_rebuild_device_tensor_from_numpy", Function::first_argument},
    Known{"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", Function::first_argument},
    Known{"torch._utils", "_rebuild_xla_tensor", Function::first_argument},
    Known{"torch._tensor", "_rebuild_from_type_v2", Function::from_type},
    Known{"torch._tensor", "_rebuild_from_type", Function::from_type},
    Known{"torch.nn.parameter", "Parameter", Function::first_of_state},
    Known{"torch.nn.parameter", "Buffer", Function::first_of_state},
    Known{"torch.autograd.variable", "Variable", Function::first_of_state},
};
// clang-format on

Function function_of(const Callee& callee) {
  for (const Known& known : kFunctions) {
    if (callee.is(known.module, known.name)) return known.function;
  }
  if (callee.module.starts_with("numpy.") || callee.module == pickle::kArrayWrapperModule) return Function::numpy;
  if (tensor_class(callee.module, callee.name)) return Function::legacy_class;
  return Function::none;
}

// Honest files do not wrap a tensor deeper than this; deeper wrappers may go round in a circle.
constexpr int kMostWrappers = 16;

Strides to_strides(const std::vector<std::uint64_t>& counts) {
  return {counts.begin(), counts.end()};  // counts() lets nothing through that does not fit
}

}  // namespace

// A function with its arguments, without the wrappers around it.
struct Rebuilder::Call {
  NodeId node = kNoNode;       // the object, for its state and for complaints
  NodeId arguments = kNoNode;  // a tuple
  Function function = Function::none;
  std::string_view name;
  NodeId state = kNoNode;  // the attributes that a wrapper was given beside its arguments
};

Rebuilder::Call Rebuilder::call_of(NodeId node) const {
  const auto callee = callee_of(graph_, node);
  if (!callee) return {};
  return {node, graph_.object(node).arguments, function_of(*callee), callee->name, kNoNode};
}

// Goes from a call that wraps a tensor to the call that it wraps. Returns false if there is nothing to follow.
bool Rebuilder::follow(Call& call) const {
  NodeId next = kNoNode;
  if (call.function == Function::first_argument) {
    const Arguments arguments(graph_, call.arguments, call.name);
    arguments.require(1);
    next = arguments[0];
  } else if (call.function == Function::first_of_state) {
    const NodeId state = graph_.object(call.node).state;
    next = first_argument(graph_, call.node);
    const bool is_built = state != kNoNode && graph_.kind(state) == Kind::tuple && graph_.length(state) != 0;
    if (next == kNoNode && is_built) next = *graph_.items(state).begin();
    if (next == kNoNode) throw Error(Errc::unsupported, fmt::format("a {} without a tensor", call.name));
  } else if (call.function == Function::from_type) {
    const Arguments arguments(graph_, call.arguments, call.name);
    arguments.require(3);
    const auto inner = global_of(graph_, arguments[0]);
    if (!inner) throw Error(Errc::unsupported, "a tensor rebuilt by something that is no global");
    call = {call.node, arguments[2], function_of(*inner), inner->name, arguments.has(3) ? arguments[3] : kNoNode};
    return true;
  } else {
    return false;
  }
  call = graph_.kind(next) == Kind::object ? call_of(next) : Call{next, kNoNode, Function::none, {}, kNoNode};
  return true;
}

std::optional<Rebuilt> Rebuilder::rebuild(NodeId node) try {
  if (graph_.kind(node) == Kind::persistent) {
    if (auto tensor = storages_.find_tensor(graph_, node)) return Rebuilt{{{"", std::move(*tensor)}}, std::nullopt};
    const auto stored = storages_.find(graph_, node);
    if (!stored) return std::nullopt;
    const DType dtype = stored->dtype.value_or(DType::u8);  // a bare storage is a tensor of rank 1
    const std::uint64_t count = stored->size_bytes / info(dtype).block_bytes * info(dtype).block_elements;
    return Rebuilt{{{"", Tensor(dtype, {count}, stored->storage, stored->offset)}}, std::nullopt};
  }
  Call call = call_of(node);
  if (call.function == Function::none) return std::nullopt;
  for (int wrappers = 0; follow(call); ++wrappers) {
    if (wrappers == kMostWrappers) throw Error(Errc::malformed, "a tensor is wrapped in too many others");
  }
  if (call.node != kNoNode && graph_.kind(call.node) == Kind::persistent) {
    auto tensor = storages_.find_tensor(graph_, call.node);
    if (!tensor) throw Error(Errc::unsupported, "a parameter whose data is no tensor");
    return Rebuilt{{{"", std::move(*tensor)}}, std::nullopt};
  }
  if (call.function == Function::none) throw Error(Errc::unsupported, "a tensor that is made of no tensor");
  if (call.function == Function::numpy) {
    const auto array = pickled_numpy_array(graph_, call.node, limits_);
    if (!array || !array->is_numeric()) return std::nullopt;
    return Rebuilt{{{"", this->array(*array)}}, std::nullopt};
  }
  if (call.function == Function::legacy_class && graph_.object(call.node).state == kNoNode) return std::nullopt;
  return rebuild_call(call);
} catch (Error& error) {
  throw error.at_byte(graph_[node].offset);
}

Rebuilt Rebuilder::rebuild_call(const Call& call) {
  switch (call.function) {
    case Function::qtensor: return quantized(call);
    case Function::sparse: return sparse(call);
    case Function::nested: return nested_tensor(call);
    case Function::wrapper_subclass: return wrapped(call);
    default: return {{{"", one_tensor(call)}}, std::nullopt};
  }
}

// Rebuilds a call that gives one tensor and takes no other tensors.
Tensor Rebuilder::one_tensor(const Call& call) {
  constexpr std::size_t kNone = 99;
  switch (call.function) {
    case Function::tensor: return tensor_of(call, kNone, kNone);
    case Function::tensor_v2: return tensor_of(call, kNone, 6);
    case Function::tensor_v3: return tensor_of(call, 6, 7);
    case Function::meta: return meta(call, 0);
    case Function::legacy_class: return legacy_tensor(call);
    default: throw Error(Errc::unsupported, fmt::format("{} inside a tensor", call.name));
  }
}

// The arguments from `first` on are an offset, a size and strides, in elements.
Tensor Rebuilder::view(const Stored& stored, DType dtype, const Arguments& arguments, std::size_t first) const {
  std::uint64_t offset = arguments.count(first, "offset of a tensor");
  auto sizes = arguments.counts(first + 1, "shape of a tensor");
  auto steps = arguments.counts(first + 2, "strides of a tensor");
  if (sizes.size() > limits_.max_rank) {
    arguments.complain(first + 1, fmt::format("the tensor has {} dimensions, more than the {} allowed", sizes.size(),
                                              limits_.max_rank));
  }
  if (sizes.size() != steps.size()) arguments.complain(first + 2, "the shape and the strides differ in length");

  const DTypeInfo& type = info(dtype);
  if (counts_bytes_in_shapes(dtype)) {
    // We count logical elements, torch counts bytes: the last dimension holds the elements that share a byte.
    const bool is_dense = sizes.empty() || steps.back() == 1 || sizes.back() <= 1;
    if (!is_dense || sizes.empty()) throw Error(Errc::unsupported, fmt::format("a strided view of {}", type.name));
    const auto scaled = [&](std::uint64_t n) { return fits(checked_mul(n, type.block_elements), "the shape"); };
    sizes.back() = scaled(sizes.back());
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) steps[i] = scaled(steps[i]);
    steps.back() = 1;
    offset = scaled(offset);
  }
  try {
    return view_of(stored, dtype, offset, Shape(sizes), to_strides(steps));
  } catch (Error& error) {
    throw error.at_byte(graph_[arguments[first]].offset);
  }
}

Tensor Rebuilder::tensor_of(const Call& call, std::size_t dtype_argument, std::size_t metadata_argument) {
  const Arguments arguments(graph_, call.arguments, call.name);
  arguments.require(4);
  const Stored stored = storage_of(arguments[0], call.name);
  std::optional<DType> dtype = stored.dtype;
  if (arguments.has(dtype_argument)) {
    const auto global = global_of(graph_, arguments[dtype_argument]);
    dtype = global ? dtype_global(global->module, global->name) : std::nullopt;
    if (!dtype) {
      throw Error(Errc::unsupported, global ? fmt::format("a tensor of the unknown dtype {}", quote(global->name))
                                            : std::string("a tensor whose dtype is no global"));
    }
  }
  Tensor tensor = view(stored, dtype.value_or(DType::u8), arguments, 1);
  if (!arguments.has(metadata_argument)) return tensor;
  constexpr std::uint64_t kMostMetadata = 16;  // torch writes two keys; they are searched for every such tensor
  const NodeId metadata = arguments[metadata_argument];
  if (graph_.kind(metadata) == Kind::object || graph_.length(metadata) > kMostMetadata)
    arguments.complain(metadata_argument, "the metadata of a tensor is no short dict");
  const auto is_set = [&](std::string_view key) {
    const NodeId flag = find_key(graph_, metadata, key);
    return flag != kNoNode && graph_.kind(flag) == Kind::boolean && graph_[flag].integer != 0;
  };
  return with_signs(std::move(tensor), is_set("conj"), is_set("neg"));
}

// torch.FloatTensor(), then BUILD (storage, offset, size, stride); Python 2 also pickled lists.
Tensor Rebuilder::legacy_tensor(const Call& call) {
  const Arguments state(graph_, graph_.object(call.node).state, call.name);
  state.require(4);
  const Stored stored = storage_of(state[0], call.name);
  return view(stored, stored.dtype.value_or(DType::u8), state, 1);
}

Rebuilt Rebuilder::quantized(const Call& call) {
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

Rebuilt Rebuilder::sparse(const Call& call) {
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
Rebuilt Rebuilder::wrapped(const Call& call) {
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
    const Call made = call_of(node);
    if (made.function == Function::tensor || made.function == Function::tensor_v2 ||
        made.function == Function::tensor_v3)
      parts.push_back({std::string(graph_.chars(name)), one_tensor(made)});
  }
  return parts;
}

Tensor Rebuilder::meta(const Call& call, std::size_t dtype_argument) {
  const Arguments arguments(graph_, call.arguments, call.name);
  const auto global = arguments.has(dtype_argument) ? global_of(graph_, arguments[dtype_argument]) : std::nullopt;
  const auto dtype = global ? dtype_global(global->module, global->name) : std::nullopt;
  if (!dtype) throw Error(Errc::unsupported, "a tensor without data of an unknown dtype");
  const auto sizes = arguments.counts(dtype_argument + 1, "shape of a tensor");
  if (sizes.size() > limits_.max_rank)
    throw Error(Errc::limit, "a tensor without data has too many dimensions").hint(raise_limit("max_rank"));
  Shape shape(sizes);
  const auto count = shape.numel();
  const auto bytes = count ? bytes_of(*dtype, *count) : std::nullopt;
  if (!bytes) throw Error(Errc::malformed, fmt::format("the size of {} does not fit 64 bits", to_string(shape)));
  return Tensor(*dtype, std::move(shape), meta_storage(*bytes));
}

// Rows of one buffer, each with a shape of its own. The sizes, strides and offsets are the only data that opening
// reads.
Rebuilt Rebuilder::nested_tensor(const Call& call) {
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

// A tensor inside another one, which must be a single tensor.
Tensor Rebuilder::plain_tensor(NodeId node, std::string_view what) {
  Call call = call_of(node);
  for (int wrappers = 0; follow(call); ++wrappers) {
    if (wrappers == kMostWrappers) throw Error(Errc::malformed, "a tensor is wrapped in too many others");
  }
  const bool is_one = call.function == Function::tensor || call.function == Function::tensor_v2 ||
                      call.function == Function::tensor_v3 || call.function == Function::legacy_class ||
                      call.function == Function::meta;
  if (!is_one) throw Error(Errc::malformed, fmt::format("the {} of a tensor are no tensor", what));
  return one_tensor(call);
}

// A tensor, or what older versions wrote instead: a list of numbers.
Tensor Rebuilder::numbers(NodeId node, std::string_view what) {
  if (graph_.kind(node) != Kind::list && graph_.kind(node) != Kind::tuple) return plain_tensor(node, what);
  const auto [known, is_new] = lists_.try_emplace(node);
  if (is_new) known->second = listed_numbers(node, what);
  return known->second;
}

Tensor Rebuilder::listed_numbers(NodeId list, std::string_view what) {
  bool is_integer = true;
  for (const NodeId item : graph_.items(list)) is_integer = is_integer && graph_.kind(item) == Kind::integer;
  std::vector<std::byte> bytes;
  for (const NodeId item : graph_.items(list)) {
    const pickle::Node& number = graph_[item];
    if (number.kind != Kind::integer && number.kind != Kind::real)
      throw Error(Errc::malformed, fmt::format("the {} hold something that is no number", what));
    const double real = number.kind == Kind::real ? number.real : static_cast<double>(number.integer);
    std::array<std::byte, 8> value;
    if (is_integer)
      std::memcpy(value.data(), &number.integer, value.size());
    else
      std::memcpy(value.data(), &real, value.size());
    bytes.insert(bytes.end(), value.begin(), value.end());
  }
  const std::uint64_t count = bytes.size() / 8;
  return Tensor(is_integer ? DType::i64 : DType::f64, {count}, memory_storage(std::move(bytes)));
}

Tensor Rebuilder::array(const NumpyArray& array) {
  const std::uint64_t size = numpy_bytes(graph_, array);
  StoragePtr& bytes = array_bytes_[{array.data, size}];
  if (!bytes) bytes = pickled_bytes(graph_, array.data, size);
  return numpy_view(array.type, array.shape, array.is_fortran, bytes);
}

Stored Rebuilder::storage_of(NodeId node, std::string_view what) {
  if (graph_.kind(node) == Kind::persistent) {
    if (auto stored = storages_.find(graph_, node)) return std::move(*stored);
  } else if (const Checkpoint* file = nested_file(node)) {
    const Tensor* storage = file->size() == 1 ? file->find("") : nullptr;
    if (!storage || storage->rank() != 1 || !storage->is_contiguous())
      throw Error(Errc::malformed, "a file inside a pickle is not the one storage that is needed here");
    return {storage->storage(), storage->offset(), storage->nbytes(), storage->dtype()};
  }
  throw Error(Errc::malformed, fmt::format("{}: the first argument is no storage", what)).at_byte(graph_[node].offset);
}

const Checkpoint* Rebuilder::nested_file(NodeId node) {
  const auto callee = callee_of(graph_, node);
  if (!callee || !callee->is("torch.storage", "_load_from_bytes")) return nullptr;
  const NodeId bytes = first_argument(graph_, node);
  if (bytes == kNoNode || !is_pickled_bytes(graph_, bytes))
    throw Error(Errc::malformed, "_load_from_bytes of no bytes");
  const auto known = files_.find(bytes);
  if (known != files_.end()) return &known->second;
  return &files_.emplace(bytes, nested_(pickled_bytes_source(graph_, bytes, limits_))).first->second;
}

}  // namespace ballast::torch
