#include <ballast/error.hpp>
#include <ballast/load.hpp>
#include <ballast/remote.hpp>

#include <string>
#include <utility>
#include <vector>

#include <ballast/scan.hpp>
#include "core/progress_meter.hpp"
#include "load/place.hpp"

namespace ballast {
namespace {

// The same names, with each tensor on the device that `device_of` gives for its name.
template <class DeviceOf>
StateDict placed(const StateDict& state, const DeviceOf& device_of, const PlaceOptions& options,
                 const Progress& progress) {
  std::vector<Tensor> tensors;
  std::vector<Device> devices;
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : state) {
    tensors.push_back(tensor);
    devices.push_back(device_of(name));
    if (devices.back().kind() != Device::Kind::meta) total += tensor.nbytes();
  }
  ProgressMeter meter(progress, "loading", total);
  tensors = place(tensors, devices, options, meter);

  StateDict result;
  result.reserve(state.size());
  for (std::size_t i = 0; i < state.size(); ++i) result.insert(state[i].name, std::move(tensors[i]));
  return result;
}

}  // namespace

StateDict load(const std::string& target, const LoadOptions& options) {
  Checkpoint checkpoint = open(path_or_repository(target), options.open);
  if (!options.allow_dangerous) refuse_dangerous(checkpoint);
  const bool is_all_there =
      options.map_location.empty() && options.device == Device() && options.mode == LoadMode::mapped;
  if (is_all_there) return std::move(checkpoint.tensors);
  return placed(
      checkpoint.tensors, [&](std::string_view name) { return device_for(name, options.map_location, options.device); },
      {.mode = options.mode, .threads = options.open.threads}, options.progress);
}

StateDict realize(const StateDict& state, const RealizeOptions& options) {
  return placed(
      state, [](std::string_view) { return Device(); }, {.copies = true, .threads = options.threads}, options.progress);
}

}  // namespace ballast
