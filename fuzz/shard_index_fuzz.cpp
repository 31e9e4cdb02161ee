// index.json: whatever it says, it is an index whose every name stays in its folder, or an Error.
// The same text read by a second, slower reader gives the same places.
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <ballast/error.hpp>

#include "checkpoint/shard_index.hpp"

namespace {

namespace dom = simdjson::dom;
using ballast::Errc;
using ballast::Error;
using ballast::ShardIndex;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// One component of a path: nothing that any system takes for a separator or for another folder.
bool stays_in_its_folder(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && std::none_of(name.begin(), name.end(), [](char c) { return c == '/' || c == '\\' || c == '\0'; });
}

void check_invariants(const ShardIndex& index) {
  require(std::is_sorted(index.files.begin(), index.files.end()), "files that are not sorted");
  require(std::set<std::string>(index.files.begin(), index.files.end()).size() == index.files.size(), "a file twice");
  for (const std::string& file : index.files) require(stays_in_its_folder(file), "a name that leads outside");
  std::set<std::string_view> tensors;
  std::set<std::uint32_t> used;
  for (const ShardIndex::Place& place : index.weight_map) {
    require(place.file < index.files.size(), "a place in no file");
    require(tensors.insert(place.tensor).second, "a tensor in two places");
    used.insert(place.file);
  }
  require(used.size() == index.files.size(), "a file that no tensor is in");
}

void compare_with_dom(const ShardIndex& index, const std::string& text) {
  dom::parser parser;
  dom::object weight_map;
  require(parser.parse(text)["weight_map"].get(weight_map) == simdjson::SUCCESS, "an index without a map");
  std::map<std::string, std::string> theirs, ours;
  for (const auto& [tensor, file] : weight_map) theirs.emplace(tensor, file.get_string().value());
  for (const ShardIndex::Place& place : index.weight_map) ours.emplace(place.tensor, index.files[place.file]);
  require(ours == theirs, "other places than the text says");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const ShardIndex index = ballast::parse_shard_index(text, {});
    check_invariants(index);
    compare_with_dom(index, text);
  } catch (const Error& error) {
    require(error.code() == Errc::malformed || error.code() == Errc::unsafe || error.code() == Errc::limit, "an odd kind of error");
    require(!error.message().empty() && error.message().size() < 2000, "a message that nobody would read");
  }
  return 0;
}
