#include "formats/torch/storage_table.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <utility>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "formats/torch/arguments.hpp"
#include "formats/torch/types.hpp"

namespace ballast::torch {

using pickle::Graph;
using pickle::Kind;
using pickle::NodeId;

std::uint64_t PersistentId::element_bytes() const noexcept {
  return !dtype || counts_bytes_in_storages(*dtype) ? 1 : info(*dtype).block_bytes;
}

std::uint64_t PersistentId::size_bytes() const {
  return fits(checked_mul(numel, element_bytes()), "the size of storage " + quote(key));
}

std::optional<std::uint64_t> reach(const Shape& shape, const Strides& strides) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) return 0;
    const auto step = checked_mul(shape[i] - 1, static_cast<std::uint64_t>(strides[i]));
    const auto sum = step ? checked_add(last, *step) : std::nullopt;
    if (!sum) return std::nullopt;
    last = *sum;
  }
  return checked_add(last, 1);
}

Tensor view_of(const Stored& stored, DType dtype, std::uint64_t offset, Shape shape, Strides strides) {
  const DTypeInfo& type = info(dtype);
  if (shape.numel() == 0) return Tensor(dtype, std::move(shape), nullptr);
  if (offset % type.block_elements != 0) throw Error(Errc::unsupported, "a view that begins inside a byte");
  const auto first = checked_mul(offset / type.block_elements, type.block_bytes);
  const auto elements = reach(shape, strides);
  const auto blocks = elements ? checked_add(*elements, type.block_elements - 1u) : std::nullopt;
  const auto bytes = blocks ? checked_mul(*blocks / type.block_elements, type.block_bytes) : std::nullopt;
  if (!first || !bytes || !is_inside(*first, *bytes, stored.size_bytes)) {
    throw Error(
        Errc::malformed,
        fmt::format("the view {} {} with the strides [{}] at element {} reaches outside its storage of {} bytes",
                    type.name, to_string(shape), fmt::join(strides, ", "), offset, stored.size_bytes));
  }
  return Tensor(dtype, std::move(shape), std::move(strides), stored.storage, stored.offset + *first);
}

void StorageTable::Unused::add(std::string_view key, std::uint64_t bytes) {
  if (bytes == 0) return;
  keys.add(key);
  size_bytes += bytes;
}

void note_unused(const StorageTable& storages, Checkpoint& checkpoint) {
  const StorageTable::Unused unused = storages.unused();
  if (unused.keys.empty()) return;
  checkpoint.unused_bytes += unused.size_bytes;
  checkpoint.notes.push_back(
      {"",
       fmt::format("{} used by no tensor and left out, {} bytes: {}",
                   unused.keys.count() == 1 ? "a storage is" : fmt::format("{} storages are", unused.keys.count()),
                   unused.size_bytes, unused.keys.text()),
       Note::Kind::remark});
}

std::optional<PersistentId> parse_persistent_id(const Graph& graph, NodeId node) {
  if (graph.kind(node) == Kind::persistent) node = graph.persistent_id(node);
  if (graph.kind(node) != Kind::tuple) return std::nullopt;
  const Arguments id(graph, node, "persistent id");
  if (id.size() == 0 || graph.kind(id[0]) != Kind::text || graph.chars(id[0]) != "storage") return std::nullopt;
  id.require(5);

  PersistentId parsed;
  const auto type = graph.kind(id[1]) == Kind::global ? std::optional(graph.global(id[1])) : std::nullopt;
  const auto storage = type ? storage_class(type->module, type->name) : std::nullopt;
  if (!storage) {
    throw Error(Errc::unsupported, type ? "a storage of the unknown class " + quote(type->name)
                                        : std::string("a storage whose class is no global"))
        .at_byte(graph[node].offset);
  }
  parsed.dtype = storage->dtype;
  parsed.key = id.text(2, "storage key");
  parsed.location = id.text(3, "storage location");
  parsed.numel = id.count(4, "size of a storage");
  if (id.size() > 5 && graph.kind(id[5]) == Kind::tuple) {
    const Arguments view(graph, id[5], "storage view");
    parsed.view = {view.count(1, "offset of a storage view"), view.count(2, "size of a storage view")};
  }
  return parsed;
}

}  // namespace ballast::torch
