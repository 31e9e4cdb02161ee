#include <pybind11/stl.h>

#include "checkpoint.hpp"
#include "remote.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ballast/conversions.hpp>
#include <ballast/error.hpp>
#include <ballast/open.hpp>
#include <ballast/suggest.hpp>
#include <ballast/summary.hpp>
#include <ballast/text.hpp>

#include "core/text.hpp"
#include "dlpack.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "job.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "tensor.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

py::list names_of(const PyCheckpoint& self) {
  const auto held = self.held();  // collecting garbage may close it
  const Checkpoint& checkpoint = *held;
  py::list names(checkpoint.size());
  Py_ssize_t i = 0;
  for (const auto& [name, tensor] : checkpoint) PyList_SET_ITEM(names.ptr(), i++, to_text(name).release().ptr());
  return names;
}

PyTensor tensor_of(const PyCheckpoint& self, const Tensor& tensor) { return {tensor, self.maps(), self.device()}; }

// The name as the file spells it, or nothing if it is no text.
std::optional<std::string> name_of(py::handle key) {
  if (PyUnicode_Check(key.ptr()) == 0) return std::nullopt;
  const auto bytes =
      py::reinterpret_steal<py::object>(PyUnicode_AsEncodedString(key.ptr(), "utf-8", "surrogateescape"));
  if (!bytes) {  // a lone surrogate is in no name
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
}

const Tensor* find(const PyCheckpoint& self, py::handle key) {
  const auto name = name_of(key);
  return name ? self.get().find(*name) : nullptr;
}

PyTensor at(const PyCheckpoint& self, py::handle key) {
  if (const Tensor* tensor = find(self, key)) return tensor_of(self, *tensor);
  const std::string name = name_of(key).value_or(py::repr(key).cast<std::string>());
  std::vector<std::string_view> names;
  for (const auto& [other, tensor] : self.get()) names.push_back(other);
  Error error(Errc::not_found, "there is no tensor " + quote(name));
  error.about(name).in(self.get().target);
  if (const auto near = nearest(name, names)) error.hint("did you mean " + quote(*near) + "?");
  throw error;
}

std::string repr_of(const PyCheckpoint& self) {
  if (self.is_closed()) return "<ballast.Checkpoint, closed>";
  const Checkpoint& checkpoint = self.get();
  const Summary summary = summarize(checkpoint);
  std::string text = "<ballast.Checkpoint " + quote(checkpoint.target) + ": " + std::string(name(checkpoint.format)) +
                     ", " + std::to_string(summary.tensors) + (summary.tensors == 1 ? " tensor, " : " tensors, ") +
                     format_count(summary.parameters) + " parameters, " + format_bytes(summary.bytes);
  if (checkpoint.shards > 1) text += ", " + std::to_string(checkpoint.shards) + " shards";
  return text + ">";
}

// (name, dtype, shape, tensors, bytes) of each pattern, for a table.
py::list patterns_of(const PyCheckpoint& self) {
  py::list rows;
  for (const Summary::Pattern& pattern : summarize(self.get()).patterns) {
    rows.append(py::make_tuple(to_text(pattern.name), std::string(name(pattern.dtype)), to_tuple(pattern.shape),
                               pattern.tensors, pattern.bytes));
  }
  return rows;
}

py::object value_of(const PlainValue& value) {
  return std::visit(
      [](const auto& held) -> py::object {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>)
          return py::none();
        else if constexpr (std::is_same_v<Held, std::string>)
          return to_text(held);
        else
          return py::cast(held);
      },
      value.value);
}

py::dict metadata_of(const PyCheckpoint& self) {
  py::dict result;
  for (const auto& [key, value] : self.get().metadata) result[to_text(key)] = to_text(value);
  return result;
}

py::list notes_of(const PyCheckpoint& self) {
  py::list notes;
  for (const Note& note : self.get().notes) {
    std::string text = note.where.empty() ? note.text : note.where + ": " + note.text;
    if (!note.hint.empty()) text += "; " + note.hint.text(words_for(Caller::module));
    notes.append(to_text(text));
  }
  return notes;
}

Error unknown_limit(const std::string& name) {
  std::vector<std::string_view> names;
  for (const cli::LimitField& field : cli::limit_fields()) names.push_back(field.name);
  Error error(Errc::invalid_argument, "there is no limit called " + quote(name));
  if (const auto near = nearest(name, names)) return error.hint("did you mean " + quote(*near) + "?");
  std::string list = "there are";
  for (const std::string_view one : names) list.append(one == names.front() ? " " : ", ").append(one);
  return error.hint(list);
}

