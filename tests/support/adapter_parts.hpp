// State dicts, configurations and adapters in a line, for tests of names and shapes.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/adapter.hpp>

#include "builders/temp_dir.hpp"

namespace ballast::test {

// The values are first, first + 1, ...
inline Tensor counting(const Shape& shape, float first = 1) {
  std::vector<float> values(*shape.numel());
  std::iota(values.begin(), values.end(), first);
  return Tensor::from_values<float>(DType::f32, shape, values);
}

// Each tensor begins with a different number.
inline StateDict state_of(const std::vector<std::pair<std::string, Shape>>& tensors) {
  StateDict state;
  float first = 1;
  for (const auto& [name, shape] : tensors) state.insert(name, counting(shape, first += 100));
  return state;
}

inline std::vector<std::string> sorted_names(const StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

inline AdapterConfig config_of(std::string_view text) { return AdapterConfig::parse(text); }

inline constexpr std::string_view kLora = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"]})";

// A of "q" has 3 columns, B has 4 rows.
inline Adapter small_lora(std::string_view config = kLora) {
  return {
      .config = config_of(config),
      .tensors = state_of({{"base_model.model.q.lora_A.weight", {2, 3}}, {"base_model.model.q.lora_B.weight", {4, 2}}}),
      .source = "small"};
}

}  // namespace ballast::test
