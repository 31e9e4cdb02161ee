// The header of a GGUF file (see docs/formats/gguf.md), as a list of places in the file: gguf-py shows each length,
// key, type and value as an array of its own, and lets a program edit the file through these arrays. The library's own
// reader forgets where it read what, so this one reads the header again.
//
// The sentences of the errors are those of gguf-py wherever it has one.
#include "gguf.hpp"
#include "gil.hpp"
#include "tensor.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/dtype.hpp>
#include <ballast/error.hpp>
#include <ballast/source.hpp>
#include <ballast/typed_metadata.hpp>

namespace py = pybind11;

namespace ballast::python {
namespace {

constexpr std::uint64_t kMostItems = 1 << 30;  // of an array, and bytes of a string
constexpr std::uint32_t kMostDimensions = 4;
constexpr std::size_t kDeepestArrays = 64;

[[noreturn]] void refuse_file(const std::string& text) { throw Error(Errc::malformed, text); }

// A part of the header: `count` values of one type. The bytes of a string are u8.
struct Place {
  std::uint64_t offset;
  MetadataType type;
  std::uint64_t count;
};

// The parts of a field. The elements of a plain array, which may be a whole vocabulary, are not listed one by one.
struct Places {
  std::vector<Place> head;
  MetadataType element = MetadataType::u8;
  std::uint64_t first = 0;             // where the elements begin
  std::uint64_t elements = 0;          // how many numbers; 0 for strings
  std::vector<std::uint64_t> strings;  // where the length of each string lies, and where the last one ends

  std::uint64_t string_count() const noexcept { return strings.empty() ? 0 : strings.size() - 1; }
  std::uint64_t size() const noexcept { return head.size() + elements + 2 * string_count(); }
  Place operator[](std::uint64_t i) const noexcept;
};

Place Places::operator[](std::uint64_t i) const noexcept {
  if (i < head.size()) return head[i];
  i -= head.size();
  if (strings.empty()) return {first + i * width(element), element, 1};
  const std::uint64_t length = strings[i / 2];
  if (i % 2 == 0) return {length, MetadataType::u64, 1};
  return {length + 8, MetadataType::u8, strings[i / 2 + 1] - length - 8};
}

struct GgufField {
  std::uint64_t offset = 0;
  std::string name;
  std::vector<MetadataType> types;
  std::vector<std::uint64_t> data;  // which parts are values; those of a plain array are not listed
  Places places;
};

struct GgufTensor {
  std::uint64_t offset = 0;
  std::string name;
  std::vector<std::uint64_t> shape;  // as in the file, the fastest dimension first
  std::uint32_t type = 0;
  std::uint64_t data = 0;  // counted from the first byte behind the header
  Places places;
};

struct GgufHeader {
  bool is_swapped = false;  // the byte order is not that of this machine
  std::uint32_t version = 0;
  std::vector<GgufField> fields;
  std::vector<GgufTensor> tensors;
  std::uint64_t end = 0;
};

// Reads the header through a window, so that a file that shrinks meanwhile is an error and nothing else.
class HeaderWalk {
 public:
  explicit HeaderWalk(const Source& source) : source_(source), size_(source.size_bytes()) {}

  GgufHeader read() {
    read_counts();
    for (std::uint64_t i = 0; i < fields_; ++i) header_.fields.push_back(read_field());
    for (std::uint64_t i = 0; i < tensors_; ++i) header_.tensors.push_back(read_tensor());
    header_.end = at_;
    return std::move(header_);
  }

 private:
  struct ArrayHead {
    std::uint32_t type;  // of the elements
    std::uint64_t count;
    bool is_first;  // nobody has seen the type of an element here
  };

  std::uint64_t remaining() const noexcept { return size_ - at_; }

  // The next bytes. The pointer is good until the next call.
  const std::byte* bytes(std::uint64_t count) {
    if (count > remaining()) throw Error(Errc::malformed, "the file ends inside the header").at_byte(size_);
    if (at_ < window_begin_ || at_ + count > window_begin_ + window_.size()) {
      constexpr std::uint64_t kWindow = 1 << 18;
      window_.resize(static_cast<std::size_t>(std::max(count, std::min(kWindow, remaining()))));
      window_begin_ = at_;
      source_.read(at_, window_);
    }
    const std::byte* found = window_.data() + (at_ - window_begin_);
    at_ += count;
    return found;
  }

  template <class T>
  T number() {
    T value = 0;
    std::memcpy(&value, bytes(sizeof(T)), sizeof(T));
    if (!header_.is_swapped) return value;
    return sizeof(T) == 4 ? static_cast<T>(__builtin_bswap32(static_cast<std::uint32_t>(value)))
                          : static_cast<T>(__builtin_bswap64(value));
  }

