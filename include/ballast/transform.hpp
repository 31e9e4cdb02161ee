// Checkpoints made from checkpoints: selected, renamed, cast. All lazy: nothing is read before the result is.
//
// The functions may be called from several threads at once. The tensors that they return share the storages of those
// that they are given and keep them alive.
//
// Example:
//   Checkpoint checkpoint = select(open("model.safetensors"), {.exclude = {"*.bias"}});
//   checkpoint = cast(rename(std::move(checkpoint), {{"^model\\.", ""}}), DType::f16);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

// Globs over whole names: * matches anything, dots too; ?; [a-z]. If `include` is empty, all names match; `exclude`
// wins.
struct Selection {
  std::vector<std::string> include{};
  std::vector<std::string> exclude{};

  bool matches(std::string_view name) const;
  bool operator==(const Selection&) const = default;
};
Checkpoint select(Checkpoint checkpoint, const Selection& selection);

// Rules are applied in order to every name; each replaces all matches: RE2 syntax, \1 for groups. Two tensors that end
// up under one name are Errc::invalid_argument, naming both.
struct RenameRule {
  std::string pattern;
  std::string replacement;
};
RenameRule parse_rename(const std::string& text);  // "REGEX=TEMPLATE"; \= is an equals sign in the expression
Checkpoint rename(Checkpoint checkpoint, const std::vector<RenameRule>& rules);

// The rule that turns the new names back into the old ones; nothing if the rule loses information. Only rules of plain
// text and groups can be reversed, each group once on either side: "^h\\.(\\d+)\\." and "layers.\\1.".
std::optional<RenameRule> reversed(const RenameRule& rule);

// Names that begin with the prefix lose it, the others stay. Errc::not_found if no name begins with it.
Checkpoint strip_prefix(Checkpoint checkpoint, std::string_view prefix);
Checkpoint add_prefix(Checkpoint checkpoint, std::string_view prefix);

// Every floating tensor in `dtype`, with ggml's blocks decoded; the others stay as they are. Only tensors of at least
// two dimensions are cast to a block type; if their rows are not whole blocks, they get the type that llama.cpp falls
// back to, with a note. A part of a quantized weight (Checkpoint::quantization) is Errc::unsupported.
Checkpoint cast(Checkpoint checkpoint, DType dtype);

// The same by name: the first rule whose glob matches the whole name counts; a tensor that no rule matches stays as it
// is.
struct CastRule {
  std::string glob;
  DType dtype;
};
Checkpoint cast(Checkpoint checkpoint, const std::vector<CastRule>& rules);

// The block types of ggml that cast() can make.
std::vector<DType> encodable_types();

// One tensor of the checkpoint, of any kind.
Tensor cast(const Checkpoint& checkpoint, std::string_view name, DType dtype);

}  // namespace ballast
