#include "buffer.hpp"

#include <memory>
#include <string>
#include <vector>

#include <ballast/error.hpp>

#include "errors.hpp"
#include "tensor.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

// The letter of the buffer protocol; null if it has none.
const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "?";
    case DType::i8: return "b";
    case DType::u8: return "B";
    case DType::i16: return "h";
    case DType::u16: return "H";
    case DType::i32: return "i";
    case DType::u32: return "I";
    case DType::i64: return "q";
    case DType::u64: return "Q";
    case DType::f16: return "e";
    case DType::f32: return "f";
    case DType::f64: return "d";
    case DType::c64: return "Zf";
    case DType::c128: return "Zd";
    default: return nullptr;
  }
}

// What a view points to, freed with it.
struct Dimensions {
  std::vector<Py_ssize_t> shape, strides;
};

[[noreturn]] void refuse(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw py::error_already_set();
}

void fill(Py_buffer& view, PyTensor& self, int flags) {
  const char* format = format_of(self.tensor().dtype());
  if (format == nullptr) {
    refuse("the buffer protocol has no letter for " + std::string(name(self.tensor().dtype())) +
           "; t.bitcast(\"U8\") is the same memory as bytes");
  }
  const PrivateBytes& bytes = self.bytes();
  const bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  const auto wants = [&](int order) { return (flags & order) == order; };
  const bool wants_c = wants(PyBUF_C_CONTIGUOUS) || wants(PyBUF_ANY_CONTIGUOUS) || !wants_strides;
  if (!bytes.tensor.is_contiguous() && wants_c)
    refuse("the tensor is not contiguous; t.contiguous() is a copy that is");
  if (wants(PyBUF_F_CONTIGUOUS) && bytes.tensor.rank() > 1) refuse("the tensor is not in Fortran's order");
  const auto size = static_cast<Py_ssize_t>(info(bytes.tensor.dtype()).block_bytes);
  auto dimensions = std::make_unique<Dimensions>();
  dimensions->shape.assign(bytes.tensor.shape().begin(), bytes.tensor.shape().end());
  for (const std::int64_t stride : bytes.tensor.strides())
    dimensions->strides.push_back(static_cast<Py_ssize_t>(stride) * size);
  view.buf = bytes.data;
  view.len = static_cast<Py_ssize_t>(bytes.tensor.nbytes());
  view.itemsize = size;
  view.readonly = 0;
  view.ndim = static_cast<int>(dimensions->shape.size());
  view.format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  view.shape = (flags & PyBUF_ND) != 0 ? dimensions->shape.data() : nullptr;
  view.strides = wants_strides ? dimensions->strides.data() : nullptr;
  view.suboffsets = nullptr;
  view.internal = dimensions.release();
}

int get_tensor_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    *view = {};
    fill(*view, py::handle(self).cast<PyTensor&>(), flags);
    view->obj = self;
    Py_INCREF(self);
    return 0;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const Error& error) {
    try {
      raise(error);
    } catch (py::error_already_set& raised) {
      raised.restore();
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  view->obj = nullptr;
  return -1;
}

void release_tensor_buffer(PyObject*, Py_buffer* view) { delete static_cast<Dimensions*>(view->internal); }

int get_span_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const auto& span = py::handle(self).cast<MemorySpan&>();
    return PyBuffer_FillInfo(view, self, span.data, static_cast<Py_ssize_t>(span.size), 0, flags);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
    view->obj = nullptr;
    return -1;
  }
}

}  // namespace

void add_tensor_buffer(py::handle type) {
  auto& procs = reinterpret_cast<PyHeapTypeObject*>(type.ptr())->as_buffer;
  procs.bf_getbuffer = get_tensor_buffer;
  procs.bf_releasebuffer = release_tensor_buffer;
}

void add_span_buffer(py::handle type) {
  auto& procs = reinterpret_cast<PyHeapTypeObject*>(type.ptr())->as_buffer;
  procs.bf_getbuffer = get_span_buffer;
  procs.bf_releasebuffer = nullptr;
}

}  // namespace ballast::python
