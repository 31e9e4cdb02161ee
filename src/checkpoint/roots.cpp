#include "checkpoint/roots.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/text.hpp"

namespace ballast {
namespace {

using namespace std::string_view_literals;

// What people call the model among the things beside it, the most telling first.
constexpr std::array kUsualRoots = {"state_dict"sv, "model_state_dict"sv, "model"sv, "module"sv,
                                    "params_ema"sv, "params"sv,           "ema"sv,   "net"sv,
                                    "weights"sv};

std::size_t rank_of(const Root& root) {
  const auto usual = std::find(kUsualRoots.begin(), kUsualRoots.end(), root.path);
  return static_cast<std::size_t>(usual - kUsualRoots.begin());
}

// The name below the root; nothing where it lies elsewhere. Archives put a slash between a member and its names.
std::optional<std::string_view> below(std::string_view name, std::string_view root) {
  if (!name.starts_with(root)) return std::nullopt;
  name.remove_prefix(root.size());
  if (name.empty()) return name;
  if (name[0] != '.' && name[0] != '/') return std::nullopt;
  return name.substr(1);
}

std::string roots_hint(const Checkpoint& checkpoint) {
  if (checkpoint.roots.empty()) return "the names are not nested; ballast ls shows them";
  std::string hint = "there is";
  for (std::size_t i = 0; i < checkpoint.roots.size() && i < 5; ++i)
    hint += (i == 0 ? " " : ", ") + quote(checkpoint.roots[i].path);
  return hint;
}

}  // namespace

void sort_roots(Checkpoint& checkpoint) {
  std::stable_sort(checkpoint.roots.begin(), checkpoint.roots.end(), [](const Root& a, const Root& b) {
    return rank_of(a) != rank_of(b) ? rank_of(a) < rank_of(b) : a.tensors > b.tensors;
  });
}

Checkpoint take_root(Checkpoint checkpoint, const std::string& root) {
  StateDict tensors;
  for (const auto& [name, tensor] : checkpoint) {
    if (const auto rest = below(name, root)) tensors.insert(*rest, tensor);
  }
  if (tensors.empty()) {
    throw Error(Errc::not_found, "no tensor lies below " + quote(root))
        .in(checkpoint.target)
        .hint(roots_hint(checkpoint));
  }
  checkpoint.tensors = std::move(tensors);

  std::vector<PlainValue> values;
  for (PlainValue& value : checkpoint.values) {
    const auto rest = below(value.path, root);
    if (!rest) continue;
    value.path = std::string(*rest);
    values.push_back(std::move(value));
  }
  checkpoint.values = std::move(values);

  std::vector<Composite> composites;
  for (Composite& composite : checkpoint.composites) {
    const auto rest = below(composite.name, root);
    if (!rest) continue;
    composite.name = std::string(*rest);
    for (std::string& part : composite.parts) part = std::string(below(part, root).value_or(part));
    composites.push_back(std::move(composite));
  }
  checkpoint.composites = std::move(composites);

  decltype(checkpoint.aliases) aliases;
  for (const auto& [removed, kept] : checkpoint.aliases) {
    const auto name = below(removed, root), other = below(kept, root);
    if (name && other) aliases.emplace(*name, *other);
    checkpoint.metadata.erase(removed);
  }
  checkpoint.aliases = std::move(aliases);
  checkpoint.roots.clear();
  return checkpoint;
}

}  // namespace ballast
