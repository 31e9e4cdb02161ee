// Device: where tensors are to be, and where they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ballast {

class Tensor;

class Device {
 public:
  enum class Kind : std::uint8_t {
    cpu,     // this process's memory, or a map of the file
    meta,    // nowhere: dtype and shape only, and nothing is read
    opencl,  // a buffer of an OpenCL device; they are numbered through all platforms
    cuda,    // memory of a GPU, by the CUDA driver
  };

  Device() = default;
  Device(Kind kind, unsigned number = 0) noexcept  // NOLINT(google-explicit-constructor): a kind is a device
      : kind_(kind), number_(number) {}

  // "cpu", "meta", "opencl:1", "cuda:0", and "cuda" for the first. Whether there is such a device is asked when it is
  // used. Throws Errc::unsupported for devices that Ballast does not know how to use, Errc::invalid_argument for
  // others.
  Device(const char* name) : Device(std::string_view(name)) {}         // NOLINT(google-explicit-constructor)
  Device(std::string_view name);                                       // NOLINT(google-explicit-constructor)
  Device(const std::string& name) : Device(std::string_view(name)) {}  // NOLINT(google-explicit-constructor)

  Kind kind() const noexcept { return kind_; }
  unsigned number() const noexcept { return number_; }              // among those of its kind
  friend auto operator<=>(const Device&, const Device&) = default;  // NOLINT(modernize-use-nullptr): sees a 0 in it

 private:
  Kind kind_ = Kind::cpu;
  unsigned number_ = 0;
};

std::string to_string(const Device& device);

// How many there are. Looks for the driver; 0 where there is none.
unsigned device_count(Device::Kind kind);

// Where a tensor is, for code that computes there. The memory is the tensor's: it lives as long as one that shares its
// storage. An OpenCL buffer knows its context; CUDA memory belongs to the primary context of its device. Whatever
// Ballast copied there has arrived; what others enqueue is theirs to wait for before they read the tensor.
struct DevicePlace {
  Device device{};
  std::uintptr_t handle = 0;  // a cl_mem, a CUdeviceptr; 0 on the cpu and on the meta device
  std::uint64_t offset = 0;   // of the first element from there, in bytes
};
DevicePlace place_of(const Tensor& tensor);

// How tensors come to the cpu.
enum class LoadMode : std::uint8_t {
  mapped,     // views of the mapped file: nothing is read before it is used
  read,       // into memory of our own, by several threads; past the page cache where the file is not in it
  automatic,  // mapped where the file is in the page cache; read where it is not, or lies on a network file system
};

// Tensors whose whole name matches the glob go to the device.
struct DeviceRule {
  std::string pattern;
  Device device;
};

}  // namespace ballast
