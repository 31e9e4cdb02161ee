#include <ballast/device.hpp>
#include <ballast/error.hpp>

#include <array>

#include "core/text.hpp"

namespace ballast {
namespace {

constexpr std::array kElsewhere = {"cuda", "opencl", "mps", "xpu", "rocm", "vulkan"};

}  // namespace

Device::Device(std::string_view name) {
  if (name == "cpu") return;
  if (name == "meta") {
    kind_ = Kind::meta;
    return;
  }
  for (const std::string_view known : kElsewhere) {
    if (name.starts_with(known))
      throw Error(Errc::unsupported, "this build of Ballast has no device " + quote(name)).hint("cpu, meta");
  }
  throw Error(Errc::invalid_argument, quote(name) + " is no device").hint("cpu, meta");
}

std::string to_string(const Device& device) { return device.kind() == Device::Kind::meta ? "meta" : "cpu"; }

}  // namespace ballast
