#include "checkpoint/shard_index.hpp"

#include <ballast/error.hpp>

#include <simdjson.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/name_hash.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

namespace dom = simdjson::dom;

Error malformed(const std::string& what) { return Error(Errc::malformed, what); }

// A key that is there twice, if any. Hashes are sorted instead of names: an index has a hundred thousand of them.
std::optional<std::string_view> repeated_key(const dom::object& object) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(object.size());
  for (const auto& [key, value] : object) hashes.push_back(hash_name(key));
  std::sort(hashes.begin(), hashes.end());
  if (std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end()) return std::nullopt;

  std::vector<std::string_view> keys;
  for (const auto& [key, value] : object) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  return twice == keys.end() ? std::nullopt : std::optional(*twice);
}

// The parser would keep the last of two equal keys and another reader the first, so we refuse both.
// Iterative: how deep a text is nested is bounded by the parser, not by our stack.
void refuse_repeated_keys(dom::element root) {
  std::vector<dom::element> pending{root};
  const auto add = [&](dom::element child) {
    if (child.is_object() || child.is_array()) pending.push_back(child);
  };
  while (!pending.empty()) {
    const dom::element element = pending.back();
    pending.pop_back();
    dom::array array;
    dom::object object;
    if (element.get(array) == simdjson::SUCCESS) {
      for (const dom::element child : array) add(child);
    } else if (element.get(object) == simdjson::SUCCESS) {
      if (const auto key = repeated_key(object)) throw malformed("the index has the key " + quote(*key) + " twice");
      for (const auto& [key, child] : object) add(child);
    }
  }
}

void read_metadata(ShardIndex& index, dom::element root) {
  dom::object metadata;
  if (root["metadata"].get(metadata) != simdjson::SUCCESS) return;  // old files have none
  for (const auto& [key, value] : metadata) {
    std::string_view text;
    if (value.get(text) == simdjson::SUCCESS) index.metadata.emplace(key, text);
    if (key != "total_size") continue;
    std::uint64_t size = 0;
    double number = 0;
    if (value.get(size) == simdjson::SUCCESS) {
      index.total_size = size;
    } else if (value.get(number) == simdjson::SUCCESS && number >= 0 && number < 0x1p63) {
      index.total_size = static_cast<std::uint64_t>(number);  // some writers have divided and multiplied
    }
  }
}

void read_weight_map(ShardIndex& index, dom::element root, const Limits& limits) {
  dom::object weight_map;
  if (root["weight_map"].get(weight_map) != simdjson::SUCCESS) {
    throw malformed("this JSON has no \"weight_map\", so it is no index of shards")
        .hint("give the folder, or the file with the weights");
  }
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  std::string_view last_file;
  std::uint32_t last_number = 0;
  index.weight_map.reserve(weight_map.size());
  for (const auto& [tensor, value] : weight_map) {
    std::string_view file;
    if (value.get(file) != simdjson::SUCCESS) throw malformed("the index gives no file name for tensor " + quote(tensor));
    if (index.weight_map.empty() || file != last_file) {
      const auto [place, is_new] = numbers.try_emplace(file, static_cast<std::uint32_t>(numbers.size()));
      if (is_new && !is_basename(file)) {
        throw Error(Errc::unsafe, "the index names the file " + quote(file) + " for tensor " + quote(tensor) +
                                      ", which is not in its own folder");
      }
      if (is_new) index.files.emplace_back(file);
      if (index.files.size() > limits.max_shards) {
        throw Error(Errc::limit, "the index names more than " + std::to_string(limits.max_shards) + " files");
      }
      last_file = file;
      last_number = place->second;
    }
    index.weight_map.push_back({tensor, last_number});
  }
}

void sort_files(ShardIndex& index) {
  std::vector<std::uint32_t> order(index.files.size()), rank(index.files.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return index.files[a] < index.files[b]; });
  std::vector<std::string> sorted;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    sorted.push_back(index.files[order[i]]);
  }
  index.files = std::move(sorted);
  for (ShardIndex::Place& place : index.weight_map) place.file = rank[place.file];
}

}  // namespace

bool is_basename(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

ShardIndex parse_shard_index(std::string_view json, const Limits& limits) {
  // The parser owns the strings: it lives as long as the index.
  const auto parser = std::make_shared<dom::parser>();
  dom::element root;
  const auto error = parser->parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS) {
    throw malformed(std::string("the index is no JSON: ") + simdjson::error_message(error));
  }
  if (!root.is_object()) throw malformed("the index is no JSON object");
  refuse_repeated_keys(root);

  ShardIndex index;
  index.text = parser;
  read_metadata(index, root);
  read_weight_map(index, root, limits);
  sort_files(index);
  return index;
}

}  // namespace ballast
