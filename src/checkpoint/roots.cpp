#include "checkpoint/roots.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

using namespace std::string_view_literals;

// Usual names of the model among the other values of a checkpoint, the most telling first.
constexpr std::array kUsualRoots = {"state_dict"sv, "model_state_dict"sv, "model"sv, "module"sv,
                                    "params_ema"sv, "params"sv,           "ema"sv,   "net"sv,
                                    "weights"sv};

std::size_t rank_of(const Root& root) {
  const auto usual = std::find(kUsualRoots.begin(), kUsualRoots.end(), root.path);
  return static_cast<std::size_t>(usual - kUsualRoots.begin());
}

// The name below the root; nothing if the name does not lie below it. Archives put a slash between a member and its
// names.
std::optional<std::string_view> below(std::string_view name, std::string_view root) {
  if (!name.starts_with(root)) return std::nullopt;
  name.remove_prefix(root.size());
  if (name.empty()) return name;
  if (name[0] != '.' && name[0] != '/') return std::nullopt;
  return name.substr(1);
}

Advice roots_hint(const Checkpoint& checkpoint) {
  if (checkpoint.roots.empty()) return "the names are not nested; " + mention(Remedy::ls) + " shows them";
  std::string hint = "there is";
  for (std::size_t i = 0; i < checkpoint.roots.size() && i < 5; ++i)
    hint += (i == 0 ? " " : ", ") + quote(checkpoint.roots[i].path);
  return hint;
}

// In an archive, metadata of a member have the member's name before their keys; everything else is about the whole
// archive.
void take_what_a_member_says(Checkpoint& checkpoint, const NewName& below_root) {
  if (checkpoint.format != Format::archive) return;
  Metadata metadata;
  for (auto& [key, value] : checkpoint.metadata) {
    if (auto name = below_root(key)) metadata.emplace(std::move(*name), std::move(value));
  }
  checkpoint.metadata = std::move(metadata);
  TypedMetadata fields;
  for (const MetadataEntry& field : checkpoint.typed_metadata) {
    if (auto name = below_root(field.key)) fields.set(with_key(field, std::move(*name)));
  }
  checkpoint.typed_metadata = std::move(fields);
}

}  // namespace

void sort_roots(Checkpoint& checkpoint) {
  std::stable_sort(checkpoint.roots.begin(), checkpoint.roots.end(), [](const Root& a, const Root& b) {
    return rank_of(a) != rank_of(b) ? rank_of(a) < rank_of(b) : a.tensors > b.tensors;
  });
}

Checkpoint take_root(Checkpoint checkpoint, const std::string& root) {
  const auto below_root = [&](std::string_view name) -> std::optional<std::string> {
    const auto rest = below(name, root);
    return rest ? std::optional(std::string(*rest)) : std::nullopt;
  };
  checkpoint = rename_names(std::move(checkpoint), below_root);
  if (checkpoint.size() == 0) {
    throw Error(Errc::not_found, "no tensor lies below " + quote(root))
        .about(root)
        .in(checkpoint.target)
        .hint(roots_hint(checkpoint));
  }
  std::erase_if(checkpoint.values, [&](const PlainValue& value) { return !below(value.path, root); });
  for (PlainValue& value : checkpoint.values) value.path = *below_root(value.path);
  take_what_a_member_says(checkpoint, below_root);
  checkpoint.roots.clear();
  return checkpoint;
}

}  // namespace ballast
