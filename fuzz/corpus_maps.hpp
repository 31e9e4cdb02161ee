// The inputs that fuzzing maps begins with: a map of each kind, for the names that weight_map_fuzz.cpp has.
#pragma once

#include <string>
#include <vector>

namespace ballast::fuzz {

inline std::vector<std::string> maps() {
  std::vector<std::string> inputs = {""};
  for (const char* rules : {
           R"({"from": "model.{x}", "to": "{x}"})",
           R"({"from": ["{x}.q.weight", "{x}.k.weight"], "to": ["{x}.k.weight", "{x}.q.weight"]})",
           R"({"from": ["{x}.q.weight", "{x}.k.weight", "{x}.v.weight"], "to": "{x}.qkv.weight", "concat": 0})",
           R"({"from": "{x}.up.weight", "to": ["{x}.a.weight", "{x}.b.weight"], "split": 0, "sizes": [1, 3]})",
           R"({"from": "{x}.experts.{n}.w", "to": "{x}.experts.w", "stack": 0, "count": 3})",
           R"({"from": "{x}.up.weight", "to": "{x}.up.{n}.weight", "unstack": 1})",
           R"({"from": "{x}.up.weight", "permute": [1, 0]})",
           R"({"from": "{x}.up.weight", "permute": [1, 0], "fit": [0, "{x}.norm.weight"]})",
           R"x({"from": "{x}.up.weight", "reshape": ["a (2 b)", "(a b) 2"]})x",
           R"({"from": "{x}.q.weight", "interleave": 2})",
           R"({"from": "{x}.q.weight", "separate": 2})",
           R"({"from": "{x}.norm.weight", "add": 1})",
           R"({"rename": "^model\\.layers\\.(\\d+)\\.", "to": "blocks.\\1."})",
           R"({"from": "{x}.norm.{p}", "to": "{x}.norm1.{p}", "if": "{x}.norm.{p}", "unless": "{x}.norm1.{p}"})",
           R"({"from": "{x}.weight", "to": "{x}.w", "except": ["model.norm.weight"], "optional": true})",
           R"({"from": "model.{x}", "to": "{x}"}, {"from": "{x}.up.weight", "permute": [1, 0]})",
       })
    inputs.push_back("{\"rules\": [" + std::string(rules) + "]}");
  return inputs;
}

}  // namespace ballast::fuzz
