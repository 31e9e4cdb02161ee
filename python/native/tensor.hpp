// The Python class Tensor: a lazy tensor, and the memory that it was given when somebody first wanted to touch it.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <string>

#include <ballast/private_maps.hpp>
#include <ballast/tensor.hpp>

namespace ballast::python {

class PyTensor {
 public:
  PyTensor(Tensor tensor, std::shared_ptr<PrivateMaps> maps, std::shared_ptr<const std::string> device = nullptr)
      : tensor_(std::move(tensor)), maps_(std::move(maps)), device_(std::move(device)) {}

  const Tensor& tensor() const noexcept { return tensor_; }
  const std::shared_ptr<PrivateMaps>& maps() const noexcept { return maps_; }
  std::string device() const { return device_ ? *device_ : "cpu"; }

  // The same device and the same maps.
  PyTensor with(Tensor other) const { return {std::move(other), maps_, device_}; }

  // Memory that may be written to, made at the first call. Releases the interpreter's lock while bytes move.
  const PrivateBytes& bytes();
  bool is_shared() const noexcept { return is_shared_; }  // whether bytes() are pages of the file, and no copy

 private:
  Tensor tensor_;
  std::shared_ptr<PrivateMaps> maps_;
  std::shared_ptr<const std::string> device_;
  std::shared_ptr<const PrivateBytes> bytes_;  // set while the interpreter's lock is held
  bool is_shared_ = false;
};

// Bytes that somebody keeps alive.
struct MemorySpan {
  std::shared_ptr<const void> owner;
  std::byte* data = nullptr;
  std::size_t size = 0;
};

void add_tensor(pybind11::module_& module);

// Makes TYPE() and TYPE.__new__(TYPE) a TypeError: an object that C++ did not make has no memory behind it.
void forbid_making(pybind11::handle type);

// The dtype that a word names: "BF16", "bfloat16", "torch.bfloat16".
DType dtype_of(const std::string& text);

pybind11::tuple to_tuple(const Shape& shape);

}  // namespace ballast::python
