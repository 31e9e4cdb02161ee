// StateDict: tensors by name, in order. A hundred thousand of them cost a few megabytes and a few milliseconds.
//
// Names are unique bytes (UTF-8 where the format says so). Reading from several threads is safe; changing is not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

class StateDict {
 public:
  struct Entry {
    Entry(std::string_view name, Tensor tensor) noexcept : name(name), tensor(std::move(tensor)) {}

    std::string_view name;  // lives as long as the state dict, or a copy of it
    Tensor tensor;
  };

  StateDict();
  StateDict(const StateDict& other);
  StateDict(StateDict&& other) noexcept;
  StateDict& operator=(const StateDict& other);
  StateDict& operator=(StateDict&& other) noexcept;
  ~StateDict();

  std::size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }
  const Entry& operator[](std::size_t i) const noexcept { return entries_[i]; }

  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  const Tensor* find(std::string_view name) const noexcept;
  const Tensor& at(std::string_view name) const;  // throws Errc::not_found

  void reserve(std::size_t count);

  // False, and nothing changes, where the name is taken.
  bool insert(std::string_view name, Tensor tensor);

  // For readers of many: all entries at once, into an empty state dict. Their names must lie in something that
  // keep_alive was given. Returns the number of the first entry whose name an earlier one has; then the state dict is
  // of no use.
  std::optional<std::size_t> adopt(std::vector<Entry> entries);
  void keep_alive(std::shared_ptr<const void> names);

  // The entries of other state dicts, one after the other, into an empty one. As adopt(), returns the number of the
  // first entry whose name an earlier one has: then entries can still be looked at, but not be found.
  std::optional<std::size_t> adopt_all(std::vector<StateDict> others);

  void replace(std::string_view name, Tensor tensor);  // throws Errc::not_found

 private:
  struct Slot {
    std::uint32_t hash;
    std::uint32_t number;  // of the entry, from 1; 0 is an empty slot
  };

  // A copy shares the arenas that are full, never the room that is left in one.
  struct Room {
    Room() = default;
    Room(const Room&) noexcept {}
    Room& operator=(const Room&) noexcept { return *this = Room(nullptr, 0); }
    Room(char* begin, std::size_t size) noexcept : begin(begin), size(size) {}
    Room(Room&& other) noexcept { *this = std::move(other); }
    Room& operator=(Room&& other) noexcept {
      begin = std::exchange(other.begin, nullptr);
      size = std::exchange(other.size, 0);
      return *this;
    }
    char* begin = nullptr;
    std::size_t size = 0;
  };

  std::size_t find_slot(std::string_view name, std::uint32_t hash) const noexcept;
  void rehash(std::size_t slot_count);
  bool insert_stored(std::string_view name, Tensor&& tensor);  // moved from only where it is inserted
  std::string_view store(std::string_view name);

  std::vector<Entry> entries_;
  std::vector<Slot> slots_;                          // open addressing; a power of two
  std::vector<std::shared_ptr<const void>> arenas_;  // what the names lie in
  Room room_;                                        // what is left of the newest arena of our own
};

}  // namespace ballast
