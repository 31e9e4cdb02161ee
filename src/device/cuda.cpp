#include "device/cuda.hpp"
#include "core/shared_library.hpp"

#include <ballast/error.hpp>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast::device {
namespace {

// The parts of cuda.h that we use; cuda.h itself is not needed to build Ballast. The suffixes of the names (such as
// _v2) are those of the driver's interface since CUDA 4, and they do not change.
using Result = int;
using DeviceNumber = int;
using DevicePointer = unsigned long long;
struct Context;
struct Stream;
constexpr Result kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kNotUsable = 201;
constexpr unsigned kPortable = 1;     // page-locked for every context
constexpr unsigned kNonBlocking = 1;  // a stream that does not wait for the default stream

struct Api {
  Result (*init)(unsigned);
  Result (*get_error_string)(Result, const char**);
  Result (*get_device_count)(int*);
  Result (*get_device)(DeviceNumber*, int);
  Result (*retain_primary_context)(Context**, DeviceNumber);
  Result (*push_context)(Context*);
  Result (*pop_context)(Context**);
  Result (*alloc)(DevicePointer*, std::size_t);
  Result (*free)(DevicePointer);
  Result (*alloc_host)(void**, std::size_t, unsigned);
  Result (*free_host)(void*);
  Result (*create_stream)(Stream**, unsigned);
  Result (*destroy_stream)(Stream*);
  Result (*synchronize_stream)(Stream*);
  Result (*copy_to_device_async)(DevicePointer, const void*, std::size_t, Stream*);
  Result (*copy_to_host)(void*, DevicePointer, std::size_t);
  Result started;

  Api() {
    const SharedLibrary library("libcuda.so.1", "CUDA driver");
    library.find(init, "cuInit");
    library.find(get_error_string, "cuGetErrorString");
    library.find(get_device_count, "cuDeviceGetCount");
    library.find(get_device, "cuDeviceGet");
    library.find(retain_primary_context, "cuDevicePrimaryCtxRetain");
    library.find(push_context, "cuCtxPushCurrent_v2");
    library.find(pop_context, "cuCtxPopCurrent_v2");
    library.find(alloc, "cuMemAlloc_v2");
    library.find(free, "cuMemFree_v2");
    library.find(alloc_host, "cuMemHostAlloc");
    library.find(free_host, "cuMemFreeHost");
    library.find(create_stream, "cuStreamCreate");
    library.find(destroy_stream, "cuStreamDestroy_v2");
    library.find(synchronize_stream, "cuStreamSynchronize");
    library.find(copy_to_device_async, "cuMemcpyHtoDAsync_v2");
    library.find(copy_to_host, "cuMemcpyDtoH_v2");
    started = init(0);
  }
};

const Api& api() {
  static const Api found;  // an exception is not remembered: the next caller looks again
  return found;
}

std::string said(Result result) {
  const char* text = nullptr;
  if (api().get_error_string(result, &text) != kSuccess || text == nullptr) text = "an unknown error";
  return fmt::format("{} (CUDA error {})", text, result);
}

std::string device_name(unsigned number) { return to_string(Device(Device::Kind::cuda, number)); }

void check(Result result, unsigned number, const char* what) {
  if (result != kSuccess) throw Error(Errc::io, fmt::format("{} {}: {}", device_name(number), what, said(result)));
}

struct Gpu {
  Context* context;
  unsigned number;
};

// Makes the device's context current on this thread as long as the object lives.
class Current {
 public:
  explicit Current(const Gpu& gpu) : Current(gpu.context) {
    check(is_current_ ? kSuccess : kNotUsable, gpu.number, "cannot be used");
  }
  // For destructors. At the end of the program the driver may be gone already, and with it everything that it
  // allocated.
  explicit Current(Context* context) noexcept : is_current_(api().push_context(context) == kSuccess) {}
  ~Current() {
    Context* popped = nullptr;
    if (is_current_) api().pop_context(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  explicit operator bool() const noexcept { return is_current_; }

 private:
  bool is_current_;
};

class GpuMemory final : public Memory {
 public:
  GpuMemory(Gpu gpu, std::uint64_t size) : gpu_(gpu) {
    const Current current(gpu);
    const Result result = api().alloc(&address_, size);
    if (result == kOutOfMemory)
      throw Error(Errc::limit, fmt::format("{} has no room for {}", device_name(gpu.number), format_bytes(size)));
    check(result, gpu.number, "gives no memory");
  }
  ~GpuMemory() override {
    if (const Current current(gpu_.context); current) api().free(address_);
  }

  std::uintptr_t handle() const noexcept override { return address_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const Current current(gpu_);
    check(api().copy_to_host(out.data(), address_ + offset, out.size()), gpu_.number, "cannot be read");
  }

 private:
  Gpu gpu_;
  DevicePointer address_ = 0;
};

// Page-locked memory with its own stream, so that several copies run at once.
class PinnedStaging final : public Staging {
 public:
  PinnedStaging(Gpu gpu, std::size_t size) : gpu_(gpu) {
    const Current current(gpu);
    void* memory = nullptr;
    check(api().alloc_host(&memory, size, kPortable), gpu.number, "gives no memory to upload from");
    bytes_ = {static_cast<std::byte*>(memory), size};
    const Result result = api().create_stream(&stream_, kNonBlocking);
    if (result != kSuccess) api().free_host(memory);
    check(result, gpu.number, "gives no stream");
  }
  ~PinnedStaging() override {
    const Current current(gpu_.context);
    if (!current) return;
    api().synchronize_stream(stream_);
    api().destroy_stream(stream_);
    api().free_host(bytes_.data());
  }

  std::span<std::byte> bytes() const noexcept override { return bytes_; }
  void upload(Memory& to, std::uint64_t offset, std::size_t size) override {
    const Current current(gpu_);
    check(api().copy_to_device_async(to.handle() + offset, bytes_.data(), size, stream_), gpu_.number,
          "cannot be written");
  }
  void wait() override {
    const Current current(gpu_);
    check(api().synchronize_stream(stream_), gpu_.number, "cannot be written");
  }

 private:
  Gpu gpu_;
  std::span<std::byte> bytes_;
  Stream* stream_ = nullptr;
};

// The backend uses the primary context, which the CUDA runtime uses too, so a program that uses the runtime can use our
// memory.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(unsigned number) : gpu_{nullptr, number} {
    DeviceNumber device = 0;
    check(api().get_device(&device, static_cast<int>(number)), number, "cannot be used");
    check(api().retain_primary_context(&gpu_.context, device), number, "gives no context");
  }

  std::unique_ptr<Memory> allocate(std::uint64_t size) override { return std::make_unique<GpuMemory>(gpu_, size); }
  std::unique_ptr<Staging> staging(std::size_t size) override { return std::make_unique<PinnedStaging>(gpu_, size); }

 private:
  Gpu gpu_;
};

}  // namespace

unsigned count_cuda() {
  if (api().started == kNoDevice) return 0;
  if (api().started != kSuccess)
    throw Error(Errc::unsupported, "there is a CUDA driver here, but it does not start: " + said(api().started));
  int count = 0;
  check(api().get_device_count(&count), 0, "cannot be looked for");
  return static_cast<unsigned>(count);
}

std::unique_ptr<Backend> open_cuda(unsigned number) { return std::make_unique<CudaBackend>(number); }

}  // namespace ballast::device
