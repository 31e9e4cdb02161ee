#include "ls_documents.hpp"

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

#include <ballast/listing.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../place.hpp"
#include "../table.hpp"
#include "../tree_text.hpp"

namespace ballast::cli {
namespace {

// The names of the parts of sparse, quantized and nested tensors, with the layout that each part belongs to.
std::unordered_map<std::string_view, std::string_view> layouts_of(const Checkpoint& checkpoint) {
  std::unordered_map<std::string_view, std::string_view> layouts;
  for (const Composite& composite : checkpoint.composites) {
    for (const std::string& part : composite.parts) layouts.emplace(part, composite.layout);
  }
  return layouts;
}

void write_node(JsonWriter& json, const TreeNode& node, std::uint64_t all_bytes) {
  json.begin_object();
  json.field("path", node.path);
  json.field("name", node.name());
  json.field("depth", node.depth);
  json.field("children", node.children);
  json.field("prefixes", node.folded);
  json.field("tensors", node.tensors);
  json.field("parameters", node.parameters);
  json.field("bytes", node.bytes);
  json.field("share", share_of(node.bytes, all_bytes));
  if (node.shared_bytes > 0) json.field("shared_bytes", node.shared_bytes);
  if (!node.dtype.empty()) {
    json.field("dtype", node.dtype);
    json.array_field("shape", node.shape);
  }
  json.end();
}

void write_tree_json(JsonWriter& json, const Tree& tree) {
  json.key("total");
  json.begin_object();
  json.field("tensors", tree.totals.tensors);
  json.field("parameters", tree.totals.parameters);
  json.field("bytes", tree.totals.bytes);
  json.end();
  json.key("tree");
  json.begin_array(JsonWriter::Layout::lines);
  for (const TreeNode& node : tree.nodes) write_node(json, node, tree.totals.bytes);
  json.end();
}

void write_duplicates_json(JsonWriter& json, const Checkpoint& checkpoint, const std::vector<Duplicates>& duplicates) {
  json.key("duplicates");
  json.begin_array(JsonWriter::Layout::lines);
  for (const Duplicates& same : duplicates) {
    json.begin_object();
    json.key("tensors");
    json.begin_array();
    for (const std::size_t i : same.tensors) json.value(checkpoint.tensors[i].name);
    json.end();
    json.field("bytes", same.bytes);
    json.field("copies", same.copies);
    json.end();
  }
  json.end();
}

// Brings what the rows after this one show into the cache: in natural order, tensors lie here and there in memory, and
// with a hundred thousand of them a quarter of the time was spent waiting for it.
void fetch_later_rows(const Checkpoint& checkpoint, std::span<const std::size_t> numbers, std::size_t row) {
  constexpr std::size_t kNames = 4, kEntries = 8;  // a name is fetched when its entry is there
  constexpr std::size_t kCacheLine = 64;
  if (row + kEntries >= numbers.size()) return;
  const StateDict::Entry& entry = checkpoint.tensors[numbers[row + kEntries]];
  for (std::size_t i = 0; i < sizeof entry; i += kCacheLine)
    __builtin_prefetch(reinterpret_cast<const char*>(&entry) + i);
  __builtin_prefetch(checkpoint.tensors[numbers[row + kNames]].name.data());
}

}  // namespace

void write_list_json(Session& session, const Listing& listing) {
  const Checkpoint& checkpoint = listing.checkpoint;
  JsonWriter json(session.out, "ballast.ls/1");
  json.field("target", checkpoint.target);
  json.field("format", name(checkpoint.format));
  json.field("shards", checkpoint.shards);
  json.key("tensors");
  json.begin_array(JsonWriter::Layout::lines);
  Places places(checkpoint);
  const auto layouts = layouts_of(checkpoint);
  for (const std::size_t i : listing.numbers) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    const TensorDescription description = describe_tensor(checkpoint, i);
    const auto place = places.of(tensor);
    json.begin_object();
    json.field("name", name);
    json.field("dtype", description.dtype);
    json.array_field("shape", description.shape);
    json.field("numel", description.numel());
    json.field("bytes", tensor.nbytes());
    const auto layout = layouts.find(name);
    json.field("layout", layout == layouts.end() ? "strided" : layout->second);
    place ? json.field("file", place->file) : json.field("file", nullptr);
    place && place->offset ? json.field("offset", *place->offset) : json.field("offset", nullptr);
    json.field("contiguous", tensor.is_contiguous());
    json.field("data", tensor.has_data());
    if (const auto alias = checkpoint.aliases.find(name); alias != checkpoint.aliases.end())
      json.field("alias_of", alias->second);
    json.end();
  }
  json.end();
  if (listing.tree) write_tree_json(json, tree_of(checkpoint, listing.numbers, *listing.tree));
  if (listing.duplicates) write_duplicates_json(json, checkpoint, *listing.duplicates);
  json.finish();
}

void write_list_text(Session& session, const Listing& listing) {
  const Checkpoint& checkpoint = listing.checkpoint;
  const bool has_numel = listing.has_numel;
  std::vector<Table::Column> columns = {
      {}, {.color = Color::cyan, .drop = 1, .title = "dtype"}, {.drop = 2, .title = "shape"}};
  if (has_numel) columns.push_back({.right = true, .drop = 3, .title = "elements"});
  columns.push_back({.right = true, .color = Color::green});
  columns.push_back({.color = Color::dim, .drop = 4, .title = "aliases"});
  Table table(session.out, session.screen, columns);
  std::array<std::string, 6> cells;  // reused for every row: with a hundred thousand rows, allocations can be measured
  const std::size_t bytes = has_numel ? 4 : 3;
  for (std::size_t row = 0; row < listing.numbers.size(); ++row) {
    fetch_later_rows(checkpoint, listing.numbers, row);
    const std::size_t i = listing.numbers[row];
    const auto& [name, tensor] = checkpoint.tensors[i];
    TensorDescription description = describe_tensor(checkpoint, i);
    cells[0].clear();
    append_escaped(cells[0], name);
    cells[1] = std::move(description.dtype);
    cells[2] = to_string(description.shape);
    if (has_numel) cells[3] = session.screen.count(description.numel());
    cells[bytes] = session.screen.bytes(tensor.nbytes());
    const auto alias = checkpoint.aliases.find(name);
    const bool is_alias = alias != checkpoint.aliases.end();
    if (is_alias) cells[bytes + 1] = "= " + escape_for_terminal(alias->second);
    table.row(std::span(cells).first(is_alias ? bytes + 2 : bytes + 1));
  }
  table.finish();
}

}  // namespace ballast::cli
