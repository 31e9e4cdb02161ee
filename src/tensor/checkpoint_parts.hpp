// What a checkpoint says about its tensors by their names: renamed, left out and merged as a whole. There is one place
// for each of these, so that nothing is forgotten.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>

namespace ballast {

// The new name of a tensor, or nothing if it is left out.
using NewName = std::function<std::optional<std::string>(std::string_view)>;

// Every tensor under its new name, with what is said about it; what is said about those that are left out is left out.
// Values, metadata, fields and roots stay as they are. Two tensors that end up under one name are
// Errc::invalid_argument, naming both.
Checkpoint rename_names(Checkpoint checkpoint, const NewName& renamed);

// A field with the same value under another key.
Field with_key(const Field& field, std::string key);

// Everything that `part` says, with `renamed` names, paths and keys, added to `all`. Not the files, the target, the
// format and the number of shards, which are those of the whole.
void absorb(Checkpoint& all, Checkpoint part, const std::function<std::string(std::string_view)>& renamed);

}  // namespace ballast
