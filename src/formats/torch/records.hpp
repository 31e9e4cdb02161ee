// The storages that a state dict needs in a torch file, and where each tensor lies in them.
//
// A tensor gets a storage of its own, as large as itself. Tensors that share bytes in their source (tied weights, views
// of one another) share a storage in the file too, if that makes the file no larger than copies would.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

#include "formats/format.hpp"

namespace ballast::torch {

// One value of the dict: a tensor, or a quantized tensor with its scales and zero points.
struct Leaf {
  std::string_view name;
  const Tensor* tensor;
  const Composite* quantized = nullptr;
  const Tensor *scales = nullptr, *zero_points = nullptr;  // if they differ from channel to channel
};

// The entries as the values of a dict, in their order; the scales and zero points of a quantized tensor go into its
// leaf. Throws Errc::unsupported, with a way out, for what torch cannot store. The arguments must outlive the leaves.
std::vector<Leaf> leaves_of(std::span<const StateDict::Entry* const> entries, std::span<const Composite> composites);

struct Placement {
  std::size_t record;
  std::uint64_t first;  // elements of the record before the tensor's first one
  Strides strides;      // in elements
};

struct Record {
  Tensor content;         // contiguous
  std::string_view name;  // of the first tensor in it
};

struct Records {
  std::vector<Record> records;  // in the order in which the pickle comes to them
  // One placement for each tensor of each leaf: itself, its scales, its zero points.
  std::vector<Placement> placements;
  std::vector<Note> notes;  // about tensors that shared bytes and no longer do
};

Records assign_records(std::span<const Leaf> leaves);

// Leaves that must go into one file because they share a storage, with the bytes of their records.
std::vector<Bundle> bundles_of(std::span<const Leaf> leaves);

// The shape as torch counts it: if torch packs two elements into a byte and calls that an element, half of the last
// dimension.
Shape torch_shape(const Tensor& tensor);

}  // namespace ballast::torch
