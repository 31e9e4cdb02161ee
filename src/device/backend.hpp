// A device with memory of its own, as the rest of Ballast sees it: memory there, and buffers here that it is filled
// from.
//
// Everything may be called from several threads at once, but for a Staging, which belongs to one at a time. Failures of
// a driver are Errc::io, memory that it does not have Errc::limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <ballast/device.hpp>

namespace ballast::device {

// Memory on the device, freed with the object.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::uintptr_t handle() const noexcept = 0;                           // a cl_mem, a CUdeviceptr
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;  // back to this process, and waits
};

// Memory of this process that the device copies from by itself.
class Staging {
 public:
  virtual ~Staging() = default;                                                 // waits, too
  virtual std::span<std::byte> bytes() const noexcept = 0;                      // not to be touched before wait()
  virtual void upload(Memory& to, std::uint64_t offset, std::size_t size) = 0;  // begins to copy the first `size`
  virtual void wait() = 0;                                                      // until the last upload is there
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::unique_ptr<Memory> allocate(std::uint64_t size_bytes) = 0;  // at least one byte
  virtual std::unique_ptr<Staging> staging(std::size_t size_bytes) = 0;
};

// Of an opencl or cuda device; lives as long as the program, since tensors may, too. Errc::unsupported where there is
// no driver, or no such device.
Backend& backend(const Device& device);

// How many devices of the kind there are. Errc::unsupported where there is no driver.
unsigned count(Device::Kind kind);

}  // namespace ballast::device
