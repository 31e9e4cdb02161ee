#include <ballast/device.hpp>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/text.hpp"
#include "device/backend.hpp"

namespace ballast {
namespace {

struct KindName {
  std::string_view name;
  Device::Kind kind;
  bool is_numbered;
};
constexpr std::array kKinds = {
    KindName{"cpu", Device::Kind::cpu, false},
    KindName{"meta", Device::Kind::meta, false},
    KindName{"opencl", Device::Kind::opencl, true},
    KindName{"cuda", Device::Kind::cuda, true},
};
constexpr const char* kKnownDevices = "cpu, meta, opencl:N, cuda:N";
constexpr std::array<std::string_view, 7> kElsewhere = {"mps", "xpu", "hip", "rocm", "vulkan", "hpu", "xla"};

const KindName& described(Device::Kind kind) { return *std::ranges::find(kKinds, kind, &KindName::kind); }

}  // namespace

Device::Device(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view word = name.substr(0, colon);
  const auto known = std::ranges::find(kKinds, word, &KindName::name);
  if (known == kKinds.end()) {
    if (std::ranges::find(kElsewhere, word) != kElsewhere.end())
      throw Error(Errc::unsupported, "Ballast cannot place tensors on " + quote(name)).hint(kKnownDevices);
    throw Error(Errc::invalid_argument, quote(name) + " is no device").hint(kKnownDevices);
  }
  kind_ = known->kind;
  if (colon == std::string_view::npos) return;

  const std::string_view digits = name.substr(colon + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), number_);
  // There is one way to write each device: without signs, leading zeros or anything after the number.
  if (name != to_string(*this)) throw Error(Errc::invalid_argument, quote(name) + " is no device").hint(kKnownDevices);
}

std::string to_string(const Device& device) {
  const KindName& kind = described(device.kind());
  std::string text(kind.name);
  if (kind.is_numbered) text += ":" + std::to_string(device.number());
  return text;
}

unsigned device_count(Device::Kind kind) {
  if (kind == Device::Kind::cpu || kind == Device::Kind::meta) return 1;
  try {
    return device::count(kind);
  } catch (const Error& error) {
    if (error.code() == Errc::unsupported) return 0;
    throw;
  }
}

}  // namespace ballast
