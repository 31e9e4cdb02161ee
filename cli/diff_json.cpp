#include <algorithm>

#include "diff_report.hpp"
#include "json_writer.hpp"

namespace ballast::cli {
namespace {

using What = DiffReport::What;
using Layout = JsonWriter::Layout;

constexpr std::string_view kWhat[] = {"shape", "dtype", "data", "values"};  // in the order of What

template <class Value>
void optional_field(JsonWriter& json, std::string_view key, const std::optional<Value>& value) {
  json.key(key);
  value ? json.value(*value) : json.value(nullptr);
}

void write_numbers(JsonWriter& json, const DiffReport::Numbers& numbers) {
  optional_field(json, "relative_change", numbers.relative_change());
  optional_field(json, "cosine", numbers.cosine());
  optional_field(json, "rms", numbers.rms());
  json.field("norm_a", numbers.norm_a);
  json.field("norm_b", numbers.norm_b);
  json.field("norm_change", numbers.norm_change);
}

void write_rank(JsonWriter& json, const DiffReport::Rank& rank) {
  json.key("rank");
  json.begin_object();
  json.field("stable", rank.stable);
  optional_field(json, "of_90", rank.of_90);
  optional_field(json, "of_99", rank.of_99);
  optional_field(json, "before_gap", rank.before_gap);
  json.end();
}

void write_change(JsonWriter& json, const DiffReport::Change& change) {
  json.begin_object();
  json.field("name", change.name);
  json.field("what", kWhat[static_cast<std::size_t>(change.what)]);
  json.field("dtype_a", name(change.dtype_a));
  json.field("dtype_b", name(change.dtype_b));
  json.array_field("shape_a", change.shape_a);
  json.array_field("shape_b", change.shape_b);
  if (change.compared != 0) {
    json.field("different", change.different);
    json.field("max_abs", change.max_abs);
    json.field("max_rel", change.max_rel);
    json.field("nan_mismatch", change.nan_mismatch);
    if (change.max_at) {
      json.array_field("max_at", *change.max_at);
    } else {
      json.field("max_at", nullptr);
    }
  }
  if (change.numbers) write_numbers(json, *change.numbers);
  if (change.rank) write_rank(json, *change.rank);
  json.end();
}

void write_role(JsonWriter& json, const DiffReport::Role& role) {
  json.begin_object();
  json.field("pattern", role.pattern);
  json.field("tensors", role.tensors);
  json.field("changed", role.changed);
  json.field("broken", role.broken);
  optional_field(json, "median", role.median);
  optional_field(json, "worst", role.worst);
  json.field("worst_name", role.worst_name);
  json.key("layers");
  json.begin_array();
  for (const auto& layer : role.layers) {
    json.begin_object();
    json.field("layer", layer.number);
    optional_field(json, "relative_change", layer.relative);
    json.field("broken", layer.broken);
    json.end();
  }
  json.end();
  json.end();
}

void write_cost(JsonWriter& json, const DiffReport::DTypeCost& cost) {
  json.begin_object();
  json.field("dtype_a", name(cost.dtype_a));
  json.field("dtype_b", name(cost.dtype_b));
  json.field("tensors", cost.tensors);
  write_numbers(json, cost.numbers);
  optional_field(json, "worst", cost.worst);
  json.field("worst_name", cost.worst_name);
  json.end();
}

// A list with one item a line.
template <class Items, class Write>
void list_field(JsonWriter& json, std::string_view key, const Items& items, Write write) {
  json.key(key);
  json.begin_array(Layout::lines);
  for (const auto& item : items) write(item);
  json.end();
}

// With --top, the largest changes first; else all, in the order of A.
void write_changes(JsonWriter& json, const DiffView& view, const DiffReport& report) {
  if (!view.top) return list_field(json, "changed", report.changed, [&](const auto& c) { write_change(json, c); });
  auto sorted = report.by_change();
  sorted.resize(std::min<std::uint64_t>(*view.top, sorted.size()));
  list_field(json, "changed", sorted, [&](const auto* c) { write_change(json, *c); });
}

void write_sides(JsonWriter& json, const Aligned& sides) {
  json.key("names");
  if (sides.style) {
    json.value(*sides.style == NameStyle::gguf ? "gguf" : "hf");
  } else {
    json.value(nullptr);
  }
  json.key("prefix");
  sides.prefix.empty() ? json.value(nullptr) : json.value(sides.prefix);
}

}  // namespace

void write_diff_json(Session& session, const DiffView& view, const DiffReport& report) {
  JsonWriter json(session.out, "ballast.diff/1");
  const auto write_name = [&](const std::string& name) { json.value(name); };
  json.field("a", view.target_a);
  json.field("b", view.target_b);
  json.field("equal", report.equal());
  json.field("values_compared", view.compares_values);
  list_field(json, "only_in_a", report.only_in_a, write_name);
  list_field(json, "only_in_b", report.only_in_b, write_name);
  write_changes(json, view, report);
  json.field("equal_tensors", report.equal_count);
  json.field("changed_tensors", report.changed.size());
  json.field("broken_tensors", report.broken_count());
  json.key("overall");
  json.begin_object();
  write_numbers(json, report.overall);
  json.end();
  list_field(json, "roles", report.roles, [&](const auto& role) { write_role(json, role); });
  list_field(json, "dtype_costs", report.dtype_costs, [&](const auto& cost) { write_cost(json, cost); });
  write_sides(json, *view.sides);
  json.finish();
}

}  // namespace ballast::cli
