// Renames, leaves out and merges everything that a checkpoint says about its tensors by their names. One function does
// each of these, so that nothing is forgotten.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>

namespace ballast {

// The new name of a tensor, or nothing if it is left out.
using NewName = std::function<std::optional<std::string>(std::string_view)>;

// Every tensor under its new name, with what is said about it; what is said about tensors that are left out is left out
// too. Values, metadata, typed metadata and roots stay as they are. Two tensors that end up under one name are
// Errc::invalid_argument, naming both.
Checkpoint rename_names(Checkpoint checkpoint, const NewName& renamed);

// Other tensors in the place of those that were there. Whatever the checkpoint says about a tensor that is not the
// same any more is forgotten: an alias of it, the composite that it was a part of, its unknown type.
void replace_tensors(Checkpoint& checkpoint, StateDict tensors, const std::function<bool(std::string_view)>& is_same);

// Only the tensors that are kept. Aliases, and the metadata that list them, stay as they are: when the checkpoint is
// saved, aliases of tensors that are gone are left out.
Checkpoint keep_names(Checkpoint checkpoint, const std::function<bool(std::string_view)>& is_kept);

// Moves what `part` says about its tensors by their names, its plain values, what is dangerous in it, its notes and its
// unused bytes to `all`. The tensors, metadata, roots and files are the caller's business.
void take_over(Checkpoint& all, Checkpoint& part);

// Typed metadata with the same value under another key.
MetadataEntry with_key(const MetadataEntry& field, std::string key);

// Adds everything that `part` says to `all`, with `renamed` names, paths and keys. The files, the target, the format
// and the number of shards are not added, because `all` has its own.
void absorb(Checkpoint& all, Checkpoint part, const std::function<std::string(std::string_view)>& renamed);

}  // namespace ballast
