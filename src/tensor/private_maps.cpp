#include <ballast/private_maps.hpp>

#include <sys/mman.h>
#include <sys/stat.h>

#include "io/open_file.hpp"

namespace ballast {

struct PrivateMaps::Map {
  Map(StoragePtr any, int fd) : storage(std::move(any)) {
    struct stat status = {};
    if (fstat(fd, &status) != 0 || status.st_size <= 0) return;
    const auto size = static_cast<std::size_t>(status.st_size);
    // Only the pages that are written to take memory, so nothing is reserved for the others.
    void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (address == MAP_FAILED) return;
    data = static_cast<std::byte*>(address);
    bytes = size;
  }
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;
  ~Map() {
    if (data != nullptr) munmap(data, bytes);
  }

  StoragePtr storage;         // keeps the file open, because the map is found by the address of the open file
  std::byte* data = nullptr;  // null if the file cannot be mapped
  std::size_t bytes = 0;
};

namespace {

// The bytes before and after the first element that the strides lead to.
struct Reach {
  std::uint64_t before = 0, after = 0;
};

Reach reach_of(const Tensor& tensor) {
  if (tensor.is_contiguous()) return {0, tensor.nbytes()};
  Reach reach{0, info(tensor.dtype()).block_bytes};
  const Strides strides = tensor.strides();
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    // The tensor has been checked to lie inside its storage, so nothing here is too large.
    const std::int64_t last = strides[i] * static_cast<std::int64_t>(tensor.shape()[i] - 1);
    const std::uint64_t bytes = static_cast<std::uint64_t>(last < 0 ? -last : last) * info(tensor.dtype()).block_bytes;
    (last < 0 ? reach.before : reach.after) += bytes;
  }
  return reach;
}

}  // namespace

PrivateBytes copied(const Tensor& tensor) {
  const Tensor copy = tensor.realize();
  const auto bytes = copy.bytes();
  // The copy was made a moment ago in memory of its own, and nobody else has it.
  return {const_cast<std::byte*>(bytes.data()), copy.storage(), copy};
}

std::shared_ptr<const PrivateMaps::Map> PrivateMaps::map_of(const StoragePtr& storage, const FileLocation& location) {
  const std::lock_guard lock(mutex_);
  auto& map = maps_[location.open_file];
  if (!map) map = std::make_shared<const Map>(storage, descriptor_of(location));
  return map;
}

std::optional<PrivateBytes> PrivateMaps::mapped(const Tensor& tensor) {
  const auto location = tensor.storage() && tensor.nbytes() != 0 ? tensor.storage()->location() : std::nullopt;
  if (!location || descriptor_of(*location) < 0) return std::nullopt;
  const std::uint64_t first = location->offset + tensor.offset();
  const auto map = map_of(tensor.storage(), *location);
  if (map->data == nullptr || first + reach_of(tensor).after > map->bytes) return std::nullopt;
  tensor.storage()->check_unchanged();  // the pages of a file that has shrunk cannot be touched
  return PrivateBytes{map->data + first, map, tensor};
}

}  // namespace ballast