Limits limits_of(const py::dict& given) {
  Limits limits;
  const auto fields = cli::limit_fields();
  for (const auto& [key, value] : given) {
    const auto name = py::str(key).cast<std::string>();
    const auto field = std::ranges::find(fields, name, &cli::LimitField::name);
    if (field == fields.end()) throw unknown_limit(name);
    if (PyLong_Check(value.ptr()) == 0) throw py::type_error("limits[" + quote(name) + "] is a number");
    limits.*field->field = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw py::value_error("limits[" + quote(name) + "] is not negative, and fits 64 bits");
    }
  }
  return limits;
}

Cache cache_of(const std::string& word) {
  if (word == "ignore") return Cache::ignore;
  if (word == "use") return Cache::use;
  if (word == "automatic") return Cache::automatic;
  if (word == "always") return Cache::always;
  throw Error(Errc::invalid_argument, "cache=" + quote(word) + " is no choice")
      .hint("\"ignore\", \"use\", \"automatic\" or \"always\"");
}

Safety safety_of(const std::string& word) {
  if (word == "inert") return Safety::inert;
  if (word == "strict") return Safety::strict;
  throw Error(Errc::invalid_argument, "safety=" + quote(word) + " is no choice").hint("\"inert\" or \"strict\"");
}

// `target` is a path as text, bytes of a whole file, or an object with read(offset, size).
std::unique_ptr<PyCheckpoint> open_any(const py::object& target, const std::string& device, const std::string& root,
                                       const std::string& safety, const std::string& cache, bool lenient,
                                       bool dequantize, const py::dict& limits, unsigned threads,
                                       const py::object& progress, const std::string& variant,
                                       const std::string& subfolder, const py::dict& remote) {
  OpenOptions options;
  options.variant = variant;
  options.remote = remote_files_of(remote);
  options.root = root;
  options.safety = safety_of(safety);
  options.cache = cache_of(cache);
  options.lenient = lenient;
  options.dequantize = dequantize;
  options.limits = limits_of(limits);
  options.threads = threads;
  Checkpoint opened;
  if (py::isinstance<py::str>(target)) {
    std::string path = name_of(target).value_or("");
    if (path.find('\0') != std::string::npos) throw py::value_error("embedded null byte");
    if (!subfolder.empty()) path = options_for(path, options).files->inside(path, subfolder);
    // Making a cache may take as long as a conversion; anything else is done before a person could press Ctrl-C.
    if (options.cache == Cache::automatic || options.cache == Cache::always) {
      run_job(progress, [&](const Progress& told) {
        options.progress = told;
        opened = open(path, options);
      });
    } else {
      const Unlocked unlocked;
      opened = open(path, options);
    }
  } else if (PyObject_CheckBuffer(target.ptr()) != 0) {
    SourcePtr source = source_of_buffer(py::reinterpret_borrow<py::buffer>(target));
    const Unlocked unlocked;
    opened = open(std::move(source), options);
  } else {
    SourcePtr source = source_of(target);
    const Unlocked unlocked;
    opened = open(std::move(source), options);
  }
  return std::make_unique<PyCheckpoint>(std::move(opened), device);
}

// The same tensors as transformers has them, read from the same file.
std::unique_ptr<PyCheckpoint> converted(const PyCheckpoint& self, const std::string& model_type,
                                        const py::dict& remote) {
  OpenOptions options;
  options.remote = remote_files_of(remote);
  Checkpoint checkpoint = self.get();
  {
    const Unlocked unlocked;
    checkpoint = with_conversions(std::move(checkpoint), model_type, options);
  }
  return std::make_unique<PyCheckpoint>(std::move(checkpoint), *self.device());
}

// A checkpoint of tensors that lie in memory or in other checkpoints: for save() and the verbs.
std::unique_ptr<PyCheckpoint> made_of(const py::dict& tensors, const py::dict& metadata) {
  StateDict state;
  for (const auto& [key, value] : tensors) {
    const auto name = name_of(key);
    if (!name) throw py::type_error("the names of tensors are texts");
    state.insert(*name, value.cast<const PyTensor&>().tensor());
  }
  Checkpoint checkpoint(std::move(state));
  for (const auto& [key, value] : metadata) {
    const auto name = name_of(key), text = name_of(value);
    if (!name || !text) throw py::type_error("the keys and values of metadata are texts");
    checkpoint.metadata.emplace(*name, *text);
  }
  checkpoint.target = "<memory>";
  return std::make_unique<PyCheckpoint>(std::move(checkpoint), "cpu");
}

}  // namespace

const Checkpoint& PyCheckpoint::get() const {
  if (!checkpoint_) throw py::value_error("the checkpoint is closed");
  return *checkpoint_;
}

