// How much lies under each prefix of names, and which prefixes have the same structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>

#include "inspect/prefix_tree.hpp"

namespace ballast {

// Bytes that tensors share count once; under the later ones of their names they are `shared_bytes`.
struct Amount {
  std::uint64_t tensors = 0, parameters = 0, bytes = 0, shared_bytes = 0;

  void add(const Amount& other);
};

// Two prefixes of one kind have the same names, dtypes and shapes under them. Only prefixes that are numbered, or lie
// under one that is, have a kind.
struct MeasuredTree {
  std::vector<PrefixNode> nodes;  // their names are numbers of `numbers`
  std::vector<Amount> amounts;
  std::vector<std::uint32_t> kinds;
};

MeasuredTree measure(const Checkpoint& checkpoint, std::span<const std::size_t> numbers);

// Appends a number to a key that nobody is shown.
void append_number(std::string& key, std::uint64_t number);

}  // namespace ballast
