// Doors into the public values for readers of many tensors, which have checked what the public functions would check
// once more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
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

  // The number of the entry of a name, if there is one.
  static std::optional<std::size_t> number_of(const StateDict& of, std::string_view name) noexcept {
    const Tensor* found = of.find(name);
    if (found == nullptr) return std::nullopt;
    const auto* first = reinterpret_cast<const std::byte*>(&of.entries_.front().tensor);
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(found) - first) / sizeof(StateDict::Entry);
  }

  // The same, for a name that is probably that of a neighbour: parts of a weight mostly follow each other.
  static std::optional<std::size_t> number_near(const StateDict& of, std::size_t near, std::string_view name) noexcept {
    constexpr std::size_t kNeighbours = 3;
    for (std::size_t i = near - std::min(near, kNeighbours); i < std::min(near + kNeighbours + 1, of.size()); ++i)
      if (of[i].name == name) return i;
    return number_of(of, name);
  }

  // The entries whose numbers are true. They share the memory of the names.
  static StateDict selected(const StateDict& from, const std::vector<bool>& numbers) {
    const auto count = static_cast<std::size_t>(std::ranges::count(numbers, true));
    if (count == from.size()) return from;
    std::vector<StateDict::Entry> entries;
    entries.reserve(count);
    for (std::size_t i = 0; i < from.size(); ++i)
      if (numbers[i]) entries.push_back(from[i]);
    StateDict some;
    some.arenas_ = from.arenas_;
    some.adopt(std::move(entries), nullptr);
    return some;
  }

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
