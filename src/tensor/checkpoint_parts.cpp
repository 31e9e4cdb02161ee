#include "tensor/checkpoint_parts.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/text.hpp"

namespace ballast {
namespace {

[[noreturn]] void refuse_meeting(const Checkpoint& checkpoint, const NewName& renamed, std::string_view second,
                                 const std::string& target) {
  const auto first = std::find_if(checkpoint.begin(), checkpoint.end(),
                                  [&](const StateDict::Entry& entry) { return renamed(entry.name) == target; });
  throw Error(Errc::invalid_argument,
              "tensors " + quote(first->name) + " and " + quote(second) + " would both be called " + quote(target));
}

StateDict renamed_tensors(const Checkpoint& checkpoint, const NewName& renamed) {
  StateDict tensors;
  tensors.reserve(checkpoint.size());
  for (const auto& [name, tensor] : checkpoint) {
    const auto target = renamed(name);
    if (target && !tensors.insert(*target, tensor)) refuse_meeting(checkpoint, renamed, name, *target);
  }
  return tensors;
}

// The metadata list the aliases as well. When the checkpoint is saved, they are written anew with the new names.
void rename_aliases(Checkpoint& checkpoint, const NewName& renamed) {
  decltype(checkpoint.aliases) aliases;
  for (const auto& [removed, kept] : checkpoint.aliases) {
    const bool is_whole = checkpoint.contains(removed) && checkpoint.contains(kept);
    const auto name = is_whole ? renamed(removed) : std::nullopt, other = is_whole ? renamed(kept) : std::nullopt;
    if (name != removed || other != kept) checkpoint.metadata.erase(removed);
    if (name && other) aliases.emplace(*name, *other);
  }
  checkpoint.aliases = std::move(aliases);
}

// A composite that lacks a part is removed: its other parts are then plain tensors.
void rename_composites(Checkpoint& checkpoint, const NewName& renamed) {
  std::erase_if(checkpoint.composites, [&](const Composite& composite) {
    return !std::ranges::all_of(composite.parts, [&](const std::string& part) { return renamed(part).has_value(); });
  });
  for (Composite& composite : checkpoint.composites) {
    composite.name = renamed(composite.name).value_or(composite.name);
    for (std::string& part : composite.parts) part = *renamed(part);
  }
}

void rename_unknown_types(Checkpoint& checkpoint, const NewName& renamed) {
  decltype(checkpoint.unknown_ggml) unknown_ggml;
  for (auto& [name, unknown] : checkpoint.unknown_ggml) {
    if (auto target = renamed(name)) unknown_ggml.emplace(std::move(*target), std::move(unknown));
  }
  checkpoint.unknown_ggml = std::move(unknown_ggml);
}

// Everything that is said about tensors by their names, but for the tensors themselves.
void rename_what_is_said(Checkpoint& checkpoint, const NewName& renamed) {
  // Each member is named here, so that a member that Checkpoint gains has to be thought of. Quantization holds the
  // tensors as they were opened; the values, metadata and roots are named by paths, which stay as they are.
  auto& [tensors, metadata, typed_metadata, aliases, values, composites, unknown_ggml, quantization, dequantized, roots,
         dangerous, notes, unused_bytes, files, target, format, shards] = checkpoint;
  if (!aliases.empty()) rename_aliases(checkpoint, renamed);
  if (!composites.empty()) rename_composites(checkpoint, renamed);
  if (!unknown_ggml.empty()) rename_unknown_types(checkpoint, renamed);
}

}  // namespace

Checkpoint rename_names(Checkpoint checkpoint, const NewName& renamed) {
  StateDict tensors = renamed_tensors(checkpoint, renamed);
  rename_what_is_said(checkpoint, renamed);
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

void replace_tensors(Checkpoint& checkpoint, StateDict tensors, const std::function<bool(std::string_view)>& is_same) {
  rename_what_is_said(checkpoint, [&](std::string_view name) {
    return is_same(name) ? std::optional(std::string(name)) : std::nullopt;
  });
  checkpoint.tensors = std::move(tensors);
}

Checkpoint keep_names(Checkpoint checkpoint, const std::function<bool(std::string_view)>& is_kept) {
  auto aliases = checkpoint.aliases;
  Metadata metadata = checkpoint.metadata;
  checkpoint = rename_names(std::move(checkpoint), [&](std::string_view name) {
    return is_kept(name) ? std::optional(std::string(name)) : std::nullopt;
  });
  checkpoint.aliases = std::move(aliases);
  checkpoint.metadata = std::move(metadata);
  return checkpoint;
}

MetadataEntry with_key(const MetadataEntry& field, std::string key) {
  struct Owner {
    std::string key;
    std::shared_ptr<const void> value;
  };
  auto owner = std::make_shared<Owner>(Owner{std::move(key), field.owner});
  MetadataEntry other = field;
  other.key = owner->key;
  other.owner = std::move(owner);
  return other;
}

void take_over(Checkpoint& all, Checkpoint& part) {
  // Each member is named here, so that a member that Checkpoint gains has to be thought of. Quantization is recognized
  // in the whole, when all of it is there; the others are named in the comment of this function.
  auto& [tensors, metadata, typed_metadata, aliases, values, composites, unknown_ggml, quantization, dequantized, roots,
         dangerous, notes, unused_bytes, files, target, format, shards] = part;
  all.aliases.merge(aliases);
  all.unknown_ggml.merge(unknown_ggml);
  std::ranges::move(values, std::back_inserter(all.values));
  std::ranges::move(composites, std::back_inserter(all.composites));
  std::ranges::move(dangerous, std::back_inserter(all.dangerous));
  std::ranges::move(notes, std::back_inserter(all.notes));
  all.unused_bytes += unused_bytes;
}

void absorb(Checkpoint& all, Checkpoint part, const std::function<std::string(std::string_view)>& renamed) {
  part = rename_names(std::move(part), renamed);
  for (const auto& [name, tensor] : part) {
    if (!all.tensors.insert(name, tensor)) throw Error(Errc::malformed, "two tensors are called " + quote(name));
  }
  for (auto& [key, value] : part.metadata) all.metadata.emplace(renamed(key), std::move(value));
  for (const MetadataEntry& entry : part.typed_metadata) all.typed_metadata.set(with_key(entry, renamed(entry.key)));
  for (PlainValue& value : part.values) value.path = renamed(value.path);
  for (Root& root : part.roots) root.path = renamed(root.path);
  for (Global& global : part.dangerous) global.member = renamed(global.member);
  std::ranges::move(part.roots, std::back_inserter(all.roots));
  take_over(all, part);
}

}  // namespace ballast
