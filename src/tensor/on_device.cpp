#include "tensor/on_device.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "core/thread_pool.hpp"
#include "device/backend.hpp"
#include "tensor/pieces.hpp"

namespace ballast {
namespace {

constexpr unsigned kMostThreads = 8;  // with two buffers each: 64 MiB

// Bytes on a device, which are copied back when somebody reads them.
class DeviceStorage final : public Storage {
 public:
  DeviceStorage(Device device, std::shared_ptr<device::Memory> memory, std::uint64_t size)
      : device_(device), memory_(std::move(memory)), size_(size) {}

  std::uint64_t size_bytes() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { memory_->read(offset, out); }

  const Device& device() const noexcept { return device_; }
  std::uintptr_t handle() const noexcept { return memory_->handle(); }

 private:
  Device device_;
  std::shared_ptr<device::Memory> memory_;
  std::uint64_t size_;
};

// Two buffers in turn: one is filled while the device copies from the other.
class Lane {
 public:
  Lane(device::Backend& backend, std::size_t buffer_bytes) {
    for (auto& buffer : buffers_) buffer = backend.staging(buffer_bytes);
  }

  void carry(const Tensor& from, ByteRange range, device::Memory& to) {
    const std::uint64_t end = range.offset + range.size;
    for (std::uint64_t offset = range.offset; offset < end;) {
      std::swap(buffers_[0], buffers_[1]);
      device::Staging& buffer = *buffers_[0];
      buffer.wait();
      const auto bytes = buffer.bytes().first(std::min<std::uint64_t>(buffer.bytes().size(), end - offset));
      from.read(offset, bytes);
      buffer.upload(to, offset, bytes.size());
      offset += bytes.size();
    }
  }
  void finish() {
    for (const auto& buffer : buffers_) buffer->wait();
  }

 private:
  std::array<std::unique_ptr<device::Staging>, 2> buffers_;
};

std::uint64_t largest(std::span<const TensorPiece> pieces) {
  std::uint64_t most = 1;
  for (const TensorPiece& piece : pieces) most = std::max(most, piece.bytes.size);
  return std::min(most, kPieceBytes);
}

}  // namespace

std::vector<Tensor> uploaded(std::span<const Tensor> tensors, const Device& device, unsigned threads,
                             const std::function<void(std::uint64_t)>& on_read) {
  device::Backend& backend = device::backend(device);
  std::vector<std::shared_ptr<device::Memory>> memory;  // all of it first: a lack of memory shows before reading
  for (const Tensor& tensor : tensors) memory.push_back(backend.allocate(std::max<std::uint64_t>(tensor.nbytes(), 1)));

  const std::vector<TensorPiece> pieces = cut_by_bytes(tensors, kPieceBytes);
  ThreadPool pool(std::min(threads == 0 ? available_threads() : threads, kMostThreads));
  std::vector<std::unique_ptr<Lane>> lanes(pool.size());
  pool.run(pieces.size(), [&](std::size_t i, unsigned worker) {
    const auto& [number, bytes] = pieces[i];
    if (!lanes[worker]) lanes[worker] = std::make_unique<Lane>(backend, largest(pieces));
    tensors[number].storage()->prepare({});
    lanes[worker]->carry(tensors[number], bytes, *memory[number]);
    if (on_read) on_read(bytes.size);
  });
  for (const auto& lane : lanes) {
    if (lane) lane->finish();
  }

  std::vector<Tensor> placed;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t size = tensors[i].nbytes();
    placed.emplace_back(tensors[i].dtype(), tensors[i].shape(),
                        std::make_shared<DeviceStorage>(device, std::move(memory[i]), size));
  }
  return placed;
}

Tensor without_data(const Tensor& tensor) {
  return Tensor(tensor.dtype(), tensor.shape(), meta_storage(tensor.nbytes()));
}

DevicePlace place_of(const Tensor& tensor) {
  if (!tensor.has_data()) return {.device = Device::Kind::meta};
  const auto* const storage = dynamic_cast<const DeviceStorage*>(tensor.storage().get());
  if (storage == nullptr) return {};
  return {.device = storage->device(), .handle = storage->handle(), .offset = tensor.offset()};
}

Tensor Tensor::to(const Device& device, unsigned threads) const {
  if (device.kind() == Device::Kind::meta) return has_data() ? without_data(*this) : *this;
  if (place_of(*this).device == device && (is_contiguous() || device.kind() == Device::Kind::cpu)) return *this;
  if (device.kind() == Device::Kind::cpu) return realize(threads);
  return uploaded({this, 1}, device, threads).front();
}

}  // namespace ballast
