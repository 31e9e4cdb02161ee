// RepeatedBytes: how many bytes views make from the bytes that are there. A view with a stride of 0 repeats bytes, and
// so do many views of the same storage: 4 bytes of a file can claim to be an exbibyte.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include <ballast/limits.hpp>
#include <ballast/tensor.hpp>

namespace ballast {

// Counts tensors that are about to be read or written, with all tensors that they are made of.
class RepeatedBytes {
 public:
  explicit RepeatedBytes(const Limits& limits) : limits_(limits) {}

  // Throws Errc::limit if all views together are larger than the limits on expansion allow.
  void add(std::string_view name, const Tensor& tensor);

 private:
  Limits limits_;
  std::set<const Storage*> storages_;    // storages that lie in a file, or in memory, as they are
  std::uint64_t viewed_ = 0, real_ = 0;  // bytes of views, and of those storages
};

}  // namespace ballast