  // Notes where the next number lies, and reads it.
  template <class T>
  T number(Places& places) {
    places.head.push_back({at_, sizeof(T) == 4 ? MetadataType::u32 : MetadataType::u64, 1});
    return number<T>();
  }

  std::uint64_t string_length() {
    const std::uint64_t length = number<std::uint64_t>();
    if (length > kMostItems) refuse_file("String length " + std::to_string(length) + " exceeds maximum 1073741824");
    if (length > remaining()) {
      refuse_file("String length " + std::to_string(length) + " exceeds remaining file size " +
                  std::to_string(remaining()));
    }
    return length;
  }

  // A length and as many bytes.
  void pass_over_string(Places& places) {
    places.head.push_back({at_, MetadataType::u64, 1});
    const std::uint64_t length = string_length();
    places.head.push_back({at_, MetadataType::u8, length});
    at_ += length;
  }

  std::string string(Places& places) {
    pass_over_string(places);
    const Place text = places.head.back();
    at_ = text.offset;
    return {reinterpret_cast<const char*>(bytes(text.count)), static_cast<std::size_t>(text.count)};
  }

  void read_counts();
  GgufField read_field();
  void read_value(GgufField& field);
  void read_single(GgufField& field, MetadataType type);
  ArrayHead read_array_head(Places& places);
  void read_nested(GgufField& field, ArrayHead outermost);
  void read_elements(GgufField& field, MetadataType type, std::uint64_t count);
  GgufTensor read_tensor();

