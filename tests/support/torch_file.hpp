// PyTorch's files in a line or two, right or wrong, written without the library under test.
//
// Each function of `py` gives the opcodes that put one object on the stack, so they nest as the objects do:
//   TorchZip().object(py::dict({{"w", py::tensor(py::storage("Float", "0", 4), 0, {2, 2}, {2, 1})}})).record("0", data)
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/open.hpp>

#include "pickle_writer.hpp"
#include "tar_file.hpp"
#include "zip_file.hpp"

namespace ballast::test {

namespace py {

using Ops = std::string;

inline Ops none() { return PickleWriter().none().bytes(); }
inline Ops boolean(bool value) { return PickleWriter().boolean(value).bytes(); }
inline Ops integer(std::int64_t value) { return PickleWriter().integer(value).bytes(); }
inline Ops real(double value) { return PickleWriter().real(value).bytes(); }
inline Ops text(std::string_view value) { return PickleWriter().text(value).bytes(); }
inline Ops bytes(std::string_view value) { return PickleWriter().bytes(value).bytes(); }
inline Ops global(std::string_view module, std::string_view name) {
  return PickleWriter().global(module, name).bytes();
}

inline Ops joined(const std::vector<Ops>& items) {
  Ops all;
  for (const Ops& item : items) all += item;
  return all;
}
inline Ops tuple(const std::vector<Ops>& items) { return "(" + joined(items) + "t"; }
inline Ops list(const std::vector<Ops>& items) { return "](" + joined(items) + "e"; }
inline Ops pairs(const std::vector<std::pair<Ops, Ops>>& items) {
  Ops all = "(";
  for (const auto& [key, value] : items) all += key + value;
  return all + "u";
}
// Text keys; for others see pairs().
inline Ops dict(const std::vector<std::pair<std::string, Ops>>& items) {
  std::vector<std::pair<Ops, Ops>> all;
  for (const auto& [key, value] : items) all.emplace_back(text(key), value);
  return "}" + pairs(all);
}
inline Ops integers(const std::vector<std::int64_t>& values) {
  std::vector<Ops> items;
  for (const std::int64_t value : values) items.push_back(integer(value));
  return tuple(items);
}

inline Ops call(std::string_view module, std::string_view name, const std::vector<Ops>& arguments) {
  return global(module, name) + tuple(arguments) + "R";
}
inline Ops build(const Ops& object, const Ops& state) { return object + state + "b"; }
inline Ops put(const Ops& object, std::uint32_t index) { return object + PickleWriter().put(index).bytes(); }
inline Ops get(std::uint32_t index) { return PickleWriter().get(index).bytes(); }

inline Ops ordered_dict(const std::vector<std::pair<std::string, Ops>>& items = {}) {
  const Ops empty = call("collections", "OrderedDict", {});
  return items.empty() ? empty : empty + dict(items).substr(1);
}

inline Ops persistent(const std::vector<Ops>& id) { return tuple(id) + "Q"; }
// `kind` is "Float" for torch.FloatStorage.
inline Ops storage(std::string_view kind, std::string_view key, std::int64_t numel) {
  return persistent(
      {text("storage"), global("torch", std::string(kind) + "Storage"), text(key), text("cpu"), integer(numel)});
}
inline Ops untyped_storage(std::string_view key, std::int64_t size) {
  return persistent(
      {text("storage"), global("torch.storage", "UntypedStorage"), text(key), text("cpu"), integer(size)});
}

inline Ops rebuild(std::string_view name, const std::vector<Ops>& arguments) {
  return call("torch._utils", name, arguments);
}
inline Ops tensor(const Ops& storage, std::int64_t offset, const std::vector<std::int64_t>& shape,
                  const std::vector<std::int64_t>& strides) {
  return rebuild("_rebuild_tensor_v2",
                 {storage, integer(offset), integers(shape), integers(strides), boolean(false), ordered_dict()});
}

inline std::string pickle(const Ops& object, int protocol = 2) {
  return PickleWriter(protocol).raw(object).stop().bytes();
}

}  // namespace py

inline std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline Checkpoint open_text(std::string_view file, const OpenOptions& options = {}) {
  return open_bytes(to_bytes(file), "file", options);
}

// What C++ values look like in a file.
template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

class TorchZip {
 public:
  explicit TorchZip(std::string_view name = "archive") : name_(name) {}

  TorchZip& object(const py::Ops& object) { return member("data.pkl", py::pickle(object)); }
  TorchZip& record(std::string_view key, std::string_view data) { return member("data/" + std::string(key), data); }
  TorchZip& member(std::string_view name, std::string_view data) {
    zip_.streamed(name_ + "/" + std::string(name), data).aligned();
    return *this;
  }

  std::string text() const { return zip_.text(); }
  Checkpoint open(const OpenOptions& options = {}) const { return open_text(text(), options); }

 private:
  std::string name_;
  ZipFile zip_;
};

// The stream of the years before 1.6. Elements are counted and data follow in the order of the keys.
class TorchStream {
 public:
  TorchStream& object(const py::Ops& object) {
    object_ = py::pickle(object);
    return *this;
  }
  TorchStream& record(std::string_view key, std::uint64_t count, std::string_view data) {
    keys_.push_back(py::text(key));
    data_ += u64(count) + std::string(data);
    return *this;
  }
  TorchStream& keys(const py::Ops& other) {  // a lie
    other_keys_ = py::pickle(other);
    return *this;
  }

  static std::string magic() { return py::pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"); }

  // The places where one part ends and the next begins, the end of the file last.
  std::vector<std::string> parts() const {
    return {magic(),
            py::pickle(py::integer(1001)),
            py::pickle(py::dict({{"little_endian", py::boolean(true)}})),
            object_,
            other_keys_.empty() ? py::pickle(py::list(keys_)) : other_keys_,
            data_};
  }
  std::string text() const { return py::joined(parts()); }
  Checkpoint open(const OpenOptions& options = {}) const { return open_text(text(), options); }

 private:
  std::string object_, other_keys_, data_;
  std::vector<py::Ops> keys_;
};

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.numel()));
  if (tensor.storage()) tensor.storage()->prepare({});
  tensor.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

// Whether a note says so.
inline bool has_note(const Checkpoint& checkpoint, std::string_view text) {
  for (const Note& note : checkpoint.notes) {
    if (note.text.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace ballast::test
