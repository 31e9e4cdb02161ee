#include "peft.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ballast/adapter.hpp>
#include <ballast/error.hpp>
#include <ballast/merge.hpp>

#include "checkpoint.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "remote.hpp"
#include "tensor.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

// A state dict, and which of its names each storage belongs to.
struct Named {
  StateDict state;
  std::map<const Storage*, std::string> names;
};

Named named_of(const py::dict& tensors) {
  Named named;
  for (const auto& [key, value] : tensors) {
    const auto name = py::str(key).cast<std::string>();
    const Tensor& tensor = value.cast<const PyTensor&>().tensor();
    named.state.insert(name, tensor);
    if (tensor.storage()) named.names.try_emplace(tensor.storage().get(), name);
  }
  return named;
}

// name -> (the name that the same tensor had in one of `from`, or None; the tensor).
py::dict listed(const StateDict& state, std::initializer_list<const Named*> from) {
  py::dict result;
  const auto maps = std::make_shared<PrivateMaps>();
  for (const auto& [name, tensor] : state) {
    py::object origin = py::none();
    int which = 0;
    for (const Named* named : from) {
      const auto found = tensor.storage() ? named->names.find(tensor.storage().get()) : named->names.end();
      const Tensor* same = found == named->names.end() ? nullptr : named->state.find(found->second);
      if (same != nullptr && same->shape() == tensor.shape() && same->offset() == tensor.offset() &&
          same->dtype() == tensor.dtype()) {
        origin = py::make_tuple(which, to_text(found->second));
        break;
      }
      ++which;
    }
    result[to_text(name)] = py::make_tuple(origin, PyTensor(tensor, maps));
  }
  return result;
}

// (tensors, configuration as JSON, notes) of an adapter in a folder or a file.
py::tuple load(const std::string& path, const std::string& subfolder,
               const std::vector<std::pair<std::string, std::string>>& key_mapping, const py::dict& remote) {
  AdapterLoadOptions options;
  options.open.remote = remote_files_of(remote);
  options.subfolder = subfolder;
  for (const auto& [pattern, replacement] : key_mapping) options.key_mapping.push_back({pattern, replacement});
  const Adapter adapter = for_caller(Caller::peft, [&] {
    const Unlocked unlocked;
    return load_adapter(path, options);
  });
  py::dict tensors;
  const auto maps = std::make_shared<PrivateMaps>();
  for (const auto& [name, tensor] : adapter.tensors) tensors[to_text(name)] = PyTensor(tensor, maps);
  py::list notes;
  for (const Note& note : adapter.notes) notes.append(to_text(note.text));
  return py::make_tuple(tensors, to_text(to_string(adapter.config)), notes);
}

// The configuration of a type that is known; others are a ValueError, as PEFT has it.
AdapterConfig config_of(const std::string& text) {
  AdapterConfig config = AdapterConfig::parse(text);
  const std::string type = config.peft_type();
  if (std::ranges::find(merge_rules(), type, &MergeRule::peft_type) == merge_rules().end())
    throw py::value_error("Unknown PEFT type passed: " + type);
  return config;
}

py::dict get(const py::dict& state, const std::string& config, const std::string& name, const std::string& embeddings,
             std::uint64_t base_vocabulary) {
  const Named named = named_of(state);
  GetAdapterOptions options;
  options.embeddings = embeddings == "always"  ? SaveEmbeddings::always
                       : embeddings == "never" ? SaveEmbeddings::never
                                               : SaveEmbeddings::automatic;
  options.base_vocabulary = base_vocabulary;
  const AdapterConfig known = config_of(config);
  const StateDict found = for_caller(Caller::peft, [&] {
    const Unlocked unlocked;
    return get_adapter_state_dict(named.state, known, name, options);
  });
  return listed(found, {&named});
}

// (state, missing, unexpected, mismatched); an origin is (0, name) for the state and (1, name) for the adapter.
py::tuple set(const py::dict& state, const py::dict& adapter, const std::string& config, const std::string& name,
              bool ignore_mismatched_sizes) {
  const Named base = named_of(state), added = named_of(adapter);
  SetAdapterOptions options;
  options.ignore_mismatched_sizes = ignore_mismatched_sizes;
  const AdapterConfig known = config_of(config);
  const SetAdapterResult result = for_caller(Caller::peft, [&] {
    const Unlocked unlocked;
    return set_adapter_state_dict(base.state, added.state, known, name, options);
  });
  return py::make_tuple(listed(result.state, {&base, &added}), result.missing, result.unexpected, result.mismatched);
}

// A tensor of which only the dtype and the shape are known.
PyTensor meta(const std::string& dtype, const std::vector<std::uint64_t>& dims) {
  const Shape shape{std::span(dims)};
  const auto numel = shape.numel();
  const auto bytes = numel ? bytes_of(dtype_of(dtype), *numel) : std::nullopt;
  if (!bytes) throw Error(Errc::invalid_argument, "a tensor of shape " + to_string(shape) + " has too many bytes");
  return {Tensor(dtype_of(dtype), shape, meta_storage(*bytes)), std::make_shared<PrivateMaps>()};
}

}  // namespace

void add_peft(py::module_& module) {
  module.def("adapter_load", &load, py::arg("path"), py::arg("subfolder"), py::arg("key_mapping"), py::arg("remote"));
  module.def("adapter_get", &get, py::arg("state"), py::arg("config"), py::arg("name"), py::arg("embeddings"),
             py::arg("base_vocabulary"));
  module.def("adapter_set", &set, py::arg("state"), py::arg("adapter"), py::arg("config"), py::arg("name"),
             py::arg("ignore_mismatched_sizes"));
  module.def("meta_tensor", &meta, py::arg("dtype"), py::arg("shape"));
}

}  // namespace ballast::python
