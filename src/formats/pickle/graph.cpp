#include "formats/pickle/graph.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "formats/pickle/globals.hpp"

namespace ballast::pickle {
namespace {

constexpr std::size_t kSmallestArena = 1024, kLargestArena = std::size_t{256} << 10;

bool has_chars(Kind kind) {
  return kind == Kind::text || kind == Kind::bytes || kind == Kind::bytearray || kind == Kind::big_integer;
}

bool has_items(Kind kind) {
  return kind == Kind::tuple || kind == Kind::list || kind == Kind::set || kind == Kind::frozenset ||
         kind == Kind::object;
}

}  // namespace

std::string_view Graph::chars(NodeId id) const noexcept {
  const Node& node = nodes_[id];
  if (!has_chars(node.kind) || node.is_far) return {};
  return {node.chars, node.extra};
}

std::uint64_t Graph::length(NodeId id) const noexcept {
  const Node& node = nodes_[id];
  if (has_chars(node.kind)) return node.is_far ? node.far_bytes : node.extra;
  if (node.kind == Kind::dict) return node.count / 2;
  return has_items(node.kind) ? node.count : 0;
}

std::string Graph::read_chars(NodeId id) const {
  const Node& node = nodes_[id];
  if (!node.is_far) return std::string(chars(id));
  std::string all(static_cast<std::size_t>(node.far_bytes), '\0');
  source_->read_at(node.offset, std::as_writable_bytes(std::span(all)));
  return all;
}

Graph::Items Graph::items(NodeId id) const noexcept {
  const Node& node = nodes_[id];
  return {links_.data(), has_items(node.kind) ? node.first : 0};
}

std::vector<NodeId> Graph::item_list(NodeId id) const {
  std::vector<NodeId> list;
  for (const NodeId item : items(id)) list.push_back(item);
  return list;
}

Graph::Items Graph::pairs(NodeId id) const noexcept {
  const Node& node = nodes_[id];
  if (node.kind == Kind::object) return {links_.data(), objects_[node.extra].pairs_first};
  return {links_.data(), node.kind == Kind::dict ? node.first : 0};
}

bool Graph::is_global(NodeId id, std::string_view module, std::string_view name) const noexcept {
  if (nodes_[id].kind != Kind::global) return false;
  const GlobalName& global = globals_[nodes_[id].extra];
  return global.name == name && (global.module == module || python3_module(global.module) == module);
}

NodeId Graph::add(Kind kind, std::uint64_t offset) {
  Node node;
  node.kind = kind;
  node.offset = offset;
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId Graph::add_boolean(bool value, std::uint64_t offset) {
  const NodeId id = add(Kind::boolean, offset);
  nodes_[id].integer = value ? 1 : 0;
  return id;
}

NodeId Graph::add_integer(std::int64_t value, std::uint64_t offset) {
  const NodeId id = add(Kind::integer, offset);
  nodes_[id].integer = value;
  return id;
}

NodeId Graph::add_real(double value, std::uint64_t offset) {
  const NodeId id = add(Kind::real, offset);
  nodes_[id].real = value;
  return id;
}

NodeId Graph::add_chars(Kind kind, std::string_view chars, std::uint64_t offset) {
  const std::string_view kept = keep(chars);
  const NodeId id = add(kind, offset);
  nodes_[id].chars = kept.data();
  nodes_[id].extra = static_cast<std::uint32_t>(kept.size());
  return id;
}

NodeId Graph::add_far(Kind kind, std::uint64_t first_byte, std::uint64_t size) {
  const NodeId id = add(kind, first_byte);
  nodes_[id].is_far = true;
  nodes_[id].far_bytes = size;
  return id;
}

NodeId Graph::add_global(std::string_view module, std::string_view name, std::uint64_t offset) {
  const NodeId id = add(Kind::global, offset);
  nodes_[id].extra = static_cast<std::uint32_t>(globals_.size());
  globals_.push_back({keep(module), keep(name), offset});
  return id;
}

NodeId Graph::add_global(NodeId module, NodeId name, std::uint64_t offset) {
  const NodeId id = add(Kind::global, offset);
  nodes_[id].extra = static_cast<std::uint32_t>(globals_.size());
  globals_.push_back({chars(module), chars(name), offset});
  return id;
}

NodeId Graph::add_object(Making making, NodeId callee, NodeId arguments, NodeId keywords, std::uint64_t offset) {
  ObjectParts parts;
  parts.callee = callee;
  parts.arguments = arguments;
  parts.keywords = keywords;
  const NodeId id = add(Kind::object, offset);
  nodes_[id].making = making;
  nodes_[id].extra = static_cast<std::uint32_t>(objects_.size());
  objects_.push_back(parts);
  return id;
}

NodeId Graph::add_persistent(NodeId id, std::uint64_t offset) {
  const NodeId persistent = add(Kind::persistent, offset);
  nodes_[persistent].first = id;
  return persistent;
}

void Graph::append(NodeId container, NodeId item) {
  Node& node = nodes_[container];
  link(item, node.first, node.last);
  ++node.count;
}

void Graph::set_item(NodeId target, NodeId key, NodeId value) {
  Node& node = nodes_[target];
  if (node.kind == Kind::object) {
    ObjectParts& parts = objects_[node.extra];
    link(key, parts.pairs_first, parts.pairs_last);
    link(value, parts.pairs_first, parts.pairs_last);
    ++parts.pairs_count;
  } else {
    link(key, node.first, node.last);
    link(value, node.first, node.last);
    node.count += 2;
  }
}

void Graph::set_state(NodeId object, NodeId state) { objects_[nodes_[object].extra].state = state; }

void Graph::link(NodeId item, std::uint32_t& first, std::uint32_t& last) {
  links_.push_back({item, 0});
  const auto added = static_cast<std::uint32_t>(links_.size());
  (last == 0 ? first : links_[last - 1].next) = added;
  last = added;
}

// Copies go one after the other into arenas that grow with the graph; what would waste much of one gets its own.
std::string_view Graph::keep(std::string_view chars) {
  if (chars.empty()) return {};
  char* to = nullptr;
  if (chars.size() <= room_bytes_) {
    to = std::exchange(room_, room_ + chars.size());
    room_bytes_ -= chars.size();
  } else if (chars.size() > kSmallestArena / 4 && chars.size() > arena_bytes_ / 4) {
    to = arenas_.emplace_back(std::make_unique_for_overwrite<char[]>(chars.size())).get();
  } else {
    arena_bytes_ = std::clamp(2 * arena_bytes_, kSmallestArena, kLargestArena);
    to = arenas_.emplace_back(std::make_unique_for_overwrite<char[]>(arena_bytes_)).get();
    room_ = to + chars.size();
    room_bytes_ = arena_bytes_ - chars.size();
  }
  std::memcpy(to, chars.data(), chars.size());
  return {to, chars.size()};
}

}  // namespace ballast::pickle
