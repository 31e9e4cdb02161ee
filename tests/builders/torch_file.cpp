#include "builders/torch_file.hpp"

namespace ballast::test {
namespace py {

Ops none() { return PickleWriter().none().bytes(); }

Ops boolean(bool value) { return PickleWriter().boolean(value).bytes(); }

Ops integer(std::int64_t value) { return PickleWriter().integer(value).bytes(); }

Ops real(double value) { return PickleWriter().real(value).bytes(); }

Ops text(std::string_view value) { return PickleWriter().text(value).bytes(); }

Ops bytes(std::string_view value) { return PickleWriter().bytes(value).bytes(); }

Ops global(std::string_view module, std::string_view name) { return PickleWriter().global(module, name).bytes(); }

Ops joined(const std::vector<Ops>& items) {
  Ops all;
  for (const Ops& item : items) all += item;
  return all;
}

Ops tuple(const std::vector<Ops>& items) { return "(" + joined(items) + "t"; }

Ops list(const std::vector<Ops>& items) { return "](" + joined(items) + "e"; }

Ops pairs(const std::vector<std::pair<Ops, Ops>>& items) {
  Ops all = "(";
  for (const auto& [key, value] : items) all += key + value;
  return all + "u";
}

Ops dict(const std::vector<std::pair<std::string, Ops>>& items) {
  std::vector<std::pair<Ops, Ops>> all;
  for (const auto& [key, value] : items) all.emplace_back(text(key), value);
  return "}" + pairs(all);
}

Ops integers(const std::vector<std::int64_t>& values) {
  std::vector<Ops> items;
  for (const std::int64_t value : values) items.push_back(integer(value));
  return tuple(items);
}

Ops call(std::string_view module, std::string_view name, const std::vector<Ops>& arguments) {
  return global(module, name) + tuple(arguments) + "R";
}

Ops build(const Ops& object, const Ops& state) { return object + state + "b"; }

Ops put(const Ops& object, std::uint32_t index) { return object + PickleWriter().put(index).bytes(); }

Ops get(std::uint32_t index) { return PickleWriter().get(index).bytes(); }

Ops ordered_dict(const std::vector<std::pair<std::string, Ops>>& items) {
  const Ops empty = call("collections", "OrderedDict", {});
  return items.empty() ? empty : empty + dict(items).substr(1);
}

Ops persistent(const std::vector<Ops>& id) { return tuple(id) + "Q"; }

Ops storage(std::string_view kind, std::string_view key, std::int64_t numel) {
  return persistent(
      {text("storage"), global("torch", std::string(kind) + "Storage"), text(key), text("cpu"), integer(numel)});
}

Ops untyped_storage(std::string_view key, std::int64_t size) {
  return persistent(
      {text("storage"), global("torch.storage", "UntypedStorage"), text(key), text("cpu"), integer(size)});
}

Ops rebuild(std::string_view name, const std::vector<Ops>& arguments) { return call("torch._utils", name, arguments); }

Ops tensor(const Ops& storage, std::int64_t offset, const std::vector<std::int64_t>& shape,
           const std::vector<std::int64_t>& strides) {
  return rebuild("_rebuild_tensor_v2",
                 {storage, integer(offset), integers(shape), integers(strides), boolean(false), ordered_dict()});
}

std::string pickle(const Ops& object, int protocol) { return PickleWriter(protocol).raw(object).stop().bytes(); }

}  // namespace py

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Checkpoint open_text(std::string_view file, const OpenOptions& options) {
  return open_bytes(to_bytes(file), "file", options);
}

bool has_note(const Checkpoint& checkpoint, std::string_view text) {
  for (const Note& note : checkpoint.notes) {
    if (note.text.find(text) != std::string::npos) return true;
  }
  return false;
}

TorchZip& TorchZip::object(const py::Ops& object) { return member("data.pkl", py::pickle(object)); }

TorchZip& TorchZip::record(std::string_view key, std::string_view data) {
  return member("data/" + std::string(key), data);
}

TorchZip& TorchZip::member(std::string_view name, std::string_view data) {
  zip_.streamed(name_ + "/" + std::string(name), data).aligned();
  return *this;
}

std::string TorchZip::text() const { return zip_.text(); }

TorchStream& TorchStream::object(const py::Ops& object) {
  object_ = py::pickle(object);
  return *this;
}

TorchStream& TorchStream::record(std::string_view key, std::uint64_t count, std::string_view data) {
  keys_.push_back(py::text(key));
  data_ += u64(count) + std::string(data);
  return *this;
}

TorchStream& TorchStream::keys(const py::Ops& other) {
  other_keys_ = py::pickle(other);
  return *this;
}

std::string TorchStream::magic() { return py::pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"); }

std::vector<std::string> TorchStream::parts() const {
  return {magic(),
          py::pickle(py::integer(1001)),
          py::pickle(py::dict({{"little_endian", py::boolean(true)}})),
          object_,
          other_keys_.empty() ? py::pickle(py::list(keys_)) : other_keys_,
          data_};
}

std::string TorchStream::text() const { return py::joined(parts()); }

}  // namespace ballast::test
