// Deal: the work of a team, dealt to its members by bytes, and what each found out given to all.
//
// The deal is a function of the sizes alone, so every member makes the same one by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/team.hpp>

#include "core/message.hpp"

namespace ballast {

class Deal {
 public:
  // Each item goes to the member that has the fewest bytes, the largest first. `loads` is what the members had before,
  // and is brought up to date; with it, several deals are fair together.
  Deal(Team& team, std::span<const std::uint64_t> item_bytes, std::vector<std::uint64_t>& loads);
  Deal(Team& team, std::span<const std::uint64_t> item_bytes, std::vector<std::uint64_t>&& loads = {})
      : Deal(team, item_bytes, loads) {}

  std::span<const std::size_t> mine() const noexcept { return mine_; }  // items of this member, in ascending order
  unsigned owner(std::size_t item) const noexcept { return owners_.empty() ? 0 : owners_[item]; }
  bool is_mine(std::size_t item) const noexcept { return owner(item) == team_.rank(); }
  std::uint64_t my_bytes() const noexcept { return my_bytes_; }

  // Every value of an item becomes that of the member whose item it is. All members call it.
  template <class T>
  void share(std::span<T> values) const {
    share_spans([&](std::size_t item, auto&& take) { take(values.subspan(item, 1)); });
  }

  // The same for items that have any number of values, in any number of places: spans_of(item, take) gives `take` each
  // span of them.
  template <class SpansOf>
  void share_spans(const SpansOf& spans_of) const {
    if (team_.size() == 1) return;
    Message message;
    for (const std::size_t item : mine_) spans_of(item, [&](auto values) { message.bytes(bytes_of(values)); });
    const auto messages = team_.exchange(message);
    std::vector<Cursor> from(messages.begin(), messages.end());
    for (std::size_t item = 0; item < owners_.size(); ++item)
      spans_of(item, [&](auto values) { read_values(from[owner(item)], values); });
  }

 private:
  Team& team_;
  std::vector<unsigned> owners_;  // of each item; empty for a team of one
  std::vector<std::size_t> mine_;
  std::uint64_t my_bytes_ = 0;
};

// Every member gets the values of the first one.
template <class T>
void tell(Team& team, std::span<T> values) {
  if (team.size() == 1) return;
  const auto messages = team.exchange(team.is_first() ? bytes_of(values) : std::span<const std::byte>());
  Cursor in(messages.front());
  read_values(in, values);
}

// Every member gets the sums of all.
void add_up(Team& team, std::span<std::uint64_t> counts);

// The least of what the members say.
std::uint64_t least_of(Team& team, std::uint64_t mine);

}  // namespace ballast
