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

#include "builders/pickle_writer.hpp"
#include "builders/tar_file.hpp"
#include "builders/zip_file.hpp"

namespace ballast::test {

namespace py {

using Ops = std::string;

Ops none();
Ops boolean(bool value);
Ops integer(std::int64_t value);
Ops real(double value);
Ops text(std::string_view value);
Ops bytes(std::string_view value);
Ops global(std::string_view module, std::string_view name);

Ops joined(const std::vector<Ops>& items);
Ops tuple(const std::vector<Ops>& items);
Ops list(const std::vector<Ops>& items);
Ops pairs(const std::vector<std::pair<Ops, Ops>>& items);
// All keys are texts; pairs() takes other keys.
Ops dict(const std::vector<std::pair<std::string, Ops>>& items);
Ops integers(const std::vector<std::int64_t>& values);

Ops call(std::string_view module, std::string_view name, const std::vector<Ops>& arguments);
Ops build(const Ops& object, const Ops& state);
Ops put(const Ops& object, std::uint32_t index);
Ops get(std::uint32_t index);

Ops ordered_dict(const std::vector<std::pair<std::string, Ops>>& items = {});

Ops persistent(const std::vector<Ops>& id);
// `kind` is "Float" for torch.FloatStorage.
Ops storage(std::string_view kind, std::string_view key, std::int64_t numel);
Ops untyped_storage(std::string_view key, std::int64_t size);

Ops rebuild(std::string_view name, const std::vector<Ops>& arguments);
Ops tensor(const Ops& storage, std::int64_t offset, const std::vector<std::int64_t>& shape,
           const std::vector<std::int64_t>& strides);

std::string pickle(const Ops& object, int protocol = 2);

}  // namespace py

std::vector<std::byte> to_bytes(std::string_view text);

Checkpoint open_text(std::string_view file, const OpenOptions& options = {});

// The bytes of C++ values in a file.
template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

class TorchZip {
 public:
  explicit TorchZip(std::string_view name = "archive") : name_(name) {}

  TorchZip& object(const py::Ops& object);
  TorchZip& record(std::string_view key, std::string_view data);
  TorchZip& member(std::string_view name, std::string_view data);

  std::string text() const;
  Checkpoint open(const OpenOptions& options = {}) const { return open_text(text(), options); }

 private:
  std::string name_;
  ZipFile zip_;
};

// The stream format of PyTorch before 1.6. Element counts and data follow in the order of the keys.
class TorchStream {
 public:
  TorchStream& object(const py::Ops& object);
  TorchStream& record(std::string_view key, std::uint64_t count, std::string_view data);
  TorchStream& keys(const py::Ops& other);  // lies about the keys

  static std::string magic();

  // The parts of the stream, in order; text() joins them.
  std::vector<std::string> parts() const;
  std::string text() const;
  Checkpoint open(const OpenOptions& options = {}) const { return open_text(text(), options); }

 private:
  std::string object_, other_keys_, data_;
  std::vector<py::Ops> keys_;
};

// Whether a note contains this text.
bool has_note(const Checkpoint& checkpoint, std::string_view text);

}  // namespace ballast::test
