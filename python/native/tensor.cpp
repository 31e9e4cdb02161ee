#include <pybind11/stl.h>

#include "tensor.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <ballast/error.hpp>

#include "buffer.hpp"
#include "dlpack.hpp"
#include "gil.hpp"
#include "index.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

py::object location_of(const Tensor& tensor) {
  const auto location = tensor.storage() ? tensor.storage()->location() : std::nullopt;
  if (!location) return py::none();
  return py::make_tuple(location->file, location->offset + tensor.offset());
}

py::tuple strides_of(const Tensor& tensor) {
  const Strides strides = tensor.strides();
  py::tuple result(strides.size());
  for (std::size_t i = 0; i < strides.size(); ++i) result[i] = strides[i];
  return result;
}

std::string repr_of(const PyTensor& self) {
  return "<ballast.Tensor " + std::string(name(self.tensor().dtype())) + " " + to_string(self.tensor().shape()) + ">";
}

py::bytes bytes_of(const PyTensor& self) {
  const std::uint64_t size = self.tensor().nbytes();
  auto result = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(size)));
  if (!result) throw py::error_already_set();
  const std::span out(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(result.ptr())), size);
  const Unlocked unlocked;
  self.tensor().read(0, out);
  return result;
}

// For the Python side: the memory from the first to the last element as bytes, where the first one lies in it, and the
// strides.
py::tuple memory_of(PyTensor& self) {
  const PrivateBytes& bytes = self.bytes();
  const Tensor& tensor = bytes.tensor;
  const Strides strides = tensor.strides();
  const std::int64_t size = info(tensor.dtype()).block_bytes;
  std::int64_t low = 0, high = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const auto last = strides[i] * static_cast<std::int64_t>(tensor.shape()[i] - 1);
    (last < 0 ? low : high) += last * size;
  }
  const std::int64_t end = tensor.is_contiguous() ? static_cast<std::int64_t>(tensor.nbytes()) : high + size;
  const std::int64_t span = tensor.nbytes() == 0 ? 0 : end - low;
  return py::make_tuple(MemorySpan{bytes.owner, bytes.data + low, static_cast<std::size_t>(span)}, -low,
                        strides_of(tensor));
}

// The module of the Python side, which is imported when somebody first needs it.
py::object interop(const char* function) { return py::module_::import("ballast._interop").attr(function); }

// t == 3 is an array, element by element, as NumPy and torch have it. A tensor is hashed by its identity, as there.
void add_comparisons(const py::object& type) {
  struct Row {
    const char *method, *function;
  };
  constexpr Row kComparisons[] = {{"__eq__", "equal"},      {"__ne__", "not_equal"}, {"__lt__", "less"},
                                  {"__le__", "less_equal"}, {"__gt__", "greater"},   {"__ge__", "greater_equal"}};
  const py::object object = py::module_::import("builtins").attr("object");
  for (const auto& [method, function] : kComparisons) {
    type.attr(method) = py::cpp_function(
        [function = function](const py::object& self, const py::object& other) {
          return interop("compared")(self, other, function);
        },
        py::name(method), py::is_method(type));
  }
  type.attr("__hash__") = object.attr("__hash__");
}

py::object refuse_pickling(const PyTensor&, const py::object&) {
  throw py::type_error("a ballast.Tensor cannot be pickled: it is a view of a file; pickle t.numpy() or t.torch()");
}

// A dtype as its name, or as torch's or NumPy's object for it.
DType dtype_given(const py::object& dtype) {
  if (py::isinstance<py::str>(dtype)) return dtype_of(dtype.cast<std::string>());
  if (py::isinstance<py::type>(dtype)) return dtype_of(dtype.attr("__name__").cast<std::string>());  // numpy.float16
  if (py::hasattr(dtype, "name")) return dtype_of(py::str(dtype.attr("name")).cast<std::string>());
  return dtype_of(py::str(dtype).cast<std::string>());
}

