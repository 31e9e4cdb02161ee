// Graph: what a pickle says, as data. Its nodes lie in one array and refer to each other by number.
//
// Nothing in it is ever called, imported or copied: an object that a pickle would build is a node that names the
// global, its arguments and its state. Nodes are shared as the pickle shares them, cycles included, so whoever walks a
// graph keeps track of where it has been. Building, walking and destroying a graph do not recurse.
//
// Text and bytes up to kNearBytes are held by the graph. Longer ones stay in the file, and the graph holds their range.
//
// Pickles hold millions of numbers, and hostile ones a node in every byte, so a node takes eight bytes, a link four,
// and what most nodes do not have lies in arrays beside them: at most 16 bytes for each byte of any pickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/source.hpp>

#include "formats/pickle/flat_array.hpp"
#include "formats/pickle/links.hpp"

namespace ballast::pickle {

inline constexpr NodeId kNoNode = 0xFFFFFFFF;
inline constexpr std::uint64_t kNearBytes = 65536;

enum class Kind : std::uint8_t {
  none,
  boolean,
  integer,      // fits 64 bits
  big_integer,  // does not fit 64 bits: its decimal digits are text
  real,
  text,  // UTF-8, lone surrogates passed
  bytes,
  bytearray,
  tuple,
  list,
  set,
  frozenset,
  dict,
  global,      // module and name
  object,      // what a global, called with arguments, would have built
  persistent,  // what the id would have stood for
};

// How an object would have been made.
enum class Making : std::uint8_t { reduce, newobj, newobj_ex, inst, obj };

// What a node says of itself, as a copy.
struct Node {
  Kind kind = Kind::none;
  Making making = Making::reduce;  // of an object
  bool is_far = false;             // text and bytes that stay in the file
  // The offset in the source: that of the opcode; for far text and bytes, that of their first byte; for None, True and
  // False, which are one node each, that of the first mention.
  std::uint64_t offset = 0;
  std::int64_t integer = 0;  // boolean, integer
  double real = 0;
};

struct ObjectParts {
  NodeId callee = kNoNode;        // a global, or anything else that a hostile pickle tries to call
  NodeId arguments = kNoNode;     // a tuple
  NodeId keywords = kNoNode;      // a dict
  NodeId state = kNoNode;         // given by BUILD; the last one
  std::uint64_t pairs_count = 0;  // set by SETITEM(S)
};

struct GlobalName {
  std::string_view module, name;
  std::uint64_t offset;  // of the opcode
};

class Graph {
 public:
  explicit Graph(SourcePtr source) : source_(std::move(source)) {}
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  // Reading. Ids must come from this graph.
  std::size_t size() const noexcept { return nodes_.size(); }
  std::size_t link_count() const noexcept { return links_.word_count(); }  // and the words that hold links together
  Node operator[](NodeId id) const noexcept;
  Kind kind(NodeId id) const noexcept { return nodes_[id].kind; }
  const SourcePtr& source() const noexcept { return source_; }

  // The characters of text, bytes, bytearray and the digits of a big integer if they are near; empty if they are far.
  // The view is valid as long as the graph.
  std::string_view chars(NodeId id) const noexcept;
  // The length of text and bytes in bytes; the number of items of a container (pairs of a dict), or of those appended
  // to an object.
  std::uint64_t length(NodeId id) const noexcept;
  // All characters, read from the file if they are far. The caller must have compared length() with a limit.
  std::string read_chars(NodeId id) const;

  // A walk over the items of a tuple, list, set or frozenset, or over those that were appended to an object:
  // for (NodeId item : graph.items(id))
  using Items = Links::Items;
  Items items(NodeId id) const noexcept;
  std::vector<NodeId> item_list(NodeId id) const;

  // Key, value, key, value, ... of a dict, or of the pairs that were set in an object (an OrderedDict is one).
  Items pairs(NodeId id) const noexcept;

  ObjectParts object(NodeId id) const noexcept;
  GlobalName global(NodeId id) const noexcept { return global_at(nodes_[id].payload); }
  // Modules are compared as the file spells them and as Python 3 does: "__builtin__" is "builtins".
  bool is_global(NodeId id, std::string_view module, std::string_view name) const noexcept;
  // The number of the node's mention in globals().
  std::size_t global_number(NodeId id) const noexcept { return nodes_[id].payload; }
  // Whether an instruction did something to the node that the node does not show: a bytearray that was appended to, an
  // object with two states, a global that was given a state.
  bool is_altered(NodeId id) const noexcept { return can_be_altered(id) && (nodes_[id].form & kAltered) != 0; }
  NodeId persistent_id(NodeId id) const noexcept { return nodes_[id].payload; }

  // Every mention of a global, in the order of the file; mentions before the point where a broken pickle breaks are
  // included.
  class Globals;
  Globals globals() const noexcept;

