#include "transform/wrappers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

using namespace std::string_view_literals;

// Parts of names that nothing but a wrapper puts there, and those that stand before all names.
constexpr std::array kAnywhere = {"_orig_mod."sv, "_fsdp_wrapped_module."sv, "_checkpoint_wrapped_module."sv};
constexpr std::array kBeforeAll = {"module."sv, "_orig_mod."sv, "_fsdp_wrapped_module."sv, "_forward_module."sv};

// The name without those of its parts. In one pass: names come from files, and may be long.
std::string without_parts(std::string_view name, std::span<const std::string_view> parts) {
  std::string plain;
  for (std::string_view rest = name; !rest.empty();) {
    const auto part = std::ranges::find_if(parts, [&](std::string_view one) { return rest.starts_with(one); });
    const std::size_t end = std::min(rest.find('.'), rest.size() - 1) + 1;
    if (part == parts.end()) plain += rest.substr(0, end);
    rest.remove_prefix(part == parts.end() ? end : part->size());
  }
  return plain.empty() ? std::string(name) : plain;
}

std::string without_first_wrappers(std::string_view name) {
  std::string_view plain = name;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view wrapper : kBeforeAll) {
      if (!plain.starts_with(wrapper)) continue;
      plain.remove_prefix(wrapper.size());
      found = true;
    }
  }
  return std::string(plain.empty() ? name : plain);
}

// The new name of every tensor, where no two of them become the same.
Checkpoint renamed_where_free(Checkpoint checkpoint, const std::function<std::string(std::string_view)>& renamed) {
  std::map<std::string, std::string_view, std::less<>> taken;  // the new name -> the name that gets it; empty: several
  for (const auto& [name, tensor] : checkpoint) {
    const auto [there, is_new] = taken.try_emplace(renamed(name), name);
    if (!is_new) there->second = {};
  }
  std::map<std::string, std::string, std::less<>> changed;
  for (const auto& [name, tensor] : checkpoint) {
    std::string result = renamed(name);
    const bool is_free = taken.at(result) == name && (result == name || !checkpoint.contains(result));
    if (is_free && result != name) changed.emplace(name, std::move(result));
  }
  if (changed.empty()) return checkpoint;
  const auto first =
      std::ranges::find_if(checkpoint, [&](const StateDict::Entry& entry) { return changed.contains(entry.name); });
  checkpoint.notes.push_back(
      {checkpoint.target,
       fmt::format("wrappers of training put parts into {} of {} names: {} is taken for {}", changed.size(),
                   checkpoint.size(), quote(first->name), quote(changed.find(first->name)->second)),
       Note::Kind::remark});
  return rename_names(std::move(checkpoint), [&](std::string_view name) {
    const auto found = changed.find(name);
    return found == changed.end() ? std::string(name) : found->second;
  });
}

}  // namespace

std::span<const std::string_view> wrappers_before_names() { return kBeforeAll; }

std::string without_wrappers(std::string_view name) { return without_parts(name, kAnywhere); }

std::string without_all_wrappers(std::string_view name) {
  constexpr std::array kModule = {"module."sv};
  return without_parts(without_first_wrappers(without_wrappers(name)), kModule);
}

Checkpoint take_out_wrappers(Checkpoint checkpoint) {
  return renamed_where_free(std::move(checkpoint),
                            [](std::string_view name) { return without_first_wrappers(without_wrappers(name)); });
}

Checkpoint match_wrapped_names(Checkpoint checkpoint, std::span<const std::string> wanted) {
  const std::set<std::string, std::less<>> all(wanted.begin(), wanted.end());
  std::map<std::string, std::string_view, std::less<>> plain;  // without wrappers -> as it is wanted; empty: several
  for (const std::string& name : wanted) {
    const auto [there, is_new] = plain.try_emplace(without_all_wrappers(name), name);
    if (!is_new) there->second = {};
  }
  const auto found_for = [&](std::string_view name) -> std::string_view {
    const auto found = plain.find(without_all_wrappers(name));
    return found == plain.end() ? std::string_view() : found->second;
  };
  const bool finds_any = std::ranges::any_of(checkpoint, [&](const StateDict::Entry& entry) {
    return !all.contains(entry.name) && !found_for(entry.name).empty();
  });
  if (!finds_any) return checkpoint;
  return renamed_where_free(std::move(checkpoint), [&](std::string_view name) {
    if (all.contains(name)) return std::string(name);
    const std::string_view found = found_for(name);
    return found.empty() ? without_first_wrappers(name) : std::string(found);
  });
}

}  // namespace ballast
