#include "formats/pickle/graph.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
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
  return kind == Kind::tuple || kind == Kind::list || kind == Kind::set || kind == Kind::frozenset;
}

}  // namespace

Node Graph::operator[](NodeId id) const noexcept {
  const Packed& packed = nodes_[id];
  Node node;
  node.kind = packed.kind;
  if (packed.kind == Kind::object) node.making = Making{static_cast<std::uint8_t>(packed.form & ~kAltered)};
  if (packed.kind == Kind::integer || packed.kind == Kind::boolean) {
    node.integer = packed.form == kWide ? std::bit_cast<std::int64_t>(numbers_[packed.payload])
                                        : std::bit_cast<std::int32_t>(packed.payload);
  }
  if (packed.kind == Kind::real) node.real = std::bit_cast<double>(numbers_[packed.payload]);
  node.is_far = has_chars(packed.kind) && is_far(packed);
  node.offset = node.is_far ? far_[packed.payload].first : opcode_offset(id);
  return node;
}

std::uint64_t Graph::opcode_offset(NodeId id) const noexcept {
  const auto behind = std::ranges::upper_bound(bases_, id, {}, &Base::first);
  return std::prev(behind)->offset + nodes_[id].behind;
}

std::string_view Graph::chars_at(std::uint32_t place) const noexcept {
  if (place == kNoChars) return {};
  std::uint32_t size = 0;
  std::memcpy(&size, chars_[place] - sizeof size, sizeof size);
  return {chars_[place], size};
}

std::string_view Graph::chars(NodeId id) const noexcept {
  const Packed& node = nodes_[id];
  return has_chars(node.kind) && !is_far(node) ? chars_at(node.payload) : std::string_view();
}

std::uint64_t Graph::length(NodeId id) const noexcept {
  const Packed& node = nodes_[id];
  if (has_chars(node.kind)) return is_far(node) ? far_[node.payload].size : chars_at(node.payload).size();
  return node.kind == Kind::dict ? links_.count(pairs_of(id)) / 2 : links_.count(items_of(id));
}

std::string Graph::read_chars(NodeId id) const {
  const Node node = (*this)[id];
  if (!node.is_far) return std::string(chars(id));
  std::string all(static_cast<std::size_t>(length(id)), '\0');
  source_->read(node.offset, std::as_writable_bytes(std::span(all)));
  return all;
}

Links::Extent Graph::items_of(NodeId id) const noexcept {
  const Packed& node = nodes_[id];
  if (node.kind == Kind::object) return more_of(id).items;
  return has_items(node.kind) ? Links::Extent{node.payload, Links::Form{node.form}} : Links::Extent{};
}

Links::Extent Graph::pairs_of(NodeId id) const noexcept {
  const Packed& node = nodes_[id];
  if (node.kind == Kind::object) return more_of(id).pairs;
  return node.kind == Kind::dict ? Links::Extent{node.payload, Links::Form{node.form}} : Links::Extent{};
}

Graph::Items Graph::items(NodeId id) const noexcept { return links_.items(items_of(id)); }

std::vector<NodeId> Graph::item_list(NodeId id) const {
  std::vector<NodeId> list;
  for (const NodeId item : items(id)) list.push_back(item);
  return list;
}

Graph::Items Graph::pairs(NodeId id) const noexcept { return links_.items(pairs_of(id)); }

Graph::ObjectMore Graph::more_of(NodeId object) const noexcept {
  const std::uint32_t more = objects_[nodes_[object].payload].more;
  return more == 0 ? ObjectMore{} : more_[more - 1];
}

ObjectParts Graph::object(NodeId id) const noexcept {
  const Object& object = objects_[nodes_[id].payload];
  const ObjectMore more = more_of(id);
  return {object.callee, object.arguments, more.keywords, more.state, links_.count(more.pairs) / 2};
}

GlobalName Graph::global_at(std::size_t number) const noexcept {
  const Mention& mention = mentions_[number];
  return {chars_at(mention.module), chars_at(mention.name), opcode_offset(mention.node)};
}

bool Graph::is_global(NodeId id, std::string_view module, std::string_view name) const noexcept {
  if (nodes_[id].kind != Kind::global) return false;
  const GlobalName global = this->global(id);
  return global.name == name && (global.module == module || python3_module(global.module) == module);
}

NodeId Graph::add_packed(Kind kind, std::uint32_t payload, std::uint8_t form, std::uint64_t offset) {
  constexpr std::uint64_t kReach = 0xFFFF;
  const auto id = static_cast<NodeId>(nodes_.size());
  if (bases_.empty() || offset < bases_.back().offset || offset - bases_.back().offset > kReach)
    bases_.push_back({id, offset});
  nodes_.push_back({payload, static_cast<std::uint16_t>(offset - bases_.back().offset), kind, form});
  return id;
}

NodeId Graph::add(Kind kind, std::uint64_t offset) { return add_packed(kind, 0, kPlain, offset); }

NodeId Graph::add_none(std::uint64_t offset) {
  if (none_ == kNoNode) none_ = add(Kind::none, offset);
  return none_;
}

NodeId Graph::add_boolean(bool value, std::uint64_t offset) {
  NodeId& known = value ? true_ : false_;
  if (known == kNoNode) known = add_packed(Kind::boolean, value ? 1 : 0, kPlain, offset);
  return known;
}

