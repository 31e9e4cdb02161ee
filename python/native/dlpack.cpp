#include "dlpack.hpp"
#include "gil.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace ballast::python {
namespace {

// The structures of DLPack 1.0, as its specification lays them out in memory.
struct Device {
  std::int32_t type, id;
};
struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Array {
  void* data;
  Device device;
  std::int32_t rank;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed*);
};
struct Versioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  std::uint64_t flags;
  Array array;
};

constexpr std::int32_t kCpu = 1;
constexpr std::uint64_t kCopied = 2;

// Code, bits and lanes; bits 0 if DLPack has no such type.
constexpr DataType data_type(DType dtype) {
  switch (dtype) {
    case DType::i8: return {0, 8, 1};
    case DType::i16: return {0, 16, 1};
    case DType::i32: return {0, 32, 1};
    case DType::i64: return {0, 64, 1};
    case DType::u8: return {1, 8, 1};
    case DType::u16: return {1, 16, 1};
    case DType::u32: return {1, 32, 1};
    case DType::u64: return {1, 64, 1};
    case DType::f16: return {2, 16, 1};
    case DType::f32: return {2, 32, 1};
    case DType::f64: return {2, 64, 1};
    case DType::bf16: return {4, 16, 1};
    case DType::c32: return {5, 32, 1};
    case DType::c64: return {5, 64, 1};
    case DType::c128: return {5, 128, 1};
    case DType::boolean: return {6, 8, 1};
    case DType::f8_e4m3: return {10, 8, 1};
    case DType::f8_e4m3fnuz: return {11, 8, 1};
    case DType::f8_e5m2: return {12, 8, 1};
    case DType::f8_e5m2fnuz: return {13, 8, 1};
    case DType::f8_e8m0: return {14, 8, 1};
    default: return {0, 0, 0};
  }
}

// Whatever a consumer holds on to. Nothing in it belongs to Python, so it may be freed without the interpreter's lock.
template <class Struct>
struct Held {
  Struct managed{};
  PrivateBytes bytes;
  std::vector<std::int64_t> shape, strides;

  explicit Held(const PrivateBytes& from) : bytes(from), shape(from.tensor.shape().begin(), from.tensor.shape().end()) {
    const Strides own = from.tensor.strides();
    strides.assign(own.begin(), own.end());
    Array& array = managed.array;
    array.data = bytes.data;
    array.device = {kCpu, 0};
    array.rank = static_cast<std::int32_t>(shape.size());
    array.dtype = data_type(from.tensor.dtype());
    array.shape = shape.data();
    array.strides = strides.data();
    managed.context = this;
    managed.deleter = [](Struct* self) { delete static_cast<Held*>(self->context); };
  }
};

PrivateBytes copy_of(const PyTensor& self) {
  const Unlocked unlocked;
  return copied(self.tensor());
}

// Frees a tensor that no consumer took: a consumer renames the capsule.
template <class Struct>
void free_unused(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<Struct*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

py::object capsule(void* managed, const char* name, PyCapsule_Destructor destructor) {
  PyObject* made = PyCapsule_New(managed, name, destructor);
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

std::optional<DType> dtype_of(const DataType& type) {
  for (const DTypeInfo& row : all_dtypes()) {
    const DataType own = data_type(row.dtype);
    if (own.bits != 0 && own.code == type.code && own.bits == type.bits && own.lanes == type.lanes) return row.dtype;
  }
  return std::nullopt;
}

bool is_c_contiguous(const Array& array) {
  std::int64_t stride = 1;
  for (std::int32_t i = array.rank; array.strides != nullptr && i-- > 0;) {
    if (array.shape[i] != 1 && array.strides[i] != stride) return false;
    stride *= array.shape[i];
  }
  return true;
}

// Elements that lie apart are copied one by one; producers of DLPack have contiguous tensors nearly always.
std::vector<std::byte> gathered(const Array& array, std::size_t width, std::uint64_t count) {
  std::vector<std::byte> bytes(count * width);
  std::vector<std::int64_t> at(static_cast<std::size_t>(array.rank), 0);
  const auto* first = static_cast<const std::byte*>(array.data) + array.byte_offset;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::int64_t distance = 0;
    for (std::size_t d = 0; d < at.size(); ++d) distance += at[d] * array.strides[d];
    std::memcpy(bytes.data() + i * width, first + distance * static_cast<std::int64_t>(width), width);
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == array.shape[d];) at[d] = 0;
  }
  return bytes;
}

