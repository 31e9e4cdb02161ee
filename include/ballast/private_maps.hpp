// PrivateMaps: the bytes of tensors in memory that a program may write to. Nothing that it writes reaches the file.
//
// Where the bytes lie in a local file as they are, this copies nothing: each file is mapped once, copy-on-write, for
// all of its tensors, so that two views of the same bytes see what is written to either. The functions may be called
// from several threads at once.
//
// Example:
//   PrivateMaps maps;
//   const PrivateBytes bytes = maps.bytes_of(open("model.safetensors").at("norm.weight"));
//   bytes.data[0] = std::byte{1};
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <ballast/tensor.hpp>

namespace ballast {

struct PrivateBytes {
  std::byte* data = nullptr;          // the first element; the tensor's strides lead to the others
  std::shared_ptr<const void> owner;  // keeps the bytes alive, also after the file and the checkpoint are gone
  Tensor tensor;  // dtype, shape and strides of what lies at `data`: the same tensor, or a copy of it
};

// A contiguous copy in memory of its own.
PrivateBytes copied(const Tensor& tensor);

class PrivateMaps {
 public:
  // Nothing if the bytes cannot be mapped. Reads nothing.
  std::optional<PrivateBytes> mapped(const Tensor& tensor);

  // If the bytes cannot be mapped (compressed, computed, big-endian, in memory), they are read into a contiguous copy.
  // A program that uses the map of a file that somebody truncates gets a SIGBUS, as with every map.
  PrivateBytes bytes_of(const Tensor& tensor) {
    auto found = mapped(tensor);
    return found ? *std::move(found) : copied(tensor);
  }

 private:
  struct Map;
  std::shared_ptr<const Map> map_of(const StoragePtr& storage, const FileLocation& location);

  std::mutex mutex_;
  std::map<const OpenFile*, std::shared_ptr<const Map>> maps_;
};

}  // namespace ballast
