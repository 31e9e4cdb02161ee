// Links: the items of every container of a graph, in one array.
//
// Most containers are small and filled in one step, so a link to an item takes four bytes; only an unusual container
// costs more than its items.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/pickle/flat_array.hpp"

namespace ballast::pickle {

using NodeId = std::uint32_t;

class Links {
 public:
  enum class Form : std::uint8_t {
    none,   // no item
    one,    // one item, which is `at` itself
    two,    // the two words at `at`: pairs are the most frequent
    run,    // words from `at` on: how many, then the items
    chain,  // `at` is the number of a chain: a run, and chunks that were added after other words had come behind it
  };
  struct Extent {
    std::uint32_t at = 0;
    Form form = Form::none;
  };

  std::size_t word_count() const noexcept { return words_.size(); }
  std::uint64_t count(Extent extent) const noexcept;

  // Adds what lies above `first` on a stack, and takes it off. If that is much, its memory is freed meanwhile.
  void append_from(FlatArray<NodeId>& stack, std::size_t first, Extent& extent);
  void append(NodeId item, Extent& extent);
  void append_pair(NodeId key, NodeId value, Extent& extent);

  // A walk over items; valid until something is appended.
  class Items {
   public:
    class Iterator {
     public:
      using value_type = NodeId;
      using difference_type = std::ptrdiff_t;
      Iterator() = default;
      NodeId operator*() const noexcept { return words_ == nullptr ? at_ : words_[at_]; }
      Iterator& operator++() noexcept {
        ++at_;
        if (--left_ == 0 && next_ != 0) go_to(next_);
        return *this;
      }
      bool operator==(const Iterator& other) const noexcept { return left_ == other.left_ && next_ == other.next_; }

     private:
      friend class Links;
      void go_to(std::uint32_t chunk) noexcept {
        left_ = words_[chunk];
        next_ = words_[chunk + 1];
        at_ = chunk + 2;
      }
      const std::uint32_t* words_ = nullptr;  // null: the only item is `at_`
      std::uint32_t at_ = 0;
      std::uint32_t left_ = 0;  // until the chunk ends
      std::uint32_t next_ = 0;  // the next chunk; 0 is none
    };
    Iterator begin() const noexcept { return first_; }
    Iterator end() const noexcept { return {}; }

   private:
    friend class Links;
    Iterator first_;
  };
  Items items(Extent extent) const noexcept;

 private:
  // A chunk is its number of items, the index of the next chunk, and the items.
  struct Chain {
    std::uint32_t run, first_chunk, last_chunk, count;
  };
  void open(Extent& extent, std::uint32_t more);
  void open_chain(Chain& chain, std::uint32_t more);

  FlatArray<std::uint32_t> words_;
  FlatArray<Chain> chains_;
};

}  // namespace ballast::pickle
