// Device: where tensors are to be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ballast {

class Device {
 public:
  enum class Kind : std::uint8_t {
    cpu,   // this process's memory, or a map of the file
    meta,  // nowhere: dtype and shape only, and nothing is read
  };

  Device() = default;
  Device(Kind kind) noexcept : kind_(kind) {}  // NOLINT(google-explicit-constructor): a kind is a device

  // "cpu", "meta". Throws Errc::unsupported for devices that this build has not, Errc::invalid_argument for others.
  Device(const char* name) : Device(std::string_view(name)) {}         // NOLINT(google-explicit-constructor)
  Device(std::string_view name);                                       // NOLINT(google-explicit-constructor)
  Device(const std::string& name) : Device(std::string_view(name)) {}  // NOLINT(google-explicit-constructor)

  Kind kind() const noexcept { return kind_; }
  friend bool operator==(const Device&, const Device&) = default;

 private:
  Kind kind_ = Kind::cpu;
};

std::string to_string(const Device& device);

}  // namespace ballast
