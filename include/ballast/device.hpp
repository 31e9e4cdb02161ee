// Device: where tensors are to be, and where they are.
//
// A Device is a plain value. Every function may be called from several threads at once.
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
    opencl,  // a buffer of an OpenCL device; devices are numbered through all platforms
    cuda,    // memory of a GPU, through the CUDA driver
  };

  Device() = default;
  Device(Kind kind, unsigned number = 0) noexcept  // NOLINT(google-explicit-constructor): a kind is a device
      : kind_(kind), number_(number) {}

  // "cpu", "meta", "opencl:1", "cuda:0", and "cuda" for the first. Whether the device exists is checked when it is
  // used. Throws Errc::unsupported for devices that Ballast does not know how to use, Errc::invalid_argument for other
  // names.
  Device(const char* name) : Device(std::string_view(name)) {}         // NOLINT(google-explicit-constructor)
  Device(std::string_view name);                                       // NOLINT(google-explicit-constructor)
  Device(const std::string& name) : Device(std::string_view(name)) {}  // NOLINT(google-explicit-constructor)

  Kind kind() const noexcept { return kind_; }
  unsigned number() const noexcept { return number_; }              // counted among the devices of its kind
  friend auto operator<=>(const Device&, const Device&) = default;  // NOLINT(modernize-use-nullptr): sees a 0 in it

 private:
  Kind kind_ = Kind::cpu;
  unsigned number_ = 0;
};

std::string to_string(const Device& device);

// How many devices there are. Looks for the driver; 0 if there is none.
unsigned device_count(Device::Kind kind);

// Where a tensor is, for code that computes there. The memory belongs to the tensor's storage, and lives as long as a
// tensor that shares the storage. An OpenCL buffer knows its context; CUDA memory belongs to the primary context of its
// device. Everything that Ballast copied there has arrived. A program that enqueues work of its own has to wait for
// that work before it reads the tensor.
struct DevicePlace {
  Device device{};
  std::uintptr_t handle = 0;  // a cl_mem, a CUdeviceptr; 0 on the cpu and on the meta device
  std::uint64_t offset = 0;   // the first element's distance from there, in bytes
};
DevicePlace place_of(const Tensor& tensor);

// How tensors get into memory of the cpu.
enum class LoadMode : std::uint8_t {
  mapped,     // views of the mapped file: bytes are read only when they are used
  read,       // into our own memory, by several threads; past the page cache if the file is not in it
  automatic,  // mapped if the file is in the page cache; read if it is not, or if it lies on a network file system
};

// Tensors whose whole name matches the glob go to the device.
struct DeviceRule {
  std::string pattern;
  Device device;
};

}  // namespace ballast
