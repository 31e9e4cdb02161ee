#include "index.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <ballast/error.hpp>

namespace py = pybind11;

namespace ballast::python {
namespace {

std::optional<std::int64_t> bound(PyObject* value) {
  if (value == Py_None) return std::nullopt;
  // A bound that does not fit is as good as the largest, as everywhere in Python.
  const Py_ssize_t number = PyNumber_AsSsize_t(value, nullptr);
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return number;
}

// An array of one integer is an integer, as everywhere; True is not 1 here, because NumPy reads it as a mask.
Py_ssize_t integer_of(PyObject* item) {
  const bool may_be = PyIndex_Check(item) != 0 && PyBool_Check(item) == 0;
  const Py_ssize_t at = may_be ? PyNumber_AsSsize_t(item, PyExc_IndexError) : -1;
  if (may_be && (at != -1 || PyErr_Occurred() == nullptr)) return at;
  if (may_be && PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  throw py::type_error(
      "a lazy tensor is indexed with integers, slices, ... and None; for lists and masks, take t.numpy()[…] or "
      "t.torch()[…]");
}

// Takes the items one after the other, and notes for each dimension of the result whether it is a new one.
class Reading {
 public:
  explicit Reading(const Tensor& tensor) : tensor_(tensor) {}

  void add(PyObject* item) {
    if (item == Py_None) {
      is_new_.push_back(true);
    } else if (item == Py_Ellipsis) {
      if (ellipsis_) throw py::index_error("an index can only have a single ellipsis ('...')");
      ellipsis_ = is_new_.size();
      slice_.push_back(SliceIndex::ellipsis());
    } else if (PySlice_Check(item)) {
      add_range(reinterpret_cast<PySliceObject*>(item));
    } else {
      slice_.push_back(SliceIndex::at(integer_of(item)));
      ++used_;
    }
  }

  Tensor view() {
    if (used_ > tensor_.rank()) {
      throw py::index_error("too many indices for a tensor with " + std::to_string(tensor_.rank()) +
                            " dimensions: " + std::to_string(used_));
    }
    Tensor result = tensor_.slice(slice_);
    if (std::find(is_new_.begin(), is_new_.end(), true) == is_new_.end()) return result;
    // The dimensions that no item names stand where the ellipsis stands, or last.
    const auto rest = is_new_.begin() + static_cast<std::ptrdiff_t>(ellipsis_.value_or(is_new_.size()));
    is_new_.insert(rest, tensor_.rank() - used_, false);
    std::vector<std::uint64_t> shape;
    Strides strides;
    std::size_t old = 0;
    const Strides old_strides = result.strides();
    for (const bool is_new : is_new_) {
      shape.push_back(is_new ? 1 : result.shape()[old]);
      strides.push_back(is_new ? 1 : old_strides[old]);
      old += is_new ? 0 : 1;
    }
    if (result.is_contiguous()) return result.reshape(Shape(std::span(shape)));
    return {result.dtype(), Shape(std::span(shape)), strides, result.storage(), result.offset()};
  }

 private:
  void add_range(PySliceObject* range) {
    const auto step = bound(range->step);
    if (step == 0) throw py::value_error("slice step cannot be zero");
    slice_.push_back(SliceIndex::range(bound(range->start), bound(range->stop), step.value_or(1)));
    is_new_.push_back(false);
    ++used_;
  }

  const Tensor& tensor_;
  Slice slice_;
  std::vector<bool> is_new_;
  std::optional<std::size_t> ellipsis_;  // how many dimensions stand before it
  std::size_t used_ = 0;                 // dimensions of the tensor that the items name
};

}  // namespace

Tensor indexed(const Tensor& tensor, py::handle index) {
  Reading reading(tensor);
  if (PyTuple_Check(index.ptr())) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index.ptr()); ++i) reading.add(PyTuple_GET_ITEM(index.ptr(), i));
  } else {
    reading.add(index.ptr());
  }
  try {
    return reading.view();
  } catch (const Error& error) {
    if (error.code() == Errc::invalid_argument || error.code() == Errc::not_found) throw py::index_error(error.what());
    throw;
  }
}

}  // namespace ballast::python
