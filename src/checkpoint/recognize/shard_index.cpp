#include "checkpoint/recognize/shard_index.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <charconv>
#include <deque>
#include <numeric>
#include <utility>

#include "core/json_text.hpp"
#include "core/name_hash.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

constexpr std::size_t kSample = 64;  // entries that are read before memory for the rest is reserved

class IndexParser {
 public:
  IndexParser(std::shared_ptr<const PaddedText> text, const Limits& limits,
              const std::function<void(const std::string&)>& on_file)
      : text_(std::move(text)), json_(*text_, 0, limits.max_json_depth), limits_(limits), on_file_(on_file) {}

  // {"metadata": {...}, "weight_map": {TENSOR: FILE, ...}}
  ShardIndex parse() {
    index_.text = text_;
    json_.check_utf8();
    if (!json_.take('{')) json_.fail("the index is no JSON object");
    bool has_weight_map = false;
    for_each_member([&](std::string_view key) {
      if (key == "weight_map") {
        has_weight_map = true;
        weight_map();
      } else if (key == "metadata" && json_.take('{')) {
        for_each_member([&](std::string_view field) { metadata(std::string(field)); });
      } else {
        json_.skip_value(/*depth=*/2);
      }
    });
    json_.skip_space();
    if (!json_.at_end()) json_.fail("more text after the end of the index");
    if (!has_weight_map) {
      throw Error(Errc::unsupported, "this JSON has no \"weight_map\", so it is not an index of shards")
          .hint("give the folder, or the file with the weights");
    }
    sort_files();
    return std::move(index_);
  }

 private:
  // Begins behind the brace. Calls `member` behind the colon of each key.
  template <class Member>
  void for_each_member(const Member& member) {
    KeysOfObject keys;
    if (json_.take('}')) return;
    do {
      const std::string_view key = json_.string("a key").value;
      keys.add(key);
      json_.expect(':', "after a key");
      member(key);
    } while (json_.take(','));
    if (keys.has_one_twice()) json_.fail("an object of the index has the same key twice");
    json_.expect('}', "or ',' after a member");
  }

  void metadata(std::string key) {
    json_.skip_space();
    const char* start = json_.mark();
    if (json_.take('"')) {
      json_.return_to(start);
      if (index_.metadata.size() == limits_.max_metadata_keys)
        throw Error(Errc::limit, "the index has more than " + std::to_string(limits_.max_metadata_keys) + " metadata")
            .at_byte(json_.byte())
            .hint(raise_limit("max_metadata_keys"));
      index_.metadata.emplace(std::move(key), json_.string("a value").value);
      return;
    }
    json_.skip_value(/*depth=*/3);
    if (key == "total_size") total_size(json_.since(start));
  }

  // Some writers have divided and multiplied the number, so it is not an integer any more.
  void total_size(std::string_view text) {
    double number = -1;
    std::uint64_t size = 0;
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, size).ptr == end) {
      index_.total_size = size;
    } else if (std::from_chars(text.data(), end, number).ptr == end && number >= 0 && number < 0x1p63) {
      index_.total_size = static_cast<std::uint64_t>(number);
    }
  }

  void weight_map() {
    json_.expect('{', "to begin \"weight_map\"");
    if (json_.take('}')) return;
    const std::uint64_t start = json_.byte();
    do {
      if (index_.weight_map.size() == kSample) {
        // Entries are about equally long: the first few tell how many there will be.
        index_.weight_map.reserve(text_->view().size() / ((json_.byte() - start) / kSample + 1) + kSample);
      }
      const auto name = json_.string("a tensor's name");
      const std::string_view tensor = name.in_text ? name.value : keep(name.value);
      index_.names_sum += hash_name(tensor);
      json_.expect(':', "after a tensor's name");
      json_.skip_space();
      const std::uint64_t byte = json_.byte();
      index_.weight_map.push_back({tensor, number_of(json_.string("the name of a file").value, tensor, byte)});
    } while (json_.take(','));
    json_.expect('}', "or ',' in \"weight_map\"");
  }

  // A name with escapes does not stand in the text in its final form, so it is stored apart.
  std::string_view keep(std::string_view name) {
    if (!unescaped_) index_.unescaped = unescaped_ = std::make_shared<std::deque<std::string>>();
    return unescaped_->emplace_back(name);
  }

  // Tensors of one file mostly follow each other.
  std::uint32_t number_of(std::string_view file, std::string_view tensor, std::uint64_t byte) {
    if (!index_.files.empty() && file == index_.files[last_file_]) return last_file_;
    const auto known = numbers_.find(std::string(file));
    if (known != numbers_.end()) return last_file_ = known->second;
    if (!is_basename(file)) {
      throw Error(Errc::unsafe, "the index names the file " + quote(file) + " for tensor " + quote(tensor) +
                                    ", which is not in its own folder")
          .at_byte(byte);
    }
    if (index_.files.size() == limits_.max_shards) {
      throw Error(Errc::limit, "the index names more than " + std::to_string(limits_.max_shards) + " files")
          .at_byte(byte)
          .hint(raise_limit("max_shards"));
    }
    last_file_ = static_cast<std::uint32_t>(index_.files.size());
    index_.files.emplace_back(file);
    numbers_.emplace(file, last_file_);
    if (on_file_) on_file_(index_.files.back());
    return last_file_;
  }

  void sort_files() {
    std::vector<std::uint32_t> order(index_.files.size()), rank(index_.files.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return index_.files[a] < index_.files[b]; });
    std::vector<std::string> sorted;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      rank[order[i]] = i;
      sorted.push_back(std::move(index_.files[order[i]]));
    }
    index_.files = std::move(sorted);
    for (ShardIndex::Place& place : index_.weight_map) place.file = rank[place.file];
  }

  std::shared_ptr<const PaddedText> text_;
  JsonText json_;
  const Limits& limits_;
  const std::function<void(const std::string&)>& on_file_;
  ShardIndex index_;
  NameMap<std::uint32_t> numbers_;  // of files
  std::uint32_t last_file_ = 0;
  std::shared_ptr<std::deque<std::string>> unescaped_;  // names, made when first needed
};

}  // namespace

bool is_basename(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

ShardIndex parse_shard_index_early(std::shared_ptr<const PaddedText> text, const Limits& limits,
                                   const std::function<void(const std::string& file)>& on_file) {
  return IndexParser(std::move(text), limits, on_file).parse();
}

void refuse_repeated_tensors(const ShardIndex& index) {
  KeysOfObject keys;
  keys.reserve(index.weight_map.size());
  for (const ShardIndex::Place& place : index.weight_map) {
    keys.add(place.tensor);
    if (keys.has_one_twice())
      throw Error(Errc::malformed, "\"weight_map\" has tensor " + quote(place.tensor) + " twice");
  }
}

ShardIndex parse_shard_index(std::shared_ptr<const PaddedText> text, const Limits& limits) {
  ShardIndex index = parse_shard_index_early(std::move(text), limits, {});
  refuse_repeated_tensors(index);
  return index;
}

ShardIndex parse_shard_index(std::string_view json, const Limits& limits) {
  return parse_shard_index(std::make_shared<const PaddedText>(json), limits);
}

}  // namespace ballast
