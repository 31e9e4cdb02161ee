// WeightMap: turns the tensors of one model layout into those of another, and back. It renames, and does what renaming
// cannot do: fused and split projections, stacked experts, transposed and reordered weights. Rules are data; see
// docs/maps.md.
//
// A map is a value that owns its rules; several threads may read one while nobody changes it. The functions may be
// called from several threads at once. The tensors that apply() returns share the storages of those that it is given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/transform.hpp>

namespace ballast {

enum class WeightChange : std::uint8_t {
  rename,      // gives the tensor another name
  concat,      // joins several tensors one after the other along `axis`
  split,       // undoes concat
  stack,       // joins numbered tensors along a new dimension, `axis`
  unstack,     // undoes stack
  permute,     // puts the dimensions into another `order`
  interleave,  // for rotary embeddings: turns the halves of each of `heads` into pairs
  separate,    // turns the pairs into halves
  add,         // adds `number` to every value
  reshape,     // gives the values other dimensions, from the first of `forms` to the second
};

// A permutation is made only if it is needed: afterwards the dimension `axis` is as long as the first dimension of the
// tensor `name`, a pattern with places of `from`. If it is so before, the tensor stays as it is.
struct WeightFit {
  std::size_t axis = 0;
  std::string name;
};

// Names are patterns: {x} stands for any text, the same on both sides. In stack and unstack, the placeholder that only
// one side has is the number.
struct WeightRule {
  WeightChange change = WeightChange::rename;
  std::vector<std::string> from, to;       // several on one side of concat and split, on both of rename; else one
  std::uint64_t axis = 0;                  // concat, split, stack, unstack
  std::vector<std::uint64_t> sizes{};      // concat, split: the parts in proportion to each other; empty: equal
  std::vector<std::size_t> order{};        // permute
  std::uint64_t heads = 0;                 // interleave, separate
  double number = 0;                       // add
  std::vector<std::string> forms{};        // reshape: "experts (2 rows) columns" and "experts 2 rows columns"
  std::uint64_t count = 0;                 // stack, unstack: how many tensors there must be; 0: any number
  std::optional<WeightFit> fit{};          // permute
  std::optional<RenameRule> expression{};  // rename by a regular expression, instead of patterns
  std::size_t place = 0;                   // the position in the map as it was written, from 1; for messages
  std::optional<RenameRule> forth{};       // for a rule that was reversed: the original rule, which must lead back
  bool is_optional = false;                // there is no note if it matches nothing

  // Conditions of rules that make one tensor of one. A tensor is changed only if there are tensors of the names
  // `needed` and none of the names `refused`, where places that `from` has too stand for the same text; if its own name
  // is none of `except`; and if its new name would be none of `except_result`.
  std::vector<std::string> needed{}, refused{}, except{}, except_result{};
  bool has_conditions() const noexcept {
    return !needed.empty() || !refused.empty() || !except.empty() || !except_result.empty();
  }
};

struct WeightMap {
  std::vector<WeightRule> rules;  // each is applied to the result of the one before it

  static WeightMap parse(std::string_view json);  // throws Errc::malformed or Errc::invalid_argument, with the rule
  static WeightMap load(const std::string& path);

  // Throws Errc::unsupported, naming the rule, if a rule cannot be reversed.
  WeightMap reversed() const;
};

// Lazy: nothing is read before the result is. A group of tensors that is not complete is Errc::mismatch. A rule that
// matches nothing gets a note.
Checkpoint apply(Checkpoint checkpoint, const WeightMap& map);

}  // namespace ballast