NodeId Graph::add_integer(std::int64_t value, std::uint64_t offset) {
  if (const auto narrow = static_cast<std::int32_t>(value); narrow == value)
    return add_packed(Kind::integer, std::bit_cast<std::uint32_t>(narrow), kPlain, offset);
  numbers_.push_back(std::bit_cast<std::uint64_t>(value));
  return add_packed(Kind::integer, static_cast<std::uint32_t>(numbers_.size() - 1), kWide, offset);
}

NodeId Graph::add_real(double value, std::uint64_t offset) {
  numbers_.push_back(std::bit_cast<std::uint64_t>(value));
  return add_packed(Kind::real, static_cast<std::uint32_t>(numbers_.size() - 1), kPlain, offset);
}

NodeId Graph::add_chars(Kind kind, std::string_view chars, std::uint64_t offset) {
  return add_packed(kind, keep(chars), kPlain, offset);
}

NodeId Graph::add_far(Kind kind, std::uint64_t first_byte, std::uint64_t size) {
  far_.push_back({first_byte, size});
  return add_packed(kind, static_cast<std::uint32_t>(far_.size() - 1), kFar, first_byte);
}

NodeId Graph::add_mention(std::uint32_t module, std::uint32_t name, std::uint64_t offset) {
  mentions_.push_back({static_cast<NodeId>(nodes_.size()), module, name});
  return add_packed(Kind::global, static_cast<std::uint32_t>(mentions_.size() - 1), kPlain, offset);
}

NodeId Graph::add_global(std::string_view module, std::string_view name, std::uint64_t offset) {
  const std::uint32_t kept_module = keep(module);
  return add_mention(kept_module, keep(name), offset);
}

NodeId Graph::add_global(NodeId module, NodeId name, std::uint64_t offset) {
  return add_mention(nodes_[module].payload, nodes_[name].payload, offset);
}

NodeId Graph::add_object(Making making, NodeId callee, NodeId arguments, NodeId keywords, std::uint64_t offset) {
  objects_.push_back({callee, arguments, 0});
  const auto place = static_cast<std::uint32_t>(objects_.size() - 1);
  const NodeId id = add_packed(Kind::object, place, static_cast<std::uint8_t>(making), offset);
  if (keywords != kNoNode) make_more_of(id).keywords = keywords;
  return id;
}

NodeId Graph::add_persistent(NodeId id, std::uint64_t offset) {
  return add_packed(Kind::persistent, id, kPlain, offset);
}

Graph::ObjectMore& Graph::make_more_of(NodeId object) {
  std::uint32_t& more = objects_[nodes_[object].payload].more;
  if (more == 0) {
    more_.push_back({});
    more = static_cast<std::uint32_t>(more_.size());
  }
  return more_[more - 1];
}

// Adds to the links of a container, or to the links of an object that `which` names.
template <class Add>
void Graph::add_links(NodeId target, Links::Extent ObjectMore::*which, const Add& add) {
  Packed& node = nodes_[target];
  if (node.kind == Kind::object) return add(make_more_of(target).*which);
  Links::Extent extent{node.payload, Links::Form{node.form}};
  add(extent);
  node.payload = extent.at;
  node.form = static_cast<std::uint8_t>(extent.form);
}

void Graph::append(NodeId container, NodeId item) {
  add_links(container, &ObjectMore::items, [&](Links::Extent& extent) { links_.append(item, extent); });
}

void Graph::set_item(NodeId target, NodeId key, NodeId value) {
  add_links(target, &ObjectMore::pairs, [&](Links::Extent& extent) { links_.append_pair(key, value, extent); });
}

void Graph::append_from(FlatArray<NodeId>& stack, std::size_t first, NodeId container) {
  add_links(container, &ObjectMore::items, [&](Links::Extent& extent) { links_.append_from(stack, first, extent); });
}

void Graph::set_items_from(FlatArray<NodeId>& stack, std::size_t first, NodeId target) {
  add_links(target, &ObjectMore::pairs, [&](Links::Extent& extent) { links_.append_from(stack, first, extent); });
}

void Graph::set_state(NodeId object, NodeId state) {
  NodeId& kept = make_more_of(object).state;
  if (kept != kNoNode) set_altered(object);
  kept = state;
}

void Graph::set_altered(NodeId id) {
  if (can_be_altered(id)) nodes_[id].form |= kAltered;
}

// Copies lie one after the other in arenas, each behind its length.
std::uint32_t Graph::keep(std::string_view chars) {
  if (chars.empty()) return kNoChars;
  const auto size = static_cast<std::uint32_t>(chars.size());
  char* to = room_for(sizeof size + chars.size());
  std::memcpy(to, &size, sizeof size);
  std::memcpy(to + sizeof size, chars.data(), chars.size());
  chars_.push_back(to + sizeof size);
  return static_cast<std::uint32_t>(chars_.size() - 1);
}

// Arenas grow with the graph; a copy that would waste much of an arena gets its own.
char* Graph::room_for(std::size_t size) {
  if (size <= room_bytes_) {
    room_bytes_ -= size;
    return std::exchange(room_, room_ + size);
  }
  if (size > kSmallestArena / 4 && size > arena_bytes_ / 4)
    return arenas_.emplace_back(std::make_unique_for_overwrite<char[]>(size)).get();
  arena_bytes_ = std::clamp(2 * arena_bytes_, kSmallestArena, kLargestArena);
  char* const arena = arenas_.emplace_back(std::make_unique_for_overwrite<char[]>(arena_bytes_)).get();
  room_ = arena + size;
  room_bytes_ = arena_bytes_ - size;
  return arena;
}

}  // namespace ballast::pickle