// The dimensions of reshape(2, 3) and reshape([2, 3]); one of them may be -1.
Tensor reshaped(const Tensor& tensor, const py::args& args) {
  const bool is_list = args.size() == 1 && PyIndex_Check(args[0].ptr()) == 0;
  std::vector<std::uint64_t> dims;
  std::optional<std::size_t> open;
  std::uint64_t known = 1;
  for (const py::handle item : is_list ? py::tuple(args[0]) : py::tuple(args)) {
    const auto dim = item.cast<std::int64_t>();
    if (dim < -1 || (dim == -1 && open)) throw py::value_error("one dimension may be -1, the others are not negative");
    if (dim == -1) open = dims.size();
    dims.push_back(dim == -1 ? 1 : static_cast<std::uint64_t>(dim));
    if (dim != -1 && __builtin_mul_overflow(known, static_cast<std::uint64_t>(dim), &known)) known = 0;
  }
  if (open && known != 0) dims[*open] = tensor.numel() / known;
  return tensor.reshape(Shape(std::span(dims)));
}

}  // namespace

const PrivateBytes& PyTensor::bytes() {
  if (bytes_) return *bytes_;
  // A map is made with the interpreter's lock: after fork, a child must not wait for a lock that nobody holds any more.
  if (auto mapped = maps_->mapped(tensor_)) {
    is_shared_ = true;
    bytes_ = std::make_shared<const PrivateBytes>(*std::move(mapped));
    return *bytes_;
  }
  std::shared_ptr<const PrivateBytes> made;
  {
    const Unlocked unlocked;
    made = std::make_shared<const PrivateBytes>(copied(tensor_));
  }
  if (!bytes_) bytes_ = std::move(made);  // another thread may have been faster
  return *bytes_;
}

void forbid_making(py::handle type) {
  reinterpret_cast<PyTypeObject*>(type.ptr())->tp_new = [](PyTypeObject* self, PyObject*, PyObject*) -> PyObject* {
    PyErr_Format(PyExc_TypeError, "%s cannot be made in Python", self->tp_name);
    return nullptr;
  };
}

DType dtype_of(const std::string& text) {
  const std::string name = text.starts_with("torch.") ? text.substr(6) : text;
  if (const auto dtype = parse_dtype(name)) return *dtype;
  throw Error(Errc::invalid_argument, "there is no dtype \"" + text + "\"")
      .hint("write it as in the file (\"BF16\", \"Q4_K\") or as torch does (\"bfloat16\")");
}

py::tuple to_tuple(const Shape& shape) {
  py::tuple result(shape.rank());
  for (std::size_t i = 0; i < shape.rank(); ++i) result[i] = shape[i];
  return result;
}