  const Source& source_;
  std::uint64_t size_ = 0, at_ = 0, window_begin_ = 0;
  std::vector<std::byte> window_;
  std::uint64_t fields_ = 0, tensors_ = 0;
  GgufHeader header_;
};

void HeaderWalk::read_counts() {
  if (size_ == 0) refuse_file("cannot mmap an empty file");
  if (size_ < 4 || std::memcmp(bytes(4), "GGUF", 4) != 0) refuse_file("GGUF magic invalid");
  header_.version = number<std::uint32_t>();
  if ((header_.version & 0xFFFF) == 0) {  // a small number with its bytes reversed
    header_.is_swapped = true;
    header_.version = __builtin_bswap32(header_.version);
  }
  if (header_.version != 2 && header_.version != 3)
    refuse_file("Sorry, file appears to be version " + std::to_string(header_.version) + " which we cannot handle");
  tensors_ = number<std::uint64_t>();
  fields_ = number<std::uint64_t>();
  const auto check = [](std::uint64_t count, const char* what) {
    if (count > kMostItems)
      refuse_file(std::string(what) + " count " + std::to_string(count) + " exceeds maximum 1073741824");
  };
  check(tensors_, "Tensor");
  check(fields_, "KV");
}

GgufField HeaderWalk::read_field() {
  GgufField field;
  field.offset = at_;
  field.name = string(field.places);
  read_value(field);
  return field;
}

MetadataType type_of(std::uint32_t number) {
  if (number > static_cast<std::uint32_t>(MetadataType::f64))
    refuse_file(std::to_string(number) + " is not a valid GGUFValueType");
  return static_cast<MetadataType>(number);
}

void HeaderWalk::read_value(GgufField& field) {
  const MetadataType type = type_of(number<std::uint32_t>(field.places));
  field.types.push_back(type);
  if (type != MetadataType::array) return read_single(field, type);
  const ArrayHead array = read_array_head(field.places);
  if (array.count == 0) return;
  const MetadataType element = type_of(array.type);
  if (element == MetadataType::array) return read_nested(field, array);
  read_elements(field, element, array.count);
}

void HeaderWalk::read_single(GgufField& field, MetadataType type) {
  Places& places = field.places;
  if (type == MetadataType::string) {
    pass_over_string(places);
  } else {
    places.head.push_back({at_, type, 1});
    if (width(type) > remaining()) throw Error(Errc::malformed, "the file ends inside a value").at_byte(size_);
    at_ += width(type);
  }
  field.data.push_back(places.head.size() - 1);
}

HeaderWalk::ArrayHead HeaderWalk::read_array_head(Places& places) {
  const auto type = number<std::uint32_t>(places);
  const auto count = number<std::uint64_t>(places);
  if (count > kMostItems) refuse_file("Array length " + std::to_string(count) + " exceeds maximum 1073741824");
  if (count > remaining()) {  // an element has a byte at least
    refuse_file("Array length " + std::to_string(count) + " exceeds remaining file size " +
                std::to_string(remaining()));
  }
  return {type, count, true};
}

// Arrays of arrays, which gguf-py flattens. It knows the types by the first element of each.
void HeaderWalk::read_nested(GgufField& field, ArrayHead outermost) {
  std::vector<ArrayHead> left = {outermost};  // what is still to come, at each depth
  while (!left.empty()) {
    ArrayHead& array = left.back();
    if (array.count == 0) {
      left.pop_back();
      continue;
    }
    --array.count;
    const bool is_first = std::exchange(array.is_first, false);
    const MetadataType type = type_of(array.type);
    if (is_first) field.types.push_back(type);
    if (type != MetadataType::array) {
      read_single(field, type);
      continue;
    }
    if (left.size() == kDeepestArrays) refuse_file("arrays lie inside each other too deep");
    left.push_back(read_array_head(field.places));
    left.back().is_first = is_first;
  }
}

// The elements of a plain array.
void HeaderWalk::read_elements(GgufField& field, MetadataType type, std::uint64_t count) {
  Places& places = field.places;
  places.element = type;
  places.first = at_;
  field.types.push_back(places.element);
  const std::uint64_t least = std::max<std::uint64_t>(width(places.element), 1);
  if (count > remaining() / least) throw Error(Errc::malformed, "the file ends inside an array").at_byte(size_);
  if (places.element != MetadataType::string) {
    places.elements = count;
    at_ += count * least;
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    places.strings.push_back(at_);
    const std::uint64_t length = string_length();  // first: it moves at_
    at_ += length;
  }
  places.strings.push_back(at_);
}

GgufTensor HeaderWalk::read_tensor() {
  GgufTensor tensor;
  Places& places = tensor.places;
  tensor.offset = at_;
  tensor.name = string(places);
  const auto rank = number<std::uint32_t>(places);
  if (rank > kMostDimensions)
    refuse_file("Tensor dimensions count " + std::to_string(rank) + " exceeds GGML_MAX_DIMS (4)");
  places.head.push_back({at_, MetadataType::u64, rank});
  for (std::uint32_t i = 0; i < rank; ++i) tensor.shape.push_back(number<std::uint64_t>());
  tensor.type = number<std::uint32_t>(places);
  tensor.data = number<std::uint64_t>(places);
  return tensor;
}

// Names are UTF-8, as with gguf-py.
py::object strict_text(const std::string& text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::list values_of(const GgufField& field) {
  const Places& places = field.places;
  if (places.elements == 0 && places.strings.empty()) return py::cast(field.data);
  const std::uint64_t each = places.strings.empty() ? 1 : 2, count = places.elements + places.string_count();
  py::list indexes(count);
  for (std::uint64_t i = 0; i < count; ++i) indexes[i] = py::int_(places.head.size() + i * each + each - 1);
  return indexes;
}

py::list types_of(const GgufField& field) {
  py::list types;
  for (const MetadataType type : field.types) types.append(static_cast<int>(type));
  return types;
}

py::tuple header_of(const std::string& path) {
  GgufHeader header;
  SourcePtr source;
  {
    const Unlocked unlocked;
    source = file_source(path);
    header = HeaderWalk(*source).read();
  }
  py::list fields, tensors;
  for (GgufField& field : header.fields) {
    const py::list values = values_of(field);
    fields.append(py::make_tuple(field.offset, strict_text(field.name), types_of(field), values,
                                 py::cast(std::move(field.places))));
  }
  for (GgufTensor& tensor : header.tensors) {
    tensors.append(py::make_tuple(tensor.offset, strict_text(tensor.name), py::tuple(py::cast(tensor.shape)),
                                  tensor.type, tensor.data, py::cast(std::move(tensor.places))));
  }
  return py::make_tuple(header.is_swapped, fields, tensors, header.end, source->size_bytes());
}

py::tuple place_of(const Places& places, std::uint64_t i) {
  if (i >= places.size()) throw py::index_error();
  const Place place = places[i];
  return py::make_tuple(place.offset, static_cast<int>(place.type), place.count);
}

py::list sizes_of_types() {
  py::list sizes;
  for (const DTypeInfo& type : all_dtypes())
    if (type.ggml_id >= 0) sizes.append(py::make_tuple(type.ggml_id, type.block_elements, type.block_bytes));
  return sizes;
}

}  // namespace

void add_gguf(py::module_& module) {
  py::class_<Places>(module, "GgufPlaces", "Where the parts of a field lie: (byte, type, count) of each.")
      .def("__len__", &Places::size)
      .def("__getitem__", &place_of)
      .def_property_readonly(
          "numbers",
          [](const Places& self) -> py::object {
            if (self.elements == 0) return py::none();
            return py::make_tuple(self.first, static_cast<int>(self.element), self.elements);
          },
          "All elements of an array of numbers as one part.")
      .def_readonly("strings", &Places::strings,
                    "Where each string of an array begins, with its length, and where the last one ends.");
  forbid_making(module.attr("GgufPlaces"));
  module.def("gguf_header", &header_of, py::arg("path"));
  module.def("gguf_sizes", &sizes_of_types);
}

}  // namespace ballast::python
