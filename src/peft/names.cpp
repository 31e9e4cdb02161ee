#include "peft/names.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <charconv>

#include "core/text.hpp"

namespace ballast::peft {
namespace {

constexpr std::string_view kMagnitude = "lora_magnitude_vector";

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += '.';
    text += part;
  }
  return text;
}

std::string without_segments(std::string_view name, std::string_view unwanted) {
  std::string text;
  while (!name.empty()) {
    const std::string_view segment = take_segment(name);
    if (!has_word(unwanted, segment)) text = joined({text, segment});
  }
  return text;
}

// The matrices of a LoRA are single tensors. More behind them belongs to another adapter: "lora_A.weight.weight" is
// lora_A of an adapter "weight", which PEFT has added to this file by mistake.
bool is_possible(const ParameterName& cut) {
  const bool is_matrix = cut.parameter == "lora_A" || cut.parameter == "lora_B";
  return !is_matrix || cut.rest.find('.') == std::string_view::npos;
}

// Calls `accept` with every way to cut a name at a parameter, from behind, until it takes one.
template <class Accept>
std::optional<ParameterName> cut_at_parameter(const PeftType& type, std::string_view name, const Accept& accept) {
  for (std::size_t end = name.size(); end != std::string_view::npos;) {
    const std::size_t dot = name.rfind('.', end == 0 ? 0 : end - 1);
    const std::size_t begin = dot == std::string_view::npos || end == 0 ? 0 : dot + 1;
    const std::string_view segment = name.substr(begin, end - begin);
    if (is_parameter(type, segment)) {
      ParameterName cut{name.substr(0, begin == 0 ? 0 : begin - 1), segment,
                        end == name.size() ? std::string_view() : name.substr(end + 1)};
      if (accept(cut)) return cut;
    }
    end = begin == 0 ? std::string_view::npos : begin - 1;
  }
  return std::nullopt;
}

}  // namespace

std::string_view first_segment(std::string_view text) { return text.substr(0, text.find('.')); }

std::string_view take_segment(std::string_view& text) {
  const std::string_view segment = first_segment(text);
  text.remove_prefix(std::min(text.size(), segment.size() + 1));
  return segment;
}

std::optional<std::uint64_t> number_in(std::string_view segment) {
  std::uint64_t number = 0;
  const char* behind = segment.data() + segment.size();
  const auto [end, error] = std::from_chars(segment.data(), behind, number);
  return error == std::errc() && end == behind ? std::optional(number) : std::nullopt;
}

std::string_view module_of(std::string_view tensor) { return tensor.substr(0, tensor.rfind('.')); }

std::string_view without_ending(std::string_view text, std::string_view ending) {
  if (text.ends_with(ending)) text.remove_suffix(ending.size());
  return text;
}

std::string_view prefix_of(std::string_view name) {
  if (name.starts_with(kPrefix)) return kPrefix;
  return name.starts_with(kRoot) ? kRoot : std::string_view();
}

std::string_view without_prefix(std::string_view name) { return name.substr(prefix_of(name).size()); }

bool has_prefix(const StateDict& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) { return !prefix_of(entry.name).empty(); });
}

StateDict with_prefix(const StateDict& tensors) {
  StateDict result;
  result.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const bool is_shared = is_any_shared(first_segment(name));
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
    if (!result.insert(without_prefix(name), tensor))
      throw Error(Errc::invalid_argument,
                  "without \"base_model.\", two tensors would be called " + quote(without_prefix(name)));
  }
  return result;
}

std::optional<ParameterName> parse_file_name(const PeftType& type, std::string_view name) {
  return cut_at_parameter(type, name, [&](ParameterName& cut) {
    if (cut.parameter == kMagnitude && cut.rest == "weight") cut.rest = {};
    return is_possible(cut);
  });
}

std::optional<ParameterName> parse_state_name(const PeftType& type, std::string_view name, std::string_view adapter) {
  return cut_at_parameter(type, name, [&](ParameterName& cut) {
    if (has_word(type.categories, cut.parameter)) {  // these have the adapter's name at the end
      if (!cut.rest.ends_with(adapter) || cut.rest.size() <= adapter.size()) return false;
      cut.rest.remove_suffix(adapter.size() + 1);
      return name[name.size() - adapter.size() - 1] == '.';
    }
    if (take_segment(cut.rest) != adapter) return false;
    if (cut.parameter == kMagnitude && cut.rest == "weight") cut.rest = {};
    return is_possible(cut);
  });
}

char lora_half(const ParameterName& name) {
  if (name.rest == "bias") return 0;
  if (has_word("lora_A lora_embedding_A", name.parameter)) return 'A';
  return has_word("lora_B lora_embedding_B", name.parameter) ? 'B' : 0;
}

std::optional<std::string> adapter_in(const PeftType& type, std::string_view name) {
  std::optional<std::string> found;
  cut_at_parameter(type, name, [&](ParameterName& cut) {
    const std::string_view adapter = take_segment(cut.rest);
    if (adapter.empty() || !is_possible(cut)) return false;
    found = adapter;
    return true;
  });
  return found;
}

std::string file_name(const ParameterName& name) { return joined({name.module, name.parameter, name.rest}); }

std::string state_name(const PeftType& type, const ParameterName& name, std::string_view adapter) {
  if (has_word(type.categories, name.parameter)) return joined({name.module, name.parameter, name.rest, adapter});
  const std::string_view rest = name.parameter == kMagnitude && name.rest.empty() ? "weight" : name.rest;
  return joined({name.module, name.parameter, adapter, rest});
}

std::string without_base_layers(std::string_view name) { return without_segments(name, kBaseLayer.substr(1)); }

}  // namespace ballast::peft
