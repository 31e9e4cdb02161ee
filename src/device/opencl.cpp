#include "device/opencl.hpp"
#include "core/shared_library.hpp"

#include <ballast/error.hpp>

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast::device {
namespace {

// The parts of CL/cl.h that we use; CL/cl.h itself is not needed to build Ballast. Its numbers and types never change.
using cl_int = std::int32_t;
using cl_uint = std::uint32_t;
using cl_bitfield = std::uint64_t;
struct cl_platform;
struct cl_device;
struct cl_context;
struct cl_queue;
struct cl_mem;
struct cl_event;
constexpr cl_int kSuccess = 0, kDeviceNotFound = -1, kNoPlatform = -1001;
constexpr cl_bitfield kAnyDevice = 0xFFFFFFFF, kReadWrite = 1 << 0, kInHostMemory = 1 << 4, kMapForWriting = 1 << 1;
constexpr cl_uint kBlocking = 1, kNonBlocking = 0;

struct Api {
  cl_int (*get_platforms)(cl_uint, cl_platform**, cl_uint*);
  cl_int (*get_devices)(cl_platform*, cl_bitfield, cl_uint, cl_device**, cl_uint*);
  cl_context* (*create_context)(const std::intptr_t*, cl_uint, cl_device* const*, void*, void*, cl_int*);
  cl_queue* (*create_queue)(cl_context*, cl_device*, cl_bitfield, cl_int*);
  cl_mem* (*create_buffer)(cl_context*, cl_bitfield, std::size_t, void*, cl_int*);
  cl_int (*enqueue_read)(cl_queue*, cl_mem*, cl_uint, std::size_t, std::size_t, void*, cl_uint, cl_event* const*,
                         cl_event**);
  cl_int (*enqueue_write)(cl_queue*, cl_mem*, cl_uint, std::size_t, std::size_t, const void*, cl_uint, cl_event* const*,
                          cl_event**);
  void* (*enqueue_map)(cl_queue*, cl_mem*, cl_uint, cl_bitfield, std::size_t, std::size_t, cl_uint, cl_event* const*,
                       cl_event**, cl_int*);
  cl_int (*enqueue_unmap)(cl_queue*, cl_mem*, void*, cl_uint, cl_event* const*, cl_event**);
  cl_int (*flush)(cl_queue*);
  cl_int (*finish)(cl_queue*);
  cl_int (*wait_for)(cl_uint, cl_event* const*);
  cl_int (*release_buffer)(cl_mem*);
  cl_int (*release_event)(cl_event*);
  cl_int (*release_queue)(cl_queue*);

  Api() {
    const SharedLibrary library("libOpenCL.so.1", "OpenCL loader");
    library.find(get_platforms, "clGetPlatformIDs");
    library.find(get_devices, "clGetDeviceIDs");
    library.find(create_context, "clCreateContext");
    library.find(create_queue, "clCreateCommandQueue");  // the old name of the function, which every version has
    library.find(create_buffer, "clCreateBuffer");
    library.find(enqueue_read, "clEnqueueReadBuffer");
    library.find(enqueue_write, "clEnqueueWriteBuffer");
    library.find(enqueue_map, "clEnqueueMapBuffer");
    library.find(enqueue_unmap, "clEnqueueUnmapMemObject");
    library.find(flush, "clFlush");
    library.find(finish, "clFinish");
    library.find(wait_for, "clWaitForEvents");
    library.find(release_buffer, "clReleaseMemObject");
    library.find(release_event, "clReleaseEvent");
    library.find(release_queue, "clReleaseCommandQueue");
  }
};

const Api& api() {
  static const Api found;  // an exception is not remembered: the next caller looks again
  return found;
}

std::string device_name(unsigned number) { return to_string(Device(Device::Kind::opencl, number)); }

void check(cl_int result, unsigned number, const char* what) {
  if (result != kSuccess)
    throw Error(Errc::io, fmt::format("{} {}: OpenCL error {}", device_name(number), what, result));
}

// The devices of all platforms, in the order in which the loader lists them.
std::vector<cl_device*> all_devices() {
  cl_uint count = 0;
  const cl_int found = api().get_platforms(0, nullptr, &count);
  if (found == kNoPlatform) return {};
  check(found, 0, "cannot be looked for");
  std::vector<cl_platform*> platforms(count);
  check(api().get_platforms(count, platforms.data(), nullptr), 0, "cannot be looked for");

  std::vector<cl_device*> devices;
  for (cl_platform* platform : platforms) {
    cl_uint here = 0;
    const cl_int result = api().get_devices(platform, kAnyDevice, 0, nullptr, &here);
    if (result == kDeviceNotFound || here == 0) continue;
    check(result, 0, "cannot be looked for");
    devices.resize(devices.size() + here);
    check(api().get_devices(platform, kAnyDevice, here, devices.data() + devices.size() - here, nullptr), 0,
          "cannot be looked for");
  }
  return devices;
}

// Every staging buffer has its own queue, so that uploads do not wait for each other; one more queue reads back.
class Queue {
 public:
  Queue(cl_context* context, cl_device* device, unsigned number) {
    cl_int result = kSuccess;
    queue_ = api().create_queue(context, device, 0, &result);
    check(result, number, "gives no queue");
  }
  ~Queue() { api().release_queue(queue_); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  cl_queue* get() const noexcept { return queue_; }

 private:
  cl_queue* queue_;
};

class Buffer final : public Memory {
 public:
  Buffer(cl_context* context, cl_bitfield flags, std::uint64_t size, const Queue& reads, unsigned number)
      : reads_(reads), number_(number) {
    cl_int result = kSuccess;
    buffer_ = api().create_buffer(context, flags, size, nullptr, &result);
    if (result != kSuccess) {
      throw Error(Errc::limit, fmt::format("{} has no room for {} in one piece: OpenCL error {}", device_name(number),
                                           format_bytes(size), result));
    }
  }
  ~Buffer() override { api().release_buffer(buffer_); }

  cl_mem* get() const noexcept { return buffer_; }
  std::uintptr_t handle() const noexcept override { return reinterpret_cast<std::uintptr_t>(buffer_); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    check(api().enqueue_read(reads_.get(), buffer_, kBlocking, offset, out.size(), out.data(), 0, nullptr, nullptr),
          number_, "cannot be read");
  }

 private:
  cl_mem* buffer_ = nullptr;
  const Queue& reads_;
  unsigned number_;
};

// A mapped buffer in host memory. If the device is behind a bus, the driver has pinned the buffer.
class MappedStaging final : public Staging {
 public:
  MappedStaging(cl_context* context, cl_device* device, std::size_t size, unsigned number)
      : queue_(context, device, number),
        buffer_(context, kReadWrite | kInHostMemory, size, queue_, number),
        number_(number) {
    cl_int result = kSuccess;
    void* memory = api().enqueue_map(queue_.get(), buffer_.get(), kBlocking, kMapForWriting, 0, size, 0, nullptr,
                                     nullptr, &result);
    check(result, number, "gives no memory to upload from");
    bytes_ = {static_cast<std::byte*>(memory), size};
  }
  ~MappedStaging() override {
    if (upload_ != nullptr) api().release_event(upload_);
    api().enqueue_unmap(queue_.get(), buffer_.get(), bytes_.data(), 0, nullptr, nullptr);
    api().finish(queue_.get());
  }

  std::span<std::byte> bytes() const noexcept override { return bytes_; }
  void upload(Memory& to, std::uint64_t offset, std::size_t size) override {
    auto* const target = reinterpret_cast<cl_mem*>(to.handle());
    check(api().enqueue_write(queue_.get(), target, kNonBlocking, offset, size, bytes_.data(), 0, nullptr, &upload_),
          number_, "cannot be written");
    check(api().flush(queue_.get()), number_, "cannot be written");
  }
  void wait() override {
    if (upload_ == nullptr) return;
    const cl_int result = api().wait_for(1, &upload_);
    api().release_event(std::exchange(upload_, nullptr));
    check(result, number_, "cannot be written");
  }

 private:
  Queue queue_;
  Buffer buffer_;
  unsigned number_;
  std::span<std::byte> bytes_;
  cl_event* upload_ = nullptr;
};

class OpenClBackend final : public Backend {
 public:
  OpenClBackend(cl_device* device, unsigned number)
      : device_(device), number_(number), context_(context_of(device, number)), reads_(context_, device, number) {}

  std::unique_ptr<Memory> allocate(std::uint64_t size) override {
    return std::make_unique<Buffer>(context_, kReadWrite, size, reads_, number_);
  }
  std::unique_ptr<Staging> staging(std::size_t size) override {
    return std::make_unique<MappedStaging>(context_, device_, size, number_);
  }

 private:
  static cl_context* context_of(cl_device* device, unsigned number) {
    cl_int result = kSuccess;
    cl_context* const context = api().create_context(nullptr, 1, &device, nullptr, nullptr, &result);
    check(result, number, "gives no context");
    return context;
  }

  cl_device* device_;
  unsigned number_;
  cl_context* context_;
  Queue reads_;
};

}  // namespace

unsigned count_opencl() { return static_cast<unsigned>(all_devices().size()); }

std::unique_ptr<Backend> open_opencl(unsigned number) {
  return std::make_unique<OpenClBackend>(all_devices().at(number), number);
}

}  // namespace ballast::device