py::object to_text(std::string_view text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

void add_checkpoint(py::module_& module) {
  py::class_<PyCheckpoint>(module, "Checkpoint", "An open checkpoint: a mapping of names to lazy tensors.")
      .def("__getitem__", &at)
      .def("__contains__", [](const PyCheckpoint& self, py::handle key) { return find(self, key) != nullptr; })
      .def("__len__", [](const PyCheckpoint& self) { return self.get().size(); })
      .def("__iter__", [](const PyCheckpoint& self) { return py::iter(names_of(self)); })
      .def("__bool__", [](const PyCheckpoint& self) { return self.get().size() != 0; })
      .def(
          "get",
          [](const PyCheckpoint& self, py::handle key, const py::object& otherwise) {
            const Tensor* tensor = find(self, key);
            return tensor == nullptr ? otherwise : py::cast(tensor_of(self, *tensor));
          },
          py::arg("name"), py::arg("default") = py::none())
      .def("_names", &names_of)
      .def("_patterns", &patterns_of)
      .def("__repr__", &repr_of)
      .def("close", &PyCheckpoint::close, "Lets go of the file; tensors that were taken from it live on.")
      .def_property_readonly("closed", &PyCheckpoint::is_closed)
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](PyCheckpoint& self, const py::args&) { self.close(); })
      .def_property_readonly("metadata", &metadata_of, "The metadata that are texts, as a dict.")
      .def_property_readonly("notes", &notes_of, "What is odd about the file, one sentence each.")
      .def_property_readonly("format", [](const PyCheckpoint& self) { return std::string(name(self.get().format)); })
      .def_property_readonly("target", [](const PyCheckpoint& self) { return to_text(self.get().target); })
      .def_property_readonly("device", [](const PyCheckpoint& self) { return *self.device(); })
      .def_property_readonly("shards", [](const PyCheckpoint& self) { return self.get().shards; })
      .def_property_readonly("files",
                             [](const PyCheckpoint& self) {
                               py::list files;
                               for (const CheckpointFile& file : self.get().files) files.append(to_text(file.path));
                               return files;
                             })
      .def_property_readonly(
          "aliases",
          [](const PyCheckpoint& self) {
            py::dict aliases;
            for (const auto& [name, kept] : self.get().aliases) aliases[to_text(name)] = to_text(kept);
            return aliases;
          },
          "The name whose tensor another name shares by agreement.")
      .def_property_readonly(
          "values_beside",
          [](const PyCheckpoint& self) {
            py::dict values;
            for (const PlainValue& value : self.get().values) values[to_text(value.path)] = value_of(value);
            return values;
          },
          "The plain values that stand beside the tensors of a pickle, such as an epoch.")
      .def_property_readonly(
          "roots",
          [](const PyCheckpoint& self) {
            py::list roots;
            for (const Root& root : self.get().roots) roots.append(to_text(root.path));
            return roots;
          },
          "The state dicts in a nested checkpoint, the likeliest first: what root= takes.")
      .def_property_readonly(
          "dangerous",
          [](const PyCheckpoint& self) {
            py::list names;
            for (const Global& global : self.get().dangerous) names.append(to_text(global.module + "." + global.name));
            return names;
          },
          "What the file names that would run code if somebody else opened it.");

  forbid_making(module.attr("Checkpoint"));
  module.def("open", &open_any, py::arg("target"), py::arg("device"), py::arg("root"), py::arg("safety"),
             py::arg("cache"), py::arg("lenient"), py::arg("dequantize"), py::arg("limits"), py::arg("threads"),
             py::arg("progress"), py::arg("variant"), py::arg("subfolder"), py::arg("remote"));
  module.def("with_conversions", &converted, py::arg("checkpoint"), py::arg("model_type"), py::arg("remote"));
  module.def("checkpoint_of", &made_of, py::arg("tensors"), py::arg("metadata"));
  module.def(
      "tensor_of_memory",
      [](py::object owner, std::uintptr_t address, std::uint64_t nbytes, const std::string& dtype,
         const std::vector<std::uint64_t>& shape) {
        return PyTensor(tensor_of_memory(std::move(owner), address, nbytes, dtype, shape),
                        std::make_shared<PrivateMaps>());
      },
      py::arg("owner"), py::arg("address"), py::arg("nbytes"), py::arg("dtype"), py::arg("shape"));
  module.def(
      "tensor_of_buffer",
      [](const py::buffer& buffer, const std::string& dtype, const std::vector<std::uint64_t>& shape) {
        return PyTensor(tensor_of_buffer(buffer, dtype, shape), std::make_shared<PrivateMaps>());
      },
      py::arg("buffer"), py::arg("dtype"), py::arg("shape"));
  module.def(
      "tensor_of_dlpack",
      [](const py::capsule& capsule) { return PyTensor(tensor_of_dlpack(capsule), std::make_shared<PrivateMaps>()); },
      py::arg("capsule"));
}

}  // namespace ballast::python
