#include <ballast/error.hpp>
#include <ballast/state_dict.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/huge_pages.hpp"
#include "core/name_hash.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

constexpr std::size_t kArenaBytes = 64 << 10;

}  // namespace

StateDict::StateDict() = default;
StateDict::StateDict(const StateDict& other) = default;
StateDict::StateDict(StateDict&& other) noexcept = default;
StateDict& StateDict::operator=(const StateDict& other) = default;
StateDict& StateDict::operator=(StateDict&& other) noexcept = default;
StateDict::~StateDict() = default;

// The slot that holds the name, or the empty slot where the name would go.
std::size_t StateDict::find_slot(std::string_view name, std::uint32_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.number == 0) return i;
    if (slot.hash == hash && entries_[slot.number - 1].name == name) return i;
  }
}

const Tensor* StateDict::find(std::string_view name) const noexcept {
  if (slots_.empty()) return nullptr;
  const Slot& slot = slots_[find_slot(name, short_name_hash(name))];
  return slot.number == 0 ? nullptr : &entries_[slot.number - 1].tensor;
}

const Tensor& StateDict::at(std::string_view name) const {
  if (const Tensor* tensor = find(name)) return *tensor;
  throw Error(Errc::not_found, "no tensor is called " + quote(name)).about(name);
}

void StateDict::reserve(std::size_t count) {
  entries_.reserve(count);
  const std::size_t wanted = std::bit_ceil(count + count / 2 + 1);
  if (wanted > slots_.size()) rehash(wanted);
}

void StateDict::rehash(std::size_t slot_count) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slot_count));
  const std::size_t mask = slot_count - 1;
  for (const Slot& slot : old) {
    if (slot.number == 0) continue;
    std::size_t i = slot.hash & mask;
    while (slots_[i].number != 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

bool StateDict::insert_stored(std::string_view name, Tensor&& tensor) {
  if ((entries_.size() + 1) * 3 > slots_.size() * 2) rehash(std::max<std::size_t>(16, slots_.size() * 2));
  const std::uint32_t hash = short_name_hash(name);
  Slot& slot = slots_[find_slot(name, hash)];
  if (slot.number != 0) return false;
  entries_.push_back({name, std::move(tensor)});
  slot = {hash, static_cast<std::uint32_t>(entries_.size())};
  return true;
}

bool StateDict::insert(std::string_view name, Tensor tensor) {
  return !contains(name) && insert_stored(store(name), std::move(tensor));
}

std::optional<std::size_t> StateDict::adopt_all(std::vector<StateDict> others, std::uint64_t* names_sum) {
  std::size_t count = 0;
  for (const StateDict& other : others) count += other.size();
  std::vector<Entry> entries;
  entries.reserve(count);
  prefer_huge_pages(entries.data(), count * sizeof(Entry));
  for (StateDict& other : others) {
    std::move(other.entries_.begin(), other.entries_.end(), std::back_inserter(entries));
    arenas_.insert(arenas_.end(), other.arenas_.begin(), other.arenas_.end());
  }
  return adopt(std::move(entries), names_sum);
}

void StateDict::replace(std::string_view name, Tensor tensor) {
  const Slot* slot = slots_.empty() ? nullptr : &slots_[find_slot(name, short_name_hash(name))];
  if (slot == nullptr || slot->number == 0)
    throw Error(Errc::not_found, "no tensor is called " + quote(name)).about(name);
  entries_[slot->number - 1].tensor = std::move(tensor);
}

std::optional<std::size_t> StateDict::adopt(std::vector<Entry> entries, std::uint64_t* names_sum) {
  entries_ = std::move(entries);
  const std::size_t slot_count = std::bit_ceil(entries_.size() + entries_.size() / 2 + 1);
  slots_.reserve(slot_count);
  prefer_huge_pages(slots_.data(), slot_count * sizeof(Slot));
  slots_.assign(slot_count, Slot{});
  // Slots are spread over memory, so each is prefetched while the names before it are inserted.
  constexpr std::size_t kAhead = 16;
  std::uint32_t hashes[kAhead];
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < entries_.size() + kAhead; ++i) {
    if (i >= kAhead) {
      const std::size_t number = i - kAhead;
      Slot& slot = slots_[find_slot(entries_[number].name, hashes[number % kAhead])];
      if (slot.number != 0) return number;
      slot = {hashes[number % kAhead], static_cast<std::uint32_t>(number + 1)};
    }
    if (i < entries_.size()) {
      const std::uint64_t hash = hash_name(entries_[i].name);
      sum += hash;
      hashes[i % kAhead] = shortened(hash);
      __builtin_prefetch(&slots_[hashes[i % kAhead] & (slots_.size() - 1)]);
    }
  }
  if (names_sum != nullptr) *names_sum = sum;
  return std::nullopt;
}

void StateDict::keep_alive(std::shared_ptr<const void> names) { arenas_.push_back(std::move(names)); }

std::string_view StateDict::store(std::string_view name) {
  if (name.size() > room_.size) {
    const std::size_t size = std::max(kArenaBytes, name.size());
    std::shared_ptr<char[]> arena(new char[size]);
    room_ = Room(arena.get(), size);
    arenas_.push_back(std::move(arena));
  }
  if (!name.empty()) std::memcpy(room_.begin, name.data(), name.size());
  const std::string_view stored(room_.begin, name.size());
  room_ = Room(room_.begin + name.size(), room_.size - name.size());
  return stored;
}

}  // namespace ballast
