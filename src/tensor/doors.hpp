// Doors into the public values for readers of many tensors, which have checked what the public functions would check
// once more.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ballast/state_dict.hpp>
#include <ballast/tensor.hpp>
#include <ballast/typed_metadata.hpp>

namespace ballast {

struct Doors {
  // A contiguous tensor without a check. If its elements do not fit into the storage, reading it is undefined.
  static Tensor unchecked(DType dtype, Shape shape, const StoragePtr& storage, std::uint64_t offset) {
    return Tensor(storage, offset, std::move(shape), dtype);
  }

  // Takes all entries at once, into an empty state dict. The names must lie in memory that was given to keep_alive().
  // If two entries have the same name, returns the number of the second; the state dict is then useless. If the caller
  // wants it, `names_sum` becomes the sum of the hashes of all names.
  static std::optional<std::size_t> adopt(StateDict& into, std::vector<StateDict::Entry> entries,
                                          std::uint64_t* names_sum = nullptr) {
    return into.adopt(std::move(entries), names_sum);
  }
  static void keep_alive(StateDict& of, std::shared_ptr<const void> names) { of.keep_alive(std::move(names)); }

  // Takes the entries of other state dicts, one after the other, into an empty one. Returns the same as adopt(): after
  // a number, entries can still be visited in order, but not be found by name.
  static std::optional<std::size_t> adopt_all(StateDict& into, std::vector<StateDict> others,
                                              std::uint64_t* names_sum = nullptr) {
    return into.adopt_all(std::move(others), names_sum);
  }

  // Takes all entries at once. If two have the same key, returns the number of the second; the metadata are then
  // useless.
  static std::optional<std::size_t> adopt(TypedMetadata& into, std::vector<MetadataEntry> entries) {
    return into.adopt(std::move(entries));
  }
};

}  // namespace ballast
