// The storages of a checkpoint, found by the persistent ids in its pickle. Each container keeps them in another way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/dtype.hpp>
#include <ballast/storage.hpp>
#include <ballast/tensor.hpp>

#include "core/name_list.hpp"
#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// ("storage", StorageType, key, location, numel [, view]), as every container but the tar writes it.
struct PersistentId {
  struct View {
    std::uint64_t first, count;  // elements of the storage that the key names
  };
  std::optional<DType> dtype;  // nothing if the storage is untyped
  std::string key, location;
  std::uint64_t numel = 0;  // of elements; of bytes if the storage is untyped or packs several elements into a byte
  std::optional<View> view;

  std::uint64_t element_bytes() const noexcept;  // the size of what numel counts
  std::uint64_t size_bytes() const;              // throws if that does not fit 64 bits
};

// Parses a Kind::persistent node, or the tuple in it. Throws Errc::malformed; nothing if the id does not name a storage
// (("module", class, source) does not).
std::optional<PersistentId> parse_persistent_id(const pickle::Graph& graph, pickle::NodeId node);

// What a persistent id stands for.
struct Stored {
  StoragePtr storage;
  std::uint64_t offset = 0, size_bytes = 0;  // in the storage
  std::optional<DType> dtype;
};

// A view of a storage; offset, shape and strides are in elements. Throws Errc::malformed if it reaches outside, and
// Errc::unsupported if it begins inside a byte.
Tensor view_of(const Stored& stored, DType dtype, std::uint64_t offset, Shape shape, Strides strides);

// One past the last element that a view reaches, in elements; nothing if that does not fit. No stride may be negative.
std::optional<std::uint64_t> reach(const Shape& shape, const Strides& strides);

class StorageTable {
 public:
  virtual ~StorageTable() = default;

  // Nothing if the id does not name a storage. Throws Errc::malformed if the storage is not there or has another size.
  virtual std::optional<Stored> find(const pickle::Graph& graph, pickle::NodeId persistent) = 0;

  // The tensor that a persistent id stands for, in a container that stores whole tensors: the tar.
  virtual std::optional<Tensor> find_tensor(const pickle::Graph&, pickle::NodeId) { return std::nullopt; }

  // The storages that are not empty and that nobody has asked for.
  struct Unused {
    NameList keys;
    std::uint64_t size_bytes = 0;
    void add(std::string_view key, std::uint64_t bytes);
  };
  virtual Unused unused() const { return {}; }
};

// Counts the bytes that are in the file and in no tensor, and adds a note about them.
void note_unused(const StorageTable& storages, Checkpoint& checkpoint);

}  // namespace ballast::torch
