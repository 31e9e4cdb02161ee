// Checkpoints made from checkpoints: chosen, renamed, cast. All lazy: nothing is read before the result is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

// Globs over whole names: * matches anything, dots too; ?; [a-z]. No include means all; exclude wins.
struct Selection {
  std::vector<std::string> include;
  std::vector<std::string> exclude;

  bool matches(std::string_view name) const;
  bool operator==(const Selection&) const = default;
};
Checkpoint select(Checkpoint checkpoint, const Selection& selection);

// Applied in order to every name, each replacing all matches: RE2 syntax, \1 for groups.
// Two tensors that end up under one name are Errc::invalid_argument, naming both.
struct RenameRule {
  std::string pattern;
  std::string replacement;
};
RenameRule parse_rename(const std::string& text);  // "REGEX=TEMPLATE"; \= is an equals sign in the expression
Checkpoint rename(Checkpoint checkpoint, const std::vector<RenameRule>& rules);

// The rule that takes the new names back to the old ones; nothing where the rule forgets something. Only rules of
// plain text and groups can be turned round, each group once on either side: "^h\\.(\\d+)\\." and "layers.\\1.".
std::optional<RenameRule> reversed(const RenameRule& rule);

// Names that begin with it lose it, the others stay. Where none does, Errc::not_found.
Checkpoint strip_prefix(Checkpoint checkpoint, std::string_view prefix);
Checkpoint add_prefix(Checkpoint checkpoint, std::string_view prefix);

// Every floating tensor in `dtype`, those in ggml's blocks decoded; the others stay as they are. Into a block type go
// tensors of at least two dimensions; where rows are no whole blocks, the type that llama.cpp falls back to, with a
// note. A part of a quantized weight (Checkpoint::quantization) is Errc::unsupported.
Checkpoint cast(Checkpoint checkpoint, DType dtype);

// The same by name: the first rule whose glob matches the whole name counts; what none matches stays as it is.
struct CastRule {
  std::string glob;
  DType dtype;
};
Checkpoint cast(Checkpoint checkpoint, const std::vector<CastRule>& rules);

// The block types of ggml that cast() can make.
std::vector<DType> encodable_types();

// One tensor of it, of any kind.
Tensor cast(const Checkpoint& checkpoint, std::string_view name, DType dtype);

}  // namespace ballast
