#include "core/scratch.hpp"

#include <algorithm>
#include <utility>

namespace ballast {

thread_local Scratch::Block Scratch::kept_[Scratch::kKept];

// Takes the smallest block that is large enough.
Scratch::Scratch(std::size_t size) : size_(size) {
  Block* best = nullptr;
  for (Block& block : kept_)
    if (block.size >= size && (best == nullptr || block.size < best->size)) best = &block;
  if (best != nullptr) {
    std::swap(block_, *best);
  } else {
    block_ = {std::make_unique_for_overwrite<std::byte[]>(size), size};
  }
}

// Keeps the larger blocks.
Scratch::~Scratch() {
  Block* smallest = std::ranges::min_element(kept_, {}, &Block::size);
  if (block_.size <= kMostKeptBytes && block_.size > smallest->size) std::swap(block_, *smallest);
}

}  // namespace ballast
