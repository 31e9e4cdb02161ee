// StateDict: tensors by name, in order. A hundred thousand of them cost a few megabytes and a few milliseconds.
//
// Names are unique bytes (UTF-8 if the format demands it). Several threads may read a state dict, but not while another
// changes it. A copy shares the tensors' storages and the memory of the names, so it reads nothing.
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

  // Returns false, and changes nothing, if the name is taken. A new tensor invalidates pointers to tensors.
  bool insert(std::string_view name, Tensor tensor);

  void replace(std::string_view name, Tensor tensor);  // throws Errc::not_found

 private:
  friend struct Doors;

  struct Slot {
    std::uint32_t hash;
    std::uint32_t number;  // the number of the entry, from 1; 0 is an empty slot
  };

  // A copy of a state dict shares the arenas, but not the room that is left in the newest one.
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
  std::optional<std::size_t> adopt(std::vector<Entry> entries, std::uint64_t* names_sum);
  std::optional<std::size_t> adopt_all(std::vector<StateDict> others, std::uint64_t* names_sum);
  void keep_alive(std::shared_ptr<const void> names);
  bool insert_stored(std::string_view name, Tensor&& tensor);  // moves from `tensor` only if it is inserted
  std::string_view store(std::string_view name);

  std::vector<Entry> entries_;
  std::vector<Slot> slots_;                          // open addressing; a power of two
  std::vector<std::shared_ptr<const void>> arenas_;  // the memory of the names
  Room room_;                                        // the unused part of our newest arena
};

}  // namespace ballast
