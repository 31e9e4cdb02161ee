// Memory and files that Python brings along: arrays as tensors, and objects with read(offset, size) as sources.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include <ballast/source.hpp>
#include <ballast/tensor.hpp>

namespace ballast::python {

// Keeps an object alive from C++; whichever thread lets go of it takes the interpreter's lock.
std::shared_ptr<const void> keep(pybind11::object object);

// The contiguous elements at `address`, which `owner` keeps alive.
Tensor tensor_of_memory(pybind11::object owner, std::uintptr_t address, std::uint64_t nbytes, const std::string& dtype,
                        const std::vector<std::uint64_t>& shape);

// A contiguous buffer as a tensor, which shares its memory.
Tensor tensor_of_buffer(const pybind11::buffer& buffer, const std::string& dtype,
                        const std::vector<std::uint64_t>& shape);

// A whole file in a buffer, which is not copied.
SourcePtr source_of_buffer(const pybind11::buffer& buffer);

// An object with read(offset, size) -> bytes and size (or __len__), and perhaps a name.
SourcePtr source_of(const pybind11::object& object);

}  // namespace ballast::python
