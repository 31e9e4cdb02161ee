// index.json: whatever the text says, it gives an index in which every name stays in its folder, or an Error.
// simdjson's DOM is the second opinion:
//
//   If we read a text, the DOM reads it too, and both see the same places.
//   If the DOM reads a text, we read it too, or refuse it for one of our deliberate reasons.
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <ballast/error.hpp>

#include "checkpoint/recognize/shard_index.hpp"
#include "second_opinion.hpp"

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

// The name is one component of a path: no system takes any of it for a separator or for another folder.
bool stays_in_its_folder(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), [](char c) { return c == '/' || c == '\\' || c == '\0'; });
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

using Places = std::map<std::string, std::string>;

Places seen_by_us(const ShardIndex& index) {
  Places places;
  for (const ShardIndex::Place& place : index.weight_map) places.emplace(place.tensor, index.files[place.file]);
  return places;
}

std::optional<Places> second_opinion(const std::string& text) {
  dom::parser parser;
  dom::element document;
  dom::object root, weight_map;
  if (parser.parse(text).get(document) != simdjson::SUCCESS || document.get(root) != simdjson::SUCCESS) return {};
  if (has_a_key_twice(document) || root["weight_map"].get(weight_map) != simdjson::SUCCESS) return {};
  Places places;
  for (const auto& [tensor, file] : weight_map) {
    std::string_view name;
    if (file.get(name) != simdjson::SUCCESS) return {};
    if (!stays_in_its_folder(std::string(name))) return {};
    places.emplace(tensor, name);
  }
  return places;
}

bool is_on_purpose(const Error& error) {
  const auto says = [&](const char* reason) { return error.message().find(reason) != std::string::npos; };
  return says("nested deeper than") || says("a number does not fit 64 bits");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto theirs = second_opinion(text);
  try {
    const ShardIndex index = ballast::parse_shard_index(text, {});
    check_invariants(index);
    require(theirs.has_value(), "we read what the second opinion refuses");
    require(seen_by_us(index) == *theirs, "both read it, but not alike");
  } catch (const Error& error) {
    require(error.code() == Errc::malformed || error.code() == Errc::unsupported || error.code() == Errc::unsafe ||
                error.code() == Errc::limit,
            "an odd kind of error");
    require(!error.message().empty() && error.message().size() < 2000, "a message that nobody would read");
    require(!error.offset() || *error.offset() <= size, "a byte outside of the text");
    require(!theirs || is_on_purpose(error), "we refuse what the second opinion reads");
  }
  return 0;
}
