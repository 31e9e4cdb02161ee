// Graph: what a pickle says, as data. Nodes in one array, referring to each other by number.
//
// Nothing in it is ever called, imported or copied: an object that a pickle would build is a node that says which
// global with which arguments and which state. Nodes are shared as the pickle shares them, cycles included, so whoever
// walks a graph keeps track of where it has been. There is no recursion in building, walking or destroying one.
//
// Text and bytes up to kNearBytes are held by the graph. Longer ones stay in the file and are known by their range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pickle/flat_array.hpp"
#include "io/byte_source.hpp"

namespace ballast::pickle {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0xFFFFFFFF;
inline constexpr std::uint64_t kNearBytes = 65536;

enum class Kind : std::uint8_t {
  none,
  boolean,
  integer,      // fits 64 bits
  big_integer,  // does not: its decimal digits are text
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

struct Node {
  Kind kind = Kind::none;
  Making making = Making::reduce;  // of an object
  bool is_far = false;
  std::uint32_t first = 0;  // containers and objects: first link + 1; 0 is none
  std::uint32_t last = 0;
  std::uint32_t extra = 0;   // an object: its number in Graph's objects; a near text: its number of bytes
  std::uint64_t offset = 0;  // of the opcode in the source; of far text and bytes: of their first byte
  union {
    std::int64_t integer = 0;  // boolean, integer
    double real;
    const char* chars;        // near text, bytes, decimal digits
    std::uint64_t far_bytes;  // far text and bytes: how many
    std::uint64_t count;      // containers: links; a dict has two for each pair
  };
};
static_assert(sizeof(Node) == 32);

// The rest of an object: most nodes are not one.
struct ObjectParts {
  NodeId callee = kNoNode;                        // a global, or anything else that a hostile pickle tried to call
  NodeId arguments = kNoNode;                     // a tuple
  NodeId keywords = kNoNode;                      // a dict
  NodeId state = kNoNode;                         // given by BUILD; the last one
  std::uint32_t pairs_first = 0, pairs_last = 0;  // set by SETITEM(S); links + 1, two for each pair
  std::uint64_t pairs_count = 0;                  // pairs
};

struct GlobalName {
  std::string_view module, name;
  std::uint64_t offset;  // of the opcode
};

class Graph {
 public:
  explicit Graph(io::ByteSourcePtr source) : source_(std::move(source)) {}
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  // Reading. Ids must come from this graph.
  std::size_t size() const noexcept { return nodes_.size(); }
  std::size_t link_count() const noexcept { return links_.size(); }
  const Node& operator[](NodeId id) const noexcept { return nodes_[id]; }
  Kind kind(NodeId id) const noexcept { return nodes_[id].kind; }
  const io::ByteSourcePtr& source() const noexcept { return source_; }

  // Of text, bytes, bytearray and the digits of a big integer, while they are near; empty where they are far.
  std::string_view chars(NodeId id) const noexcept;
  // Of text and bytes: in bytes; of containers: items (pairs of a dict); of an object: what was appended to it.
  std::uint64_t length(NodeId id) const noexcept;
  // The whole of it, read from the file where it is far. The caller has compared length() with a limit.
  std::string read_chars(NodeId id) const;

  // A walk over the items of a tuple, list, set or frozenset, or over those that were appended to an object.
  // for (NodeId item : graph.items(id))
  class Items;
  Items items(NodeId id) const noexcept;
  std::vector<NodeId> item_list(NodeId id) const;

  // Key, value, key, value, ... of a dict, or of what was set in an object (an OrderedDict is one).
  Items pairs(NodeId id) const noexcept;

  const ObjectParts& object(NodeId id) const noexcept { return objects_[nodes_[id].extra]; }
  GlobalName global(NodeId id) const noexcept { return globals_[nodes_[id].extra]; }
  // Modules are compared as the file spells them and as Python 3 does: "__builtin__" is "builtins".
  bool is_global(NodeId id, std::string_view module, std::string_view name) const noexcept;
  NodeId persistent_id(NodeId id) const noexcept { return nodes_[id].first; }

  // Every mention of a global, in the order of the file; those before the point where a broken pickle breaks included.
  const std::vector<GlobalName>& globals() const noexcept { return globals_; }

  // Building; for the machine.
  NodeId add(Kind kind, std::uint64_t offset);
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
  void set_state(NodeId object, NodeId state);

 private:
  struct Link {
    NodeId item;
    std::uint32_t next;  // + 1; 0 is the end
  };
  std::string_view keep(std::string_view chars);
  void link(NodeId item, std::uint32_t& first, std::uint32_t& last);

  FlatArray<Node> nodes_;
  FlatArray<Link> links_;
  FlatArray<ObjectParts> objects_;
  std::vector<GlobalName> globals_;
  std::vector<std::unique_ptr<char[]>> arenas_;  // for chars, which never move
  char* room_ = nullptr;                         // what is left of the last one
  std::size_t room_bytes_ = 0;
  std::size_t arena_bytes_ = 0;
  io::ByteSourcePtr source_;

 public:
  class Items {
   public:
    class Iterator {
     public:
      using value_type = NodeId;
      using difference_type = std::ptrdiff_t;
      Iterator(const Link* links, std::uint32_t at) noexcept : links_(links), at_(at) {}
      NodeId operator*() const noexcept { return links_[at_ - 1].item; }
      Iterator& operator++() noexcept {
        at_ = links_[at_ - 1].next;
        return *this;
      }
      bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

     private:
      const Link* links_;
      std::uint32_t at_;
    };
    Items(const Link* links, std::uint32_t first) noexcept : links_(links), first_(first) {}
    Iterator begin() const noexcept { return {links_, first_}; }
    Iterator end() const noexcept { return {links_, 0}; }

   private:
    const Link* links_;
    std::uint32_t first_;
  };
};

}  // namespace ballast::pickle
