#include "inspect/diff_summary.hpp"

#include <ballast/text.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/name_hash.hpp"
#include "inspect/pattern.hpp"

namespace ballast {
namespace {

using Change = DiffReport::Change;
using Numbers = DiffReport::Numbers;
using Role = DiffReport::Role;

std::optional<double> quotient(double x, double y) {
  if (y == 0 || !std::isfinite(x) || !std::isfinite(y)) return std::nullopt;
  return x / y;
}

std::optional<double> relative_change_of(const Change& change) {
  return change.numbers ? change.numbers->relative_change() : std::nullopt;
}

bool holds_reals(DType dtype) { return info(dtype).kind == DTypeKind::floating || info(dtype).kind == DTypeKind::ggml; }

void add_numbers(Numbers& all, const Numbers& more) {
  all.count += more.count;
  all.product += more.product;
  for (double Numbers::*norm : {&Numbers::norm_a, &Numbers::norm_b, &Numbers::norm_change})
    all.*norm = std::hypot(all.*norm, more.*norm);
}

// A role while its tensors are gathered.
struct Gathered {
  Role role;
  std::vector<double> changes;
  std::map<std::uint64_t, Role::Layer> layers;

  void add(std::string_view name, std::optional<double> relative, bool is_broken) {
    ++role.tensors;
    if (is_broken) ++role.broken;
    if (relative) changes.push_back(*relative);
    if (relative && (!role.worst || *relative > *role.worst)) {
      role.worst = relative;
      role.worst_name = name;
    }
    if (const auto number = layer_number(name)) {
      Role::Layer& layer = layers.try_emplace(*number, Role::Layer{*number, relative}).first->second;
      if (relative) layer.relative = std::max(layer.relative.value_or(0), *relative);
      layer.broken = layer.broken || is_broken;
    }
  }

  Role finished() {
    if (!changes.empty()) {
      const auto middle = changes.begin() + static_cast<std::ptrdiff_t>(changes.size() / 2);
      std::nth_element(changes.begin(), middle, changes.end());
      role.median = *middle;
      if (changes.size() % 2 == 0) role.median = (*middle + *std::max_element(changes.begin(), middle)) / 2;
    }
    for (const auto& [number, layer] : layers) role.layers.push_back(layer);
    return std::move(role);
  }
};

// Changes are in the order of A, so one walk over A meets them all.
std::vector<Role> find_roles(const DiffReport& report, const Checkpoint& a, const Checkpoint& b) {
  NameMap<Gathered> roles;
  std::string pattern;
  for (const Change& change : report.changed) {
    assign_pattern(pattern, change.name);
    ++roles[pattern].role.changed;
  }
  auto change = report.changed.begin();
  for (const auto& [name, tensor] : a) {
    const bool is_changed = change != report.changed.end() && change->name == name;
    const auto relative = is_changed ? relative_change_of(*change) : std::optional(0.0);
    const bool is_broken = is_changed && change->is_broken();
    if (is_changed) ++change;
    if (roles.empty() || (!is_changed && !b.contains(name))) continue;
    assign_pattern(pattern, name);
    if (const auto found = roles.find(pattern); found != roles.end()) found->second.add(name, relative, is_broken);
  }
  std::vector<Role> sorted;
  for (auto& [name, gathered] : roles) {
    gathered.role.pattern = name;
    sorted.push_back(gathered.finished());
  }
  std::ranges::sort(sorted, [](const Role& x, const Role& y) { return natural_less(x.pattern, y.pattern); });
  return sorted;
}

std::vector<DiffReport::DTypeCost> find_dtype_costs(const DiffReport& report) {
  std::map<std::pair<DType, DType>, DiffReport::DTypeCost> costs;
  for (const Change& change : report.changed) {
    if (change.what != DiffReport::What::dtype || !change.numbers) continue;
    if (!holds_reals(change.dtype_a) || !holds_reals(change.dtype_b)) continue;
    DiffReport::DTypeCost& cost = costs.try_emplace({change.dtype_a, change.dtype_b}).first->second;
    cost.dtype_a = change.dtype_a;
    cost.dtype_b = change.dtype_b;
    ++cost.tensors;
    add_numbers(cost.numbers, *change.numbers);
    const auto relative = relative_change_of(change);
    if (!relative || (cost.worst && *relative <= *cost.worst)) continue;
    cost.worst = relative;
    cost.worst_name = change.name;
  }
  std::vector<DiffReport::DTypeCost> sorted;
  for (auto& [dtypes, cost] : costs) sorted.push_back(std::move(cost));
  std::ranges::stable_sort(sorted, std::ranges::greater(), &DiffReport::DTypeCost::tensors);
  return sorted;
}

}  // namespace

std::optional<double> DiffReport::Numbers::relative_change() const { return quotient(norm_change, norm_a); }

std::optional<double> DiffReport::Numbers::cosine() const {
  if (norm_a == 0 || norm_b == 0) return std::nullopt;
  if (norm_change == 0) return 1;  // without rounding
  const auto found = quotient(product / norm_a, norm_b);
  return found ? std::optional(std::clamp(*found, -1.0, 1.0)) : std::nullopt;
}

std::optional<double> DiffReport::Numbers::rms() const {
  return quotient(norm_change, std::sqrt(static_cast<double>(count)));
}

bool DiffReport::Change::is_broken() const noexcept { return nan_mismatch != 0 || std::isinf(max_abs); }

std::uint64_t DiffReport::broken_count() const noexcept {
  return static_cast<std::uint64_t>(std::ranges::count_if(changed, &Change::is_broken));
}

std::vector<const DiffReport::Change*> DiffReport::by_change() const {
  std::vector<const Change*> sorted;
  for (const Change& change : changed) sorted.push_back(&change);
  const auto key = [](const Change* change) {
    const bool is_from_nothing = change->numbers && change->numbers->norm_a == 0 && change->numbers->norm_change > 0;
    return std::pair(change->is_broken(), relative_change_of(*change).value_or(is_from_nothing ? INFINITY : -1));
  };
  std::ranges::stable_sort(sorted, std::ranges::greater(), key);
  return sorted;
}

void summarize_changes(DiffReport& report, const Checkpoint& a, const Checkpoint& b) {
  for (const Change& change : report.changed) {
    if (change.numbers) add_numbers(report.overall, *change.numbers);
  }
  report.roles = find_roles(report, a, b);
  report.dtype_costs = find_dtype_costs(report);
}

}  // namespace ballast
