#include "device/backend.hpp"

#include <ballast/error.hpp>

#include <map>
#include <mutex>

#include <fmt/format.h>

#include "device/cuda.hpp"
#include "device/opencl.hpp"

namespace ballast::device {
namespace {

void require_exists(const Device& device, unsigned count) {
  if (device.number() < count) return;
  const std::string kind = device.kind() == Device::Kind::cuda ? "CUDA" : "OpenCL";
  Error error(Errc::unsupported,
              fmt::format("there is no device {}: this machine has {} {} device{}", to_string(device),
                          count == 0 ? "no" : std::to_string(count), kind, count == 1 ? "" : "s"));
  throw count == 0 ? error : error.hint("they are numbered from " + to_string(Device(device.kind())));
}

}  // namespace

unsigned count(Device::Kind kind) { return kind == Device::Kind::cuda ? count_cuda() : count_opencl(); }

Backend& backend(const Device& device) {
  // These are never destroyed, because a tensor in a static variable may be freed after every other static variable.
  static auto& mutex = *new std::mutex;
  static auto& opened = *new std::map<Device, std::unique_ptr<Backend>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Backend>& place = opened[device];
  if (!place) {
    require_exists(device, count(device.kind()));
    place = device.kind() == Device::Kind::cuda ? open_cuda(device.number()) : open_opencl(device.number());
  }
  return *place;
}

}  // namespace ballast::device