  // Building, for the machine.
  NodeId add(Kind kind, std::uint64_t offset);
  NodeId add_none(std::uint64_t offset);
  NodeId add_boolean(bool value, std::uint64_t offset);
  NodeId add_integer(std::int64_t value, std::uint64_t offset);
  NodeId add_real(double value, std::uint64_t offset);
  NodeId add_chars(Kind kind, std::string_view chars, std::uint64_t offset);  // copied
  NodeId add_far(Kind kind, std::uint64_t first_byte, std::uint64_t size);
  NodeId add_global(std::string_view module, std::string_view name, std::uint64_t offset);  // copied
  NodeId add_global(NodeId module, NodeId name, std::uint64_t offset);  // near texts of this graph, shared
  NodeId add_object(Making making, NodeId callee, NodeId arguments, NodeId keywords, std::uint64_t offset);
  NodeId add_persistent(NodeId id, std::uint64_t offset);
  void append(NodeId container, NodeId item);              // tuple, list, set, frozenset, object
  void set_item(NodeId target, NodeId key, NodeId value);  // dict, object
  // Adds everything that lies above `first` on the stack, and takes it off: items, or key, value, key, value, ...
  void append_from(FlatArray<NodeId>& stack, std::size_t first, NodeId container);
  void set_items_from(FlatArray<NodeId>& stack, std::size_t first, NodeId target);
  void set_state(NodeId object, NodeId state);  // the last one is kept
  void set_altered(NodeId id);

 private:
  struct Packed {
    // Containers: where their items are. Integers of 32 bits: the number. Persistent: the node of the id. Else an index
    // into numbers_, chars_, far_, objects_ or mentions_.
    std::uint32_t payload;
    std::uint16_t behind;  // how many bytes the offset lies behind its base
    Kind kind;
    std::uint8_t form;  // containers: Links::Form; integers: kWide; text and bytes: kFar; objects: Making
  };
  static_assert(sizeof(Packed) == 8);
  static constexpr std::uint8_t kPlain = 0, kWide = 1, kFar = 1;
  static constexpr std::uint8_t kAltered = 0x80;  // a bit beside the rest of the form, for nodes that can be altered
  static constexpr std::uint32_t kNoChars = 0xFFFFFFFF;  // for empty text and bytes

  struct Base {  // the base of the offsets of some nodes, from `first` on
    NodeId first;
    std::uint64_t offset;
  };
  struct Range {
    std::uint64_t first, size;
  };
  struct Object {
    NodeId callee, arguments;
    std::uint32_t more;  // index + 1 into more_; 0 is none
  };
  struct ObjectMore {  // what most objects do not have
    NodeId keywords = kNoNode, state = kNoNode;
    Links::Extent items, pairs;
  };
  struct Mention {  // of a global
    NodeId node;
    std::uint32_t module, name;  // indices into chars_
  };

  bool can_be_altered(NodeId id) const noexcept {
    const Kind kind = nodes_[id].kind;
    return kind == Kind::bytearray || kind == Kind::object || kind == Kind::global;
  }
  bool is_far(const Packed& node) const noexcept { return (node.form & ~kAltered) == kFar; }  // of text and bytes
  std::uint64_t opcode_offset(NodeId id) const noexcept;
  std::string_view chars_at(std::uint32_t place) const noexcept;
  GlobalName global_at(std::size_t number) const noexcept;
  ObjectMore more_of(NodeId object) const noexcept;
  Links::Extent items_of(NodeId id) const noexcept;
  Links::Extent pairs_of(NodeId id) const noexcept;
  ObjectMore& make_more_of(NodeId object);
  NodeId add_packed(Kind kind, std::uint32_t payload, std::uint8_t form, std::uint64_t offset);
  NodeId add_mention(std::uint32_t module, std::uint32_t name, std::uint64_t offset);
  std::uint32_t keep(std::string_view chars);
  char* room_for(std::size_t size);
  template <class Add>
  void add_links(NodeId target, Links::Extent ObjectMore::*which, const Add& add);

  FlatArray<Packed> nodes_;
  NodeId none_ = kNoNode, true_ = kNoNode, false_ = kNoNode;
  std::vector<Base> bases_;
  Links links_;
  FlatArray<std::uint64_t> numbers_;  // integers that 32 bits do not hold, and reals, by their bits
  FlatArray<const char*> chars_;      // near text and bytes, and names; each lies behind its length
  FlatArray<Range> far_;
  FlatArray<Object> objects_;
  FlatArray<ObjectMore> more_;
  FlatArray<Mention> mentions_;
  std::vector<std::unique_ptr<char[]>> arenas_;  // for chars, which never move
  char* room_ = nullptr;                         // what is left of the last arena
  std::size_t room_bytes_ = 0;
  std::size_t arena_bytes_ = 0;
  SourcePtr source_;
};

class Graph::Globals {
 public:
  class Iterator {
   public:
    using value_type = GlobalName;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Graph* graph, std::size_t at) noexcept : graph_(graph), at_(at) {}
    GlobalName operator*() const noexcept { return graph_->global_at(at_); }
    Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    Iterator operator++(int) noexcept { return {graph_, at_++}; }
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    const Graph* graph_ = nullptr;
    std::size_t at_ = 0;
  };
  explicit Globals(const Graph& graph) noexcept : graph_(&graph) {}
  std::size_t size() const noexcept { return graph_->mentions_.size(); }
  bool empty() const noexcept { return size() == 0; }
  GlobalName operator[](std::size_t i) const noexcept { return graph_->global_at(i); }
  Iterator begin() const noexcept { return {graph_, 0}; }
  Iterator end() const noexcept { return {graph_, size()}; }

 private:
  const Graph* graph_;
};

inline Graph::Globals Graph::globals() const noexcept { return Globals(*this); }

}  // namespace ballast::pickle
