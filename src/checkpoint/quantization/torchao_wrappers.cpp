#include "checkpoint/quantization/torchao_wrappers.hpp"

#include <optional>
#include <string_view>

#include <ballast/error.hpp>
#include <ballast/json.hpp>

namespace ballast {
namespace {

// {"_type": "Int8Tensor", "_tensor_data_names": ["qdata", "scale"]} of "M.weight" are "M._weight_qdata" and so on.
std::optional<TorchaoWrapper> described_wrapper(const std::string& weight, const std::string& text) try {
  const Json json = Json::parse_python(text);
  const std::string& type = json.at("_type").text();
  if (type == "Tensor") return std::nullopt;
  TorchaoWrapper wrapper{weight, "torchao." + type, {}};
  const std::size_t dot = weight.rfind('.') + 1;
  for (const Json& name : json.at("_tensor_data_names").list())
    wrapper.parts.push_back(weight.substr(0, dot) + "_" + weight.substr(dot) + "_" + name.text());
  return wrapper;
} catch (const Error&) {
  return std::nullopt;  // whoever reads such a weight complains
}

}  // namespace

std::vector<TorchaoWrapper> torchao_wrappers(const Checkpoint& checkpoint) {
  std::vector<TorchaoWrapper> wrappers;
  for (const Composite& composite : checkpoint.composites)
    if (composite.layout.starts_with("torchao."))
      wrappers.push_back({composite.name, composite.layout, composite.parts});
  if (!checkpoint.metadata.contains("tensor_names")) return wrappers;
  for (const auto& [name, text] : checkpoint.metadata) {
    if (!text.starts_with("{\"_type\":")) continue;
    if (auto wrapper = described_wrapper(name, text)) wrappers.push_back(*std::move(wrapper));
  }
  return wrappers;
}

}  // namespace ballast