// The tensor of an array that `owner` keeps alive.
Tensor tensor_of(const Array& array, std::shared_ptr<const void> owner) {
  if (array.device.type != kCpu) throw py::type_error("the tensor is not in memory of the cpu: copy it there first");
  const auto dtype = dtype_of(array.dtype);
  if (!dtype) {
    throw py::type_error("a checkpoint has no dtype for DLPack's type (" + std::to_string(array.dtype.code) + ", " +
                         std::to_string(array.dtype.bits) + ", " + std::to_string(array.dtype.lanes) + ")");
  }
  const std::vector<std::uint64_t> dims(array.shape, array.shape + array.rank);
  const Shape shape{std::span(dims)};
  const std::uint64_t count = shape.numel().value();
  const std::size_t width = info(*dtype).block_bytes;
  if (!is_c_contiguous(array) && count != 0) return Tensor::from_bytes(*dtype, shape, gathered(array, width, count));
  const std::span bytes(static_cast<const std::byte*>(array.data) + array.byte_offset, count * width);
  return {*dtype, shape, memory_storage(bytes, std::move(owner))};
}

// Takes the tensor out of the capsule: from then on the deleter is ours to call, in whatever thread.
template <class Struct>
Tensor taken(const py::capsule& capsule, const char* name, const char* used_name) {
  auto* managed = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
  const std::shared_ptr<const void> owner(managed, [](const void* held) {
    if (is_ending()) return;
    const Locked locked;  // the producer's deleter may touch Python objects
    auto* own = static_cast<Struct*>(const_cast<void*>(held));
    if (own->deleter != nullptr) own->deleter(own);
  });
  return tensor_of(managed->array, owner);
}

}  // namespace

Tensor tensor_of_dlpack(const py::capsule& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0)
    return taken<Versioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
  return taken<Managed>(capsule, "dltensor", "used_dltensor");
}

py::object dlpack_of(PyTensor& self, const py::object& stream, const py::object& max_version,
                     const py::object& dl_device, const py::object& copy) {
  static_cast<void>(stream);  // the memory is the processor's own, where there is nothing to wait for
  const auto refuse = [](const std::string& text) {
    PyErr_SetString(PyExc_BufferError, text.c_str());
    throw py::error_already_set();
  };
  const bool is_elsewhere = !dl_device.is_none() && !dl_device.equal(py::make_tuple(kCpu, 0));
  if (is_elsewhere) refuse("the tensor is in memory of the cpu, and DLPack cannot move it");
  const DType dtype = self.tensor().dtype();
  if (data_type(dtype).bits == 0) {
    refuse("DLPack has no type for " + std::string(name(dtype)) + "; t.bitcast(\"U8\") is the same memory as bytes");
  }
  if (!copy.is_none() && !py::isinstance<py::bool_>(copy)) throw py::type_error("copy is True, False or None");
  const bool must_copy = !copy.is_none() && copy.cast<bool>();
  const PrivateBytes bytes = must_copy ? copy_of(self) : self.bytes();
  const bool was_copied = must_copy || !self.is_shared();
  if (was_copied && !copy.is_none() && !must_copy)
    refuse("the values do not lie in memory as they are: a copy is needed");
  bool knows_versions = false;
  if (!max_version.is_none()) {
    const py::object major = py::reinterpret_borrow<py::sequence>(max_version)[0];
    knows_versions = PyObject_RichCompareBool(major.ptr(), py::int_(1).ptr(), Py_GE) == 1;
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  }
  if (!knows_versions) {
    return capsule(&(new Held<Managed>(bytes))->managed, "dltensor",
                   [](PyObject* self_capsule) { free_unused<Managed>(self_capsule, "dltensor"); });
  }
  auto* held = new Held<Versioned>(bytes);
  held->managed.major = 1;
  held->managed.flags = was_copied ? kCopied : 0;
  return capsule(&held->managed, "dltensor_versioned",
                 [](PyObject* self_capsule) { free_unused<Versioned>(self_capsule, "dltensor_versioned"); });
}

}  // namespace ballast::python
