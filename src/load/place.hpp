// Tensors brought to where they are wanted: into memory, onto devices, or nowhere.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/device.hpp>
#include <ballast/tensor.hpp>

#include "core/progress_meter.hpp"

namespace ballast {

// The device of the first rule that the name matches.
Device device_for(std::string_view name, std::span<const DeviceRule> rules, const Device& otherwise);

struct PlaceOptions {
  LoadMode mode = LoadMode::mapped;  // of what goes to the cpu
  bool copies = false;               // what goes to the cpu is in memory of its own, whatever the mode
  bool consume = false;              // lets go of what was copied: its pages, and of what is read_into() the tensor
  unsigned threads = 0;
};

// Each tensor on its device: what is there already is itself, the rest is read in the order of the files. Those that
// are one tensor stay one, and those without data stay without. `meter` counts the bytes of all that is not on the meta
// device.
std::vector<Tensor> place(std::span<const Tensor> tensors, std::span<const Device> devices, const PlaceOptions& options,
                          ProgressMeter& meter);

// Each into memory of the caller's that is as long as the tensor, in the order of the files.
void read_into(std::vector<Tensor> tensors, std::span<const std::span<std::byte>> memory, const PlaceOptions& options,
               ProgressMeter& meter);

}  // namespace ballast
