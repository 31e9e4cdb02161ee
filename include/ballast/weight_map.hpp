// WeightMap: how the tensors of one layout become those of another, and back. Renaming, and what renaming cannot do:
// fused and split projections, stacked experts, transposed and reordered weights. Rules are data; see docs/maps.md.
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
  rename,      // a name, and nothing else
  concat,      // several tensors one after the other along `axis`
  split,       // and apart again
  stack,       // numbered tensors along a new dimension, `axis`
  unstack,     // and apart again
  permute,     // the dimensions in another `order`
  interleave,  // for rotary embeddings: the halves of each of `heads` into pairs
  separate,    // and the pairs into halves
  add,         // `number` to every value
};

// Names are patterns: {x} stands for any text, the same on both sides. The place that only one side of stack and
// unstack has is the number.
struct WeightRule {
  WeightChange change = WeightChange::rename;
  std::vector<std::string> from, to;       // several on one side of concat and split, else one
  std::uint64_t axis = 0;                  // concat, split, stack, unstack
  std::vector<std::uint64_t> sizes{};      // concat, split: of the parts, to each other; empty: equal
  std::vector<std::size_t> order{};        // permute
  std::uint64_t heads = 0;                 // interleave, separate
  double number = 0;                       // add
  std::optional<RenameRule> expression{};  // rename by a regular expression, instead of patterns
  std::size_t place = 0;                   // in the map as it was written, from 1; for messages
  std::optional<RenameRule> forth{};       // of a rule that was turned round: what must lead back
};

struct WeightMap {
  std::vector<WeightRule> rules;  // each applied to what the one before it made

  static WeightMap parse(std::string_view json);  // throws Errc::malformed or Errc::invalid_argument, with the rule
  static WeightMap load(const std::string& path);

  // Throws Errc::unsupported, naming the rule, where one cannot be turned round.
  WeightMap reversed() const;
};

// Lazy: nothing is read before the result is. A group of tensors that is not complete is Errc::mismatch. A rule that
// matches nothing is noted.
Checkpoint apply(Checkpoint checkpoint, const WeightMap& map);

}  // namespace ballast
