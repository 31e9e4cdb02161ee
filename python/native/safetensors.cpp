#include "safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/open.hpp>
#include <ballast/save.hpp>

#include "checkpoint.hpp"
#include "gil.hpp"
#include "job.hpp"
#include "memory.hpp"
#include "tensor.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

constexpr std::size_t kLengthBytes = 8;  // before the header's text
constexpr std::size_t kAlignment = 8;    // of the data's beginning
constexpr std::string_view kMetadataKey = "\"__metadata__\"";

// The reference package lists only the tensors that are stored; the metadata tell about the others.
void drop_aliases(Checkpoint& checkpoint) {
  if (checkpoint.aliases.empty()) return;
  StateDict stored;
  for (const auto& [name, tensor] : checkpoint)
    if (!checkpoint.aliases.contains(name)) stored.insert(name, tensor);
  checkpoint.tensors = std::move(stored);
  checkpoint.aliases.clear();
}

Checkpoint open_safetensors(SourcePtr source) {
  OpenOptions options;
  options.cache = Cache::ignore;
  const std::string name = source->name();
  Checkpoint checkpoint = open(std::move(source), options);
  if (checkpoint.format != Format::safetensors) throw Error(Errc::malformed, "is not a safetensors file").in(name);
  drop_aliases(checkpoint);
  return checkpoint;
}

std::unique_ptr<PyCheckpoint> open_path(const std::string& path, const std::string& device) {
  Checkpoint opened;
  {
    const Unlocked unlocked;
    opened = open_safetensors(file_source(path));
  }
  return std::make_unique<PyCheckpoint>(std::move(opened), device);
}

std::unique_ptr<PyCheckpoint> open_buffer(const py::buffer& buffer) {
  SourcePtr source = source_of_buffer(buffer);
  Checkpoint opened;
  {
    const Unlocked unlocked;
    opened = open_safetensors(std::move(source));
  }
  return std::make_unique<PyCheckpoint>(std::move(opened), "cpu");
}

// Whether the header says anything about metadata: an empty object is not the same as none.
bool has_metadata(const PyCheckpoint& self) {
  const SourcePtr& source = self.get().files.at(0).source;
  std::uint64_t length = 0;
  source->read(0, std::as_writable_bytes(std::span(&length, 1)));
  std::string text(length, '\0');
  source->read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  return text.find(kMetadataKey) != std::string::npos;
}

// The bytes of a tensor in memory of their own.
py::bytearray read_tensor(const PyTensor& self) {
  const std::uint64_t size = self.tensor().nbytes();
  auto result =
      py::reinterpret_steal<py::bytearray>(PyByteArray_FromStringAndSize(nullptr, static_cast<py::ssize_t>(size)));
  if (!result) throw py::error_already_set();
  const std::span out(reinterpret_cast<std::byte*>(PyByteArray_AS_STRING(result.ptr())), size);
  const Unlocked unlocked;
  self.tensor().read(0, out);
  return result;
}

// Says "__metadata__":{} in a header that has no metadata.
void add_empty_metadata(SavePlan::File& file) {
  std::string text(reinterpret_cast<const char*>(file.head.data()) + kLengthBytes, file.head.size() - kLengthBytes);
  text.erase(text.find_last_not_of(' ') + 1);
  const bool has_tensors = text != "{}";
  text.insert(1, std::string(kMetadataKey) + (has_tensors ? ":{}," : ":{}"));
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');

  const std::uint64_t length = text.size(), longer = kLengthBytes + length - file.head.size();
  file.head.resize(kLengthBytes + length);
  std::memcpy(file.head.data(), &length, kLengthBytes);
  std::memcpy(file.head.data() + kLengthBytes, text.data(), length);
  for (SavePlan::Item& item : file.items) item.offset += longer;
  file.size_bytes += longer;
}

// One file without a path. Whether `metadata` were given is not the same as whether there are any.
SavePlan plan_file(const Checkpoint& checkpoint, bool metadata_given) {
  // The name only says which format is meant.
  SavePlan plan = plan_save(checkpoint, "model.safetensors", {.allow_empty = true});
  if (metadata_given && checkpoint.metadata.empty()) add_empty_metadata(plan.files.front());
  return plan;
}

py::bytes to_bytes(const PyCheckpoint& self, bool metadata_given) {
  const SavePlan plan = plan_file(self.get(), metadata_given);
  const SavePlan::File& file = plan.files.front();
  auto result =
      py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(file.size_bytes)));
  if (!result) throw py::error_already_set();
  const std::span out(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(result.ptr())), file.size_bytes);
  const Unlocked unlocked;
  std::copy(file.head.begin(), file.head.end(), out.begin());
  for (const SavePlan::Item& item : file.items) item.tensor.read(0, out.subspan(item.offset, item.tensor.nbytes()));
  return result;
}

void to_file(const PyCheckpoint& self, const std::string& path, bool metadata_given) {
  SavePlan plan = plan_file(self.get(), metadata_given);
  plan.files.front().path = path;
  // Programs write the shards of a set one by one through this, so no file but this one is replaced or removed. The
  // index of an earlier set is looked for beside the rival, and there is nothing beside this one.
  plan.rival = "/dev/null/model.safetensors.index.json";
  run_job(py::none(), [&](const Progress& progress) { execute(plan, {.overwrite = true, .progress = progress}); });
}

}  // namespace

void add_safetensors(py::module_& module) {
  module.def("safetensors_open", &open_path, py::arg("path"), py::arg("device"));
  module.def("safetensors_open_buffer", &open_buffer, py::arg("buffer"));
  module.def("safetensors_has_metadata", &has_metadata, py::arg("checkpoint"));
  module.def("safetensors_read", &read_tensor, py::arg("tensor"));
  module.def("safetensors_to_bytes", &to_bytes, py::arg("checkpoint"), py::arg("metadata_given"));
  module.def("safetensors_to_file", &to_file, py::arg("checkpoint"), py::arg("path"), py::arg("metadata_given"));
}

}  // namespace ballast::python
