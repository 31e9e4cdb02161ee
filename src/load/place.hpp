// Brings tensors to where they are wanted: into memory, onto devices, or to the meta device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/device.hpp>
#include <ballast/tensor.hpp>

#include "core/progress_meter.hpp"

namespace ballast {

// The device of the first rule that the name matches, or `otherwise`.
Device device_for(std::string_view name, std::span<const DeviceRule> rules, const Device& otherwise);

struct PlaceOptions {
  LoadMode mode = LoadMode::mapped;  // for tensors on the cpu
  bool copies = false;               // tensors on the cpu get memory of their own, whatever the mode
  bool consume = false;              // releases what was copied: its pages, and in read_into() the tensor
  unsigned threads = 0;
  std::uint64_t worth_a_trial = std::uint64_t{1} << 30;  // cold bytes of which the first show how to read the rest
};

// Each tensor on its device: a tensor that is there already stays as it is, the others are read in the order of the
// files. Names of one tensor still share one, and tensors without data stay without. `meter` counts the bytes of all
// tensors that do not go to the meta device.
std::vector<Tensor> place(std::span<const Tensor> tensors, std::span<const Device> devices, const PlaceOptions& options,
                          ProgressMeter& meter);

// Reads each tensor into the caller's memory, which is as long as the tensor, in the order of the files.
void read_into(std::vector<Tensor> tensors, std::span<const std::span<std::byte>> memory, const PlaceOptions& options,
               ProgressMeter& meter);

}  // namespace ballast
