#include "checkpoint/agreements/values.hpp"

#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/json_string.hpp"

namespace ballast {
namespace {

constexpr std::string_view kValuesKey = "ballast.values";

struct AppendJson {
  std::string& text;

  void operator()(std::monostate) const { text += "null"; }
  void operator()(bool value) const { text += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { text += std::to_string(value); }
  // JSON has no infinities; and a number without a decimal point would come back as an integer.
  void operator()(double value) const {
    if (!std::isfinite(value)) return append_json_string(text, fmt::format("{}", value));
    const std::string digits = fmt::format("{}", value);
    text += digits;
    if (digits.find_first_of(".e") == std::string::npos) text += ".0";
  }
  void operator()(const std::string& value) const { append_json_string(text, value); }
};

PlainValue from_json(std::string path, const Json& value) {
  if (value.is_bool()) return {std::move(path), "bool", value.boolean()};
  if (value.is_integer()) return {std::move(path), "int", value.integer()};
  if (value.is_double()) return {std::move(path), "float", value.number()};
  if (value.is_null()) return {std::move(path), "None", std::monostate{}};
  return {std::move(path), "str", value.text()};
}

}  // namespace

Checkpoint fold_values(Checkpoint checkpoint) {
  if (checkpoint.values.empty()) return checkpoint;
  std::string text;
  for (const PlainValue& value : checkpoint.values) {
    text += text.empty() ? "{" : ",";
    append_json_string(text, value.path);
    text += ":";
    std::visit(AppendJson{text}, value.value);
  }
  checkpoint.metadata[std::string(kValuesKey)] = text + "}";
  checkpoint.values.clear();
  return checkpoint;
}

Checkpoint unfold_values(Checkpoint checkpoint) {
  const auto entry = checkpoint.metadata.find(kValuesKey);
  if (entry == checkpoint.metadata.end()) return checkpoint;
  std::vector<PlainValue> values;
  try {
    const Json root = Json::parse(entry->second);
    for (const auto& [path, value] : root.members()) values.push_back(from_json(path, value));
  } catch (const Error&) {
    checkpoint.notes.push_back({checkpoint.target, "the metadata \"ballast.values\" is no object of plain values"});
    return checkpoint;
  }
  checkpoint.values.insert(checkpoint.values.end(), values.begin(), values.end());
  checkpoint.metadata.erase(entry);
  return checkpoint;
}

}  // namespace ballast