void add_tensor(py::module_& module) {
  py::class_<PyTensor>(
      module, "Tensor", py::buffer_protocol(),
      "A tensor that reads nothing until somebody touches its values. Indexing gives views, which read "
      "only what they show. Arrays that are made of it may be written to: the file stays as it is.")
      .def_property_readonly("shape", [](const PyTensor& self) { return to_tuple(self.tensor().shape()); })
      .def_property_readonly(
          "dtype", [](const PyTensor& self) { return std::string(name(self.tensor().dtype())); },
          "The dtype as files spell it: \"BF16\", \"F8_E4M3\", \"Q4_K\".")
      .def_property_readonly("ndim", [](const PyTensor& self) { return self.tensor().rank(); })
      .def_property_readonly("nbytes", [](const PyTensor& self) { return self.tensor().nbytes(); })
      .def_property_readonly("numel", [](const PyTensor& self) { return self.tensor().numel(); })
      .def_property_readonly("device", &PyTensor::device)
      .def_property_readonly(
          "strides", [](const PyTensor& self) { return strides_of(self.tensor()); },
          "How many elements lie between neighbours in each dimension.")
      .def_property_readonly(
          "location", [](const PyTensor& self) { return location_of(self.tensor()); },
          "(file, byte) of the first element, or None if the bytes are compressed or computed.")
      .def_property_readonly(
          "has_data", [](const PyTensor& self) { return self.tensor().has_data(); },
          "False for a meta tensor, which has a dtype and a shape and nothing else.")
      .def_property_readonly("is_contiguous", [](const PyTensor& self) { return self.tensor().is_contiguous(); })
      .def("__repr__", &repr_of)
      .def("__len__",
           [](const PyTensor& self) {
             if (self.tensor().rank() == 0) throw py::type_error("len() of a tensor without dimensions");
             return self.tensor().shape()[0];
           })
      .def("__getitem__",
           [](const PyTensor& self, const py::handle& index) { return self.with(indexed(self.tensor(), index)); })
      .def("__bool__",
           [](const py::object& self) {
             if (self.cast<const PyTensor&>().tensor().numel() != 1)
               throw py::value_error("the truth of a tensor that has not one value is ambiguous");
             return py::bool_(self.attr("item")());
           })
      .def(
          "to",
          [](const PyTensor& self, const py::object& dtype) { return self.with(self.tensor().to(dtype_given(dtype))); },
          py::arg("dtype"), "The same values in another dtype, made when they are read.")
      .def(
          "bitcast",
          [](const PyTensor& self, const py::object& dtype) {
            return self.with(self.tensor().bitcast(dtype_given(dtype)));
          },
          py::arg("dtype"),
          "The same bytes as another dtype; the last dimension changes with the size of the elements.")
      .def("reshape",
           [](const PyTensor& self, const py::args& shape) { return self.with(reshaped(self.tensor(), shape)); })
      .def("permute",
           [](const PyTensor& self, const py::args& order) {
             const bool is_list = order.size() == 1 && PyIndex_Check(order[0].ptr()) == 0;
             const auto axes =
                 py::tuple(is_list ? py::object(order[0]) : py::object(order)).cast<std::vector<std::size_t>>();
             return self.with(self.tensor().permute(axes));
           })
      .def("__float__", [](const py::object& self) { return py::float_(self.attr("item")()); })
      .def("__int__", [](const py::object& self) { return py::int_(self.attr("item")()); })
      .def("__complex__",
           [](const py::object& self) { return py::module_::import("builtins").attr("complex")(self.attr("item")()); })
      .def("_storage",
           [](const PyTensor& self) {
             const auto& storage = self.tensor().storage();
             const std::uint64_t size = storage ? storage->size_bytes() : 0;
             return py::make_tuple(reinterpret_cast<std::uintptr_t>(storage.get()),
                                   self.with(Tensor(DType::u8, {size}, storage)), self.tensor().offset());
           })
      .def("contiguous",
           [](const PyTensor& self) {
             const Unlocked unlocked;
             return self.with(self.tensor().contiguous());
           })
      .def("tobytes", &bytes_of, "The bytes of the contiguous little-endian form.")
      .def("numpy", [](const py::object& self) { return interop("to_numpy")(self); })
      .def("torch", [](const py::object& self) { return interop("to_torch")(self); })
      .def("tolist", [](const py::object& self) { return interop("to_list")(self); })
      .def("item", [](const py::object& self) { return interop("to_item")(self); })
      .def(
          "__array__",
          [](const py::object& self, const py::object& dtype, const py::object& copy) {
            return interop("to_array")(self, dtype, copy);
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack__", &dlpack_of, py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
           py::arg("dl_device") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack_device__", [](const PyTensor&) { return py::make_tuple(1, 0); })
      .def("__reduce_ex__", &refuse_pickling)
      .def("_memory", &memory_of);
  forbid_making(module.attr("Tensor"));
  add_comparisons(module.attr("Tensor"));
  add_tensor_buffer(module.attr("Tensor"));

  py::class_<MemorySpan>(module, "MemorySpan", py::buffer_protocol(), "Bytes that may be written to.")
      .def("__len__", [](const MemorySpan& self) { return self.size; })
      .def_property_readonly("address",
                             [](const MemorySpan& self) { return reinterpret_cast<std::uintptr_t>(self.data); });
  forbid_making(module.attr("MemorySpan"));
  add_span_buffer(module.attr("MemorySpan"));
}

}  // namespace ballast::python
