#include <ballast/error.hpp>
#include <ballast/transform.hpp>

#include <algorithm>
#include <utility>

#include "checkpoint/quantization/packed_parts.hpp"
#include "core/glob.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "transform/once_per_tensor.hpp"
#include "transform/quantize.hpp"

namespace ballast {
namespace {

// Two names of one tensor stay names of one tensor.
void tie_aliases(const Checkpoint& checkpoint, StateDict& tensors) {
  for (const auto& [removed, kept] : checkpoint.aliases) {
    const Tensor* same = tensors.find(kept);
    if (same != nullptr && tensors.contains(removed)) tensors.replace(removed, Tensor(*same));
  }
}

}  // namespace

bool Selection::matches(std::string_view name) const {
  const auto any = [&](const std::vector<std::string>& globs) {
    return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return glob_match(glob, name); });
  };
  return (include.empty() || any(include)) && !any(exclude);
}

Checkpoint select(Checkpoint checkpoint, const Selection& selection) {
  if (selection.include.empty() && selection.exclude.empty()) return checkpoint;
  const std::vector<Glob> include(selection.include.begin(), selection.include.end());
  const std::vector<Glob> exclude(selection.exclude.begin(), selection.exclude.end());
  return keep_names(std::move(checkpoint), [&](std::string_view name) {
    return (include.empty() || matches_any(include, name)) && !matches_any(exclude, name);
  });
}

Checkpoint cast(Checkpoint checkpoint, DType dtype) {
  if (info(dtype).kind == DTypeKind::ggml) return quantize(std::move(checkpoint), dtype);
  if (!is_floating(dtype))
    throw Error(Errc::invalid_argument, std::string(name(dtype)) + " is no floating dtype to cast to");
  StateDict tensors;
  tensors.reserve(checkpoint.size());
  OncePerTensor once;
  const PackedParts packed(checkpoint);
  for (const auto& [name, tensor] : checkpoint) {
    packed.refuse(name, tensor, "cast");
    try {
      tensors.insert(name, is_real(tensor) ? once(tensor, [&](const Tensor& t) { return t.to(dtype); }) : tensor);
    } catch (Error& error) {
      throw Error(error.code(), "tensor " + quote(name) + ": " + error.message()).about(name).hint(leave_it_out());
    }
  }
  tie_aliases(checkpoint, tensors);
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

Checkpoint cast(Checkpoint checkpoint, const std::vector<CastRule>& rules) {
  // The tensors of each rule become a checkpoint of their own, are cast, and are put back where they were.
  std::vector<Checkpoint> chosen(rules.size());
  for (Checkpoint& part : chosen) {
    part.target = checkpoint.target;
    part.quantization = checkpoint.quantization;
  }
  for (const auto& [name, tensor] : checkpoint) {
    const auto rule =
        std::ranges::find_if(rules, [name = name](const CastRule& r) { return glob_match(r.glob, name); });
    if (rule != rules.end()) chosen[static_cast<std::size_t>(rule - rules.begin())].tensors.insert(name, tensor);
  }
  StateDict tensors = checkpoint.tensors;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (chosen[i].size() == 0) {
      checkpoint.notes.push_back({checkpoint.target,
                                  "no tensor is left for the rule " + quote(rules[i].glob) + ": nothing becomes " +
                                      std::string(name(rules[i].dtype)),
                                  Note::Kind::remark});
      continue;
    }
    const bool casts = std::ranges::any_of(chosen[i], [](const auto& entry) { return is_real(entry.tensor); });
    if (!casts) {
      checkpoint.notes.push_back({checkpoint.target,
                                  "the rule " + quote(rules[i].glob) +
                                      " matches no tensor of floats: nothing becomes " +
                                      std::string(name(rules[i].dtype)),
                                  Note::Kind::remark});
    }
    const Checkpoint done = cast(std::move(chosen[i]), rules[i].dtype);
    for (const auto& [name, tensor] : done) tensors.replace(name, tensor);
    checkpoint.notes.insert(checkpoint.notes.end(), done.notes.begin(), done.notes.end());
    for (const MetadataEntry& field : done.typed_metadata) checkpoint.typed_metadata.set(field);
  }
  tie_aliases(checkpoint, tensors);
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

Tensor cast(const Checkpoint& checkpoint, std::string_view name, DType dtype) {
  const Tensor& tensor = checkpoint.at(name);
  if (tensor.dtype() != dtype) PackedParts(checkpoint).refuse(name, tensor, "cast");
  return tensor.to(dtype);
}

}  // namespace ballast
