#include "ops/adapter/names.hpp"

namespace ballast::adapter {
namespace {

constexpr std::string_view kMagnitude = "lora_magnitude_vector";

std::string_view behind_first(std::string_view text) {
  const std::size_t dot = text.find('.');
  return dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += '.';
    text += part;
  }
  return text;
}

// The matrices of a LoRA are single tensors: what has more behind it is another's, such as "lora_A.weight.weight" of an
// adapter "weight" where PEFT has added it to the file of another.
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
  text = behind_first(text);
  return segment;
}

std::optional<ParameterName> parse_file_name(const PeftType& type, std::string_view name) {
  return cut_at_parameter(type, name, [&](ParameterName& cut) {
    if (cut.parameter == kMagnitude && cut.rest == "weight") cut.rest = {};
    return is_possible(cut);
  });
}

std::optional<ParameterName> parse_state_name(const PeftType& type, std::string_view name, std::string_view adapter) {
  return cut_at_parameter(type, name, [&](ParameterName& cut) {
    if (has_word(type.categories, cut.parameter)) {  // there, the name stands at the end
      if (!cut.rest.ends_with(adapter) || cut.rest.size() <= adapter.size()) return false;
      cut.rest.remove_suffix(adapter.size() + 1);
      return name[name.size() - adapter.size() - 1] == '.';
    }
    if (first_segment(cut.rest) != adapter) return false;
    cut.rest = behind_first(cut.rest);
    if (cut.parameter == kMagnitude && cut.rest == "weight") cut.rest = {};
    return is_possible(cut);
  });
}

std::optional<std::string> adapter_in(const PeftType& type, std::string_view name) {
  std::optional<std::string> found;
  cut_at_parameter(type, name, [&](const ParameterName& cut) {
    const std::string_view adapter = first_segment(cut.rest);
    if (adapter.empty() || !is_possible({cut.module, cut.parameter, behind_first(cut.rest)})) return false;
    found = adapter;
    return true;
  });
  return found;
}

std::string file_name(const PeftType&, const ParameterName& name) {
  return joined({name.module, name.parameter, name.rest});
}

std::string state_name(const PeftType& type, const ParameterName& name, std::string_view adapter) {
  if (has_word(type.categories, name.parameter)) return joined({name.module, name.parameter, name.rest, adapter});
  const std::string_view rest = name.parameter == kMagnitude && name.rest.empty() ? "weight" : name.rest;
  return joined({name.module, name.parameter, adapter, rest});
}

std::string without_wrappers(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const std::string_view segment = take_segment(name);
    if (segment == "_fsdp_wrapped_module" || segment == "_orig_mod") continue;
    if (!text.empty()) text += '.';
    text += segment;
  }
  return text;
}

}  // namespace ballast::adapter
