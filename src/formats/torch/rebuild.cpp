#include "formats/torch/rebuild.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <array>
#include <cstring>

#include "core/checked.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
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

Strides to_strides(const std::vector<std::uint64_t>& counts) {
  return {counts.begin(), counts.end()};  // counts() lets nothing through that does not fit
}

}  // namespace

std::optional<Rebuilt> Rebuilder::rebuild(NodeId node) try {
  if (graph_.kind(node) == Kind::persistent) {
    if (auto tensor = storages_.find_tensor(graph_, node)) return Rebuilt{{{"", std::move(*tensor)}}, std::nullopt};
    const auto stored = storages_.find(graph_, node);
    if (!stored) return std::nullopt;
    const DType dtype = stored->dtype.value_or(DType::u8);  // a bare storage is a tensor of rank 1
    const std::uint64_t count = stored->size_bytes / info(dtype).block_bytes * info(dtype).block_elements;
    return Rebuilt{{{"", Tensor(dtype, {count}, stored->storage, stored->offset)}}, std::nullopt};
  }
  const RebuildCall outermost = rebuild_call_of(graph_, node);
  if (outermost.function == Rebuilding::none) return std::nullopt;
  const RebuildCall call = unwrapped(graph_, outermost);
  if (call.node != kNoNode && graph_.kind(call.node) == Kind::persistent) {
    auto tensor = storages_.find_tensor(graph_, call.node);
    if (!tensor) throw Error(Errc::unsupported, "a parameter whose data is no tensor");
    return Rebuilt{{{"", std::move(*tensor)}}, std::nullopt};
  }
  if (call.function == Rebuilding::none) throw Error(Errc::unsupported, "a tensor that is made of no tensor");
  if (call.function == Rebuilding::numpy) {
    const auto array = pickled_numpy_array(graph_, call.node, limits_);
    if (!array || !array->is_numeric()) return std::nullopt;
    return Rebuilt{{{"", this->array(*array)}}, std::nullopt};
  }
  if (call.function == Rebuilding::legacy_class && graph_.object(call.node).state == kNoNode) return std::nullopt;
  return rebuild_call(call);
} catch (Error& error) {
  throw error.at_byte(graph_[node].offset);
}

Rebuilt Rebuilder::rebuild_call(const RebuildCall& call) {
  switch (call.function) {
    case Rebuilding::qtensor: return quantized(call);
    case Rebuilding::sparse: return sparse(call);
    case Rebuilding::nested: return nested_tensor(call);
    case Rebuilding::wrapper_subclass: return wrapped(call);
    default: return {{{"", one_tensor(call)}}, std::nullopt};
  }
}

// Rebuilds a call that gives one tensor and takes no other tensors.
Tensor Rebuilder::one_tensor(const RebuildCall& call) {
  switch (call.function) {
    case Rebuilding::tensor: return tensor_of(call, std::nullopt, std::nullopt);
    case Rebuilding::tensor_v2: return tensor_of(call, std::nullopt, 6);
    case Rebuilding::tensor_v3: return tensor_of(call, 6, 7);
    case Rebuilding::meta: return meta(call, 0);
    case Rebuilding::legacy_class: return legacy_tensor(call);
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

Tensor Rebuilder::tensor_of(const RebuildCall& call, std::optional<std::size_t> dtype_argument,
                            std::optional<std::size_t> metadata_argument) {
  const Arguments arguments(graph_, call.arguments, call.name);
  arguments.require(4);
  const Stored stored = storage_of(arguments[0], call.name);
  std::optional<DType> dtype = stored.dtype;
  if (dtype_argument && arguments.has(*dtype_argument)) {
    const auto global = global_of(graph_, arguments[*dtype_argument]);
    dtype = global ? dtype_global(global->module, global->name) : std::nullopt;
    if (!dtype) {
      throw Error(Errc::unsupported, global ? fmt::format("a tensor of the unknown dtype {}", quote(global->name))
                                            : std::string("a tensor whose dtype is no global"));
    }
  }
  Tensor tensor = view(stored, dtype.value_or(DType::u8), arguments, 1);
  if (!metadata_argument || !arguments.has(*metadata_argument)) return tensor;
  constexpr std::uint64_t kMostMetadata = 16;  // torch writes two keys; they are searched for every such tensor
  const NodeId metadata = arguments[*metadata_argument];
  if (graph_.kind(metadata) == Kind::object || graph_.length(metadata) > kMostMetadata)
    arguments.complain(*metadata_argument, "the metadata of a tensor is no short dict");
  const auto is_set = [&](std::string_view key) {
    const NodeId flag = find_key(graph_, metadata, key);
    return flag != kNoNode && graph_.kind(flag) == Kind::boolean && graph_[flag].integer != 0;
  };
  return with_signs(std::move(tensor), is_set("conj"), is_set("neg"));
}

// torch.FloatTensor(), then BUILD (storage, offset, size, stride); Python 2 also pickled lists.
Tensor Rebuilder::legacy_tensor(const RebuildCall& call) {
  const Arguments state(graph_, graph_.object(call.node).state, call.name);
  state.require(4);
  const Stored stored = storage_of(state[0], call.name);
  return view(stored, stored.dtype.value_or(DType::u8), state, 1);
}

Tensor Rebuilder::meta(const RebuildCall& call, std::size_t dtype_argument) {
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

// A tensor inside another one, which must be a single tensor.
Tensor Rebuilder::plain_tensor(NodeId node, std::string_view what) {
  const RebuildCall call = unwrapped(graph_, rebuild_call_of(graph_, node));
  const bool is_one =
      call.is_of_storage() || call.function == Rebuilding::legacy_class || call.function == Rebuilding::meta;
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
