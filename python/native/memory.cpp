#include <pybind11/stl.h>

#include "memory.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ballast/error.hpp>

#include "errors.hpp"
#include "gil.hpp"
#include "tensor.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

// The memory of an object, if it is in one piece: a view with strides raises BufferError.
class Contiguous {
 public:
  explicit Contiguous(const py::handle& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  }
  ~Contiguous() { PyBuffer_Release(&view_); }
  Contiguous(const Contiguous&) = delete;
  Contiguous& operator=(const Contiguous&) = delete;

  const std::byte* data() const noexcept { return static_cast<const std::byte*>(view_.buf); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_ = {};
};

class PySource final : public Source {
 public:
  PySource(std::shared_ptr<const void> owner, py::handle object, std::string name, std::uint64_t size)
      : owner_(std::move(owner)), object_(object), name_(std::move(name)), size_(size) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return size_; }
  std::optional<FileLocation> location(std::uint64_t) const override { return std::nullopt; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset)
      throw Error(Errc::malformed, "ends early").in(name_).at_byte(size_);
    if (is_ending()) throw Error(Errc::cancelled, "the interpreter is ending").in(name_);
    const Locked locked;
    try {
      const py::object got = object_.attr("read")(offset, out.size());
      const Contiguous bytes(got);
      if (bytes.size() != out.size()) {
        throw Error(Errc::changed, "read(" + std::to_string(offset) + ", " + std::to_string(out.size()) + ") gave " +
                                       std::to_string(bytes.size()) + " bytes")
            .in(name_);
      }
      std::memcpy(out.data(), bytes.data(), out.size());
    } catch (py::error_already_set& error) {
      // Ctrl-C and sys.exit() are no errors: they are raised again, as they are, where Python goes on.
      if (!error.matches(PyExc_Exception))
        throw Error(Errc::cancelled, "interrupted").in(name_).because(cause_of(error));
      const auto what = py::repr(error.value()).cast<std::string>();
      throw Error(Errc::io, "cannot read: " + what).in(name_).because(cause_of(error));
    }
  }

 private:
  std::shared_ptr<const void> owner_;
  py::handle object_;
  std::string name_;
  std::uint64_t size_;
};

// A whole file that Python holds.
class BufferSource final : public Source {
 public:
  BufferSource(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  std::span<const std::byte> mapped() const override { return bytes_; }
  std::optional<FileLocation> location(std::uint64_t) const override { return std::nullopt; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset)
      throw Error(Errc::malformed, "ends early").in(name_).at_byte(bytes_.size());
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  std::string name_ = "<memory>";
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

// The bytes of a buffer, and what keeps them in place: the view is given back with the interpreter's lock, whichever
// thread lets go of it.
std::pair<std::span<const std::byte>, std::shared_ptr<const void>> held(const py::buffer& buffer) {
  auto view = std::make_unique<Contiguous>(buffer);
  const std::span bytes(view->data(), view->size());
  py::capsule capsule(view.release(), [](void* pointer) { delete static_cast<Contiguous*>(pointer); });
  return {bytes, keep(std::move(capsule))};
}

}  // namespace

std::shared_ptr<const void> keep(py::object object) {
  PyObject* held = object.release().ptr();
  return {held, [](const void* pointer) {
            if (is_ending()) return;  // there is nobody to give it back to
            const Locked locked;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(pointer)));
          }};
}

Tensor tensor_of_memory(py::object owner, std::uintptr_t address, std::uint64_t nbytes, const std::string& dtype,
                        const std::vector<std::uint64_t>& shape) {
  const std::span bytes(reinterpret_cast<const std::byte*>(address), nbytes);
  return {dtype_of(dtype), Shape(std::span(shape)), memory_storage(bytes, keep(std::move(owner)))};
}

Tensor tensor_of_buffer(const py::buffer& buffer, const std::string& dtype, const std::vector<std::uint64_t>& shape) {
  const auto [bytes, owner] = held(buffer);
  return {dtype_of(dtype), Shape(std::span(shape)), memory_storage(bytes, owner)};
}

SourcePtr source_of_buffer(const py::buffer& buffer) {
  const auto [bytes, owner] = held(buffer);
  return std::make_shared<BufferSource>(bytes, owner);
}

SourcePtr source_of(const py::object& object) {
  if (!py::hasattr(object, "read"))
    throw py::type_error("a path, bytes, or an object with read(offset, size) and size is needed, not " +
                         std::string(Py_TYPE(object.ptr())->tp_name));
  py::object size =
      py::hasattr(object, "size") ? py::object(object.attr("size")) : py::object(py::int_(py::len(object)));
  if (PyCallable_Check(size.ptr()) != 0) size = size();
  if (PyIndex_Check(size.ptr()) == 0) throw py::type_error("the size of a source is an integer");
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(size.ptr()));
  const unsigned long long bytes = number ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw py::value_error("the size of a source is not negative, and fits 64 bits");
  }
  std::string name = "<object>";
  if (py::hasattr(object, "name")) name = py::str(object.attr("name")).cast<std::string>();
  return std::make_shared<PySource>(keep(object), object, std::move(name), bytes);
}

}  // namespace ballast::python
