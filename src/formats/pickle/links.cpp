#include "formats/pickle/links.hpp"

namespace ballast::pickle {

std::uint64_t Links::count(Extent extent) const noexcept {
  switch (extent.form) {
    case Form::none: return 0;
    case Form::one: return 1;
    case Form::two: return 2;
    case Form::run: return words_[extent.at];
    case Form::chain: return chains_[extent.at].count;
  }
  return 0;
}

Links::Items Links::items(Extent extent) const noexcept {
  Items items;
  Items::Iterator& first = items.first_;
  if (extent.form == Form::none) return items;
  if (extent.form == Form::one) {
    first.at_ = extent.at;
    first.left_ = 1;
    return items;
  }
  first.words_ = words_.data();
  if (extent.form == Form::two) {
    first.at_ = extent.at;
    first.left_ = 2;
    return items;
  }
  const bool is_chain = extent.form == Form::chain;
  const std::uint32_t run = is_chain ? chains_[extent.at].run : extent.at;
  first.left_ = words_[run];
  first.at_ = run + 1;
  if (is_chain) first.next_ = chains_[extent.at].first_chunk;
  return items;
}

void Links::append_from(FlatArray<NodeId>& stack, std::size_t first, Extent& extent) {
  const std::size_t count = stack.size() - first;
  if (count == 0) return;
  if (count == 1) {
    append(stack[first], extent);
    stack.shrink(first);
    return;
  }
  open(extent, static_cast<std::uint32_t>(count));
  stack.move_tail_to(words_, first);
}

void Links::append(NodeId item, Extent& extent) {
  if (extent.form == Form::none) {
    extent = {item, Form::one};
    return;
  }
  open(extent, 1);
  words_.push_back(item);
}

void Links::append_pair(NodeId key, NodeId value, Extent& extent) {
  open(extent, 2);
  words_.push_back(key);
  words_.push_back(value);
}

// Counts `more` items, which the caller then puts at the end of the words.
void Links::open(Extent& extent, std::uint32_t more) {
  const auto end = static_cast<std::uint32_t>(words_.size());
  switch (extent.form) {
    case Form::none:
      if (more != 2) words_.push_back(more);
      extent = {end, more == 2 ? Form::two : Form::run};
      break;
    case Form::two:
      words_.push_back(more + 2);
      words_.push_back(words_[extent.at]);
      words_.push_back(words_[extent.at + 1]);
      extent = {end, Form::run};
      break;
    case Form::one:
      words_.push_back(more + 1);
      words_.push_back(extent.at);
      extent = {end, Form::run};
      break;
    case Form::run:
      if (extent.at + 1 + words_[extent.at] == end) {
        words_[extent.at] += more;
        break;
      }
      chains_.push_back({extent.at, 0, 0, words_[extent.at]});
      extent = {static_cast<std::uint32_t>(chains_.size() - 1), Form::chain};
      open_chain(chains_.back(), more);
      break;
    case Form::chain: open_chain(chains_[extent.at], more); break;
  }
}

void Links::open_chain(Chain& chain, std::uint32_t more) {
  const auto end = static_cast<std::uint32_t>(words_.size());
  chain.count += more;
  if (chain.last_chunk != 0 && chain.last_chunk + 2 + words_[chain.last_chunk] == end) {
    words_[chain.last_chunk] += more;
    return;
  }
  words_.push_back(more);
  words_.push_back(0);
  (chain.last_chunk == 0 ? chain.first_chunk : words_[chain.last_chunk + 1]) = end;
  chain.last_chunk = end;
}

}  // namespace ballast::pickle
