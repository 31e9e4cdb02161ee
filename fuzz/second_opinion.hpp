// Code that the differential targets share about simdjson's DOM, the second opinion.
#pragma once

#include <simdjson.h>

#include <set>
#include <string_view>
#include <vector>

// The DOM keeps both of two equal keys; every format here refuses them, at every depth.
inline bool has_a_key_twice(simdjson::dom::element root) {
  std::vector<simdjson::dom::element> pending{root};
  while (!pending.empty()) {
    const simdjson::dom::element element = pending.back();
    pending.pop_back();
    simdjson::dom::array array;
    simdjson::dom::object object;
    if (element.get(array) == simdjson::SUCCESS) {
      for (const simdjson::dom::element child : array) pending.push_back(child);
    } else if (element.get(object) == simdjson::SUCCESS) {
      std::set<std::string_view> keys;
      for (const auto& [key, child] : object) {
        if (!keys.insert(key).second) return true;
        pending.push_back(child);
      }
    }
  }
  return false;
}
