// Memo: the numbered values that a pickle comes back to. Picklers number from 0 on, so nearly all of the memo is an
// array; an index that leaves a large hole goes into a map, because a hostile index must not cost as much memory as it
// says.
#pragma once

#include <cstdint>
#include <map>

#include "formats/pickle/flat_array.hpp"
#include "formats/pickle/graph.hpp"

namespace ballast::pickle {

class Memo {
 public:
  // How many indices have a value: the index that MEMOIZE takes.
  std::uint64_t count() const noexcept { return count_; }

  // The value at an index, or kNoNode if there is none.
  NodeId get(std::uint64_t index) const {
    if (index < dense_.size() && dense_[static_cast<std::size_t>(index)] != kNoNode)
      return dense_[static_cast<std::size_t>(index)];
    const auto found = sparse_.find(index);
    return found == sparse_.end() ? kNoNode : found->second;
  }

  void put(std::uint64_t index, NodeId value) {
    if (get(index) == kNoNode) ++count_;
    if (index >= 2 * count_ + kSmallHole && index >= dense_.size()) {
      sparse_[index] = value;
      return;
    }
    sparse_.erase(index);
    dense_.extend(static_cast<std::size_t>(index) + 1, kNoNode);
    dense_[static_cast<std::size_t>(index)] = value;
  }

 private:
  static constexpr std::uint64_t kSmallHole = 1024;

  FlatArray<NodeId> dense_;
  std::map<std::uint64_t, NodeId> sparse_;
  std::uint64_t count_ = 0;
};

}  // namespace ballast::pickle
