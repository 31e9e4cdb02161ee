#include "ops/adapter/prefix.hpp"

#include <ballast/error.hpp>

#include <algorithm>

#include "core/text.hpp"
#include "ops/adapter/types.hpp"

namespace ballast::adapter {

std::string_view prefix_of(std::string_view name) {
  if (name.starts_with(kPrefix)) return kPrefix;
  return name.starts_with(kRoot) ? kRoot : std::string_view();
}

bool has_prefix(const StateDict& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) { return !prefix_of(entry.name).empty(); });
}

StateDict with_prefix(const StateDict& tensors) {
  StateDict result;
  result.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const bool is_shared = is_any_shared(name.substr(0, name.find('.')));
    const bool is_prompt = name.find('.') == std::string_view::npos && !is_shared;
    const std::string_view prefix = is_shared ? kRoot : is_prompt ? std::string_view() : kPrefix;
    result.insert(std::string(prefix) + std::string(name), tensor);
  }
  return result;
}

StateDict without_prefix(const StateDict& tensors) {
  StateDict result;
  result.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    if (!result.insert(name.substr(prefix_of(name).size()), tensor))
      throw Error(Errc::invalid_argument,
                  "without \"base_model.\", two tensors would be called " + quote(name.substr(prefix_of(name).size())));
  }
  return result;
}

}  // namespace ballast::adapter
