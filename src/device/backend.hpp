// A device with memory of its own, as the rest of Ballast sees it: memory on the device, and staging buffers in this
// process that the memory is filled from.
//
// Everything may be called from several threads at once, except a Staging, which one thread at a time may use. A
// failure of the driver is Errc::io; a device that is out of memory is Errc::limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <ballast/device.hpp>

namespace ballast::device {

// Memory on the device. The destructor frees it.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::uintptr_t handle() const noexcept = 0;                           // a cl_mem, a CUdeviceptr
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;  // copies back, and waits
};

// Memory of this process that the device copies from by itself.
class Staging {
 public:
  virtual ~Staging() = default;                             // waits for the last upload
  virtual std::span<std::byte> bytes() const noexcept = 0;  // not to be touched between upload() and wait()
  virtual void upload(Memory& to, std::uint64_t offset, std::size_t size) = 0;  // begins to copy the first `size`
  virtual void wait() = 0;                                                      // until the last upload has arrived
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::unique_ptr<Memory> allocate(std::uint64_t size_bytes) = 0;  // at least one byte
  virtual std::unique_ptr<Staging> staging(std::size_t size_bytes) = 0;
};

// The backend of an opencl or cuda device. It lives as long as the program, because tensors may live that long.
// Errc::unsupported if there is no driver, or no such device.
Backend& backend(const Device& device);

// How many devices of the kind there are. Errc::unsupported if there is no driver.
unsigned count(Device::Kind kind);

}  // namespace ballast::device
