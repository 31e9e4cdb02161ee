// A CUDA driver without a GPU, for tests: two devices whose memory is that of this process, at addresses that nobody
// can use directly. Streams are threads that take their time, so that whoever touches a buffer too early is found out.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using Result = int;
using DevicePointer = unsigned long long;
constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidDevice = 101, kInvalidContext = 201,
                 kLaunchFailed = 719;
constexpr DevicePointer kFar = 1ull << 62;
constexpr std::size_t kDeviceBytes = 64u << 20;

struct Context {
  int device;
};
Context contexts[2] = {{0}, {1}};
thread_local std::vector<Context*> current;

std::mutex mutex;  // guards what follows
std::map<DevicePointer, std::size_t> device_memory;
std::map<const char*, std::size_t> pinned_memory;
std::size_t in_use = 0, streams = 0, in_flight = 0, most_in_flight = 0;
int failing_copies = 0;

template <class Map, class Address>
bool holds(const Map& blocks, Address address, std::size_t size) {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return false;
  const auto& [begin, length] = *std::prev(after);
  return address + size <= begin + length;
}

class Stream {
 public:
  Stream() : thread_([this] { run(); }) {}
  ~Stream() {
    add({});
    thread_.join();
  }
  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty(); });
  }
  bool failed = false;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !work_.empty(); });
      const auto next = work_.front();
      if (!next) return;
      lock.unlock();
      next();
      lock.lock();
      work_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::thread thread_;
};

}  // namespace

extern "C" {

Result cuInit(unsigned) { return kSuccess; }
Result cuGetErrorString(Result result, const char** text) {
  *text = result == kLaunchFailed ? "unspecified launch failure" : "invalid argument";
  return kSuccess;
}
Result cuDeviceGetCount(int* count) { return *count = 2, kSuccess; }
Result cuDeviceGet(int* device, int number) {
  if (number < 0 || number > 1) return kInvalidDevice;
  return *device = number, kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context** context, int device) { return *context = &contexts[device], kSuccess; }
Result cuCtxPushCurrent_v2(Context* context) { return current.push_back(context), kSuccess; }
Result cuCtxPopCurrent_v2(Context** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  return current.pop_back(), kSuccess;
}

Result cuMemAlloc_v2(DevicePointer* address, std::size_t size) {
  if (current.empty()) return kInvalidContext;
  if (size == 0) return kInvalidValue;
  const std::lock_guard lock(mutex);
  if (in_use + size > kDeviceBytes) return kOutOfMemory;
  in_use += size;
  *address = kFar + reinterpret_cast<std::uintptr_t>(std::malloc(size));
  device_memory[*address] = size;
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer address) {
  if (current.empty()) return kInvalidContext;
  const std::lock_guard lock(mutex);
  const auto found = device_memory.find(address);
  if (found == device_memory.end()) return kInvalidValue;
  in_use -= found->second;
  device_memory.erase(found);
  std::free(reinterpret_cast<void*>(address - kFar));
  return kSuccess;
}
Result cuMemHostAlloc(void** memory, std::size_t size, unsigned) {
  if (current.empty()) return kInvalidContext;
  *memory = std::malloc(size);
  const std::lock_guard lock(mutex);
  pinned_memory[static_cast<const char*>(*memory)] = size;
  return kSuccess;
}
Result cuMemFreeHost(void* memory) {
  const std::lock_guard lock(mutex);
  if (pinned_memory.erase(static_cast<const char*>(memory)) == 0) return kInvalidValue;
  std::free(memory);
  return kSuccess;
}

Result cuStreamCreate(Stream** stream, unsigned) {
  if (current.empty()) return kInvalidContext;
  *stream = new Stream;
  const std::lock_guard lock(mutex);
  return ++streams, kSuccess;
}
Result cuStreamDestroy_v2(Stream* stream) {
  delete stream;
  const std::lock_guard lock(mutex);
  return --streams, kSuccess;
}
Result cuStreamSynchronize(Stream* stream) {
  if (current.empty()) return kInvalidContext;
  stream->wait();
  return stream->failed ? kLaunchFailed : kSuccess;
}

Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t size, Stream* stream) {
  if (current.empty()) return kInvalidContext;
  const std::lock_guard lock(mutex);
  if (!holds(device_memory, to, size) || !holds(pinned_memory, static_cast<const char*>(from), size))
    return kInvalidValue;
  most_in_flight = std::max(most_in_flight, ++in_flight);
  const bool fails = failing_copies > 0 && --failing_copies == 0;
  stream->add([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (fails)
      stream->failed = true;
    else
      std::memcpy(reinterpret_cast<void*>(to - kFar), from, size);
    const std::lock_guard inner(mutex);
    --in_flight;
  });
  return kSuccess;
}
Result cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t size) {
  if (current.empty()) return kInvalidContext;
  const std::lock_guard lock(mutex);
  if (!holds(device_memory, from, size)) return kInvalidValue;
  std::memcpy(to, reinterpret_cast<const void*>(from - kFar), size);
  return kSuccess;
}

// These functions are for the tests alone.
std::size_t fake_cuda_in_use() { return in_use + pinned_memory.size() + streams + current.size(); }
std::size_t fake_cuda_most_in_flight() { return most_in_flight; }
void fake_cuda_fail_copy(int number) { failing_copies = number; }  // counted from 1

}  // extern "C"
