#include "transform/wrappers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>
#include <unordered_set>
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

void take_out(std::string& name, std::string_view wrapper) {
  for (std::size_t at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper, at)) {
    const bool is_part = at == 0 || name[at - 1] == '.';
    is_part ? void(name.erase(at, wrapper.size())) : void(++at);
  }
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
  std::unordered_map<std::string, std::string_view> taken;  // the new name -> the name that gets it; empty: several
  for (const auto& [name, tensor] : checkpoint) {
    const auto [there, is_new] = taken.try_emplace(renamed(name), name);
    if (!is_new) there->second = {};
  }
  std::unordered_map<std::string, std::string> changed;
  for (const auto& [name, tensor] : checkpoint) {
    std::string result = renamed(name);
    const bool is_free = taken.at(result) == name && (result == name || !checkpoint.contains(result));
    if (is_free && result != name) changed.emplace(name, std::move(result));
  }
  if (changed.empty()) return checkpoint;
  const auto first = std::ranges::find_if(
      checkpoint, [&](const StateDict::Entry& entry) { return changed.contains(std::string(entry.name)); });
  checkpoint.notes.push_back(
      {checkpoint.target,
       fmt::format("wrappers of training put parts into {} of {} names: {} is taken for {}", changed.size(),
                   checkpoint.size(), quote(first->name), quote(changed.at(std::string(first->name)))),
       Note::Kind::remark});
  return rename_names(std::move(checkpoint), [&](std::string_view name) {
    const auto found = changed.find(std::string(name));
    return found == changed.end() ? std::string(name) : found->second;
  });
}

}  // namespace

std::span<const std::string_view> wrappers_before_names() { return kBeforeAll; }

std::string without_wrappers(std::string_view name) {
  std::string plain(name);
  for (const std::string_view wrapper : kAnywhere) take_out(plain, wrapper);
  return plain.empty() ? std::string(name) : plain;
}

std::string without_all_wrappers(std::string_view name) {
  std::string plain = without_first_wrappers(without_wrappers(name));
  take_out(plain, "module.");
  return plain.empty() ? std::string(name) : plain;
}

Checkpoint take_out_wrappers(Checkpoint checkpoint) {
  return renamed_where_free(std::move(checkpoint),
                            [](std::string_view name) { return without_first_wrappers(without_wrappers(name)); });
}

Checkpoint match_wrapped_names(Checkpoint checkpoint, std::span<const std::string> wanted) {
  const std::unordered_set<std::string> all(wanted.begin(), wanted.end());
  std::unordered_map<std::string, std::string_view> plain;  // without wrappers -> as it is wanted; empty: several
  for (const std::string& name : wanted) {
    const auto [there, is_new] = plain.try_emplace(without_all_wrappers(name), name);
    if (!is_new) there->second = {};
  }
  const auto found_for = [&](std::string_view name) -> std::string_view {
    const auto found = plain.find(without_all_wrappers(name));
    return found == plain.end() ? std::string_view() : found->second;
  };
  const bool finds_any = std::ranges::any_of(checkpoint, [&](const StateDict::Entry& entry) {
    return !all.contains(std::string(entry.name)) && !found_for(entry.name).empty();
  });
  if (!finds_any) return checkpoint;
  return renamed_where_free(std::move(checkpoint), [&](std::string_view name) {
    if (all.contains(std::string(name))) return std::string(name);
    const std::string_view found = found_for(name);
    return found.empty() ? without_first_wrappers(name) : std::string(found);
  });
}

}  // namespace ballast
