#include "remote.hpp"

#include <string>
#include <thread>
#include <utility>

#include "core/wanted.hpp"
#include "gil.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

// What the handler of a signal raised while the main thread was waiting, such as a KeyboardInterrupt. The work that it
// waits for is not wanted until that is raised again.
struct Raised {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
};
Raised raised;  // guarded by the interpreter's lock
std::thread::id main_thread;

// Ctrl-C while waiting for a server. Only the thread of the interpreter's signals can hear it.
bool no_signal_raised() {
  if (std::this_thread::get_id() != main_thread) return true;
  if (is_ending()) return false;
  const Locked locked;
  if (raised.type == nullptr && PyErr_CheckSignals() != 0) PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
  return raised.type == nullptr;
}

}  // namespace

void raise_what_a_signal_raised() {
  if (raised.type == nullptr || std::this_thread::get_id() != main_thread) return;
  PyErr_Restore(std::exchange(raised.type, nullptr), std::exchange(raised.value, nullptr),
                std::exchange(raised.traceback, nullptr));
  throw py::error_already_set();
}

FilesPtr remote_files_of(const py::dict& given) {
  if (given.empty()) return nullptr;
  RemoteOptions options;
  for (const auto& [key, value] : given) {
    const auto name = py::str(key).cast<std::string>();
    if (name == "token") {
      options.hub.token = py::str(value).cast<std::string>();
    } else if (name == "cache_dir") {
      options.hub.cache_dir = py::str(value).cast<std::string>();
    } else if (name == "endpoint") {
      options.hub.endpoint = py::str(value).cast<std::string>();
    } else if (name == "offline") {
      options.hub.offline = value.cast<bool>();
    } else if (name == "ca_file") {
      options.http.ca_file = py::str(value).cast<std::string>();
    } else if (name == "plain_http") {
      options.http.allow_plain = value.cast<bool>();
    } else if (name == "headers") {
      for (const auto& [header, text] : value.cast<py::dict>()) {
        const std::string line = py::str(header).cast<std::string>() + ": " + py::str(text).cast<std::string>();
        if (line.find_first_of("\r\n") != std::string::npos) throw py::value_error("a header is one line");
        options.http.headers.push_back(line);
      }
    } else {
      throw py::type_error("there is no option " + name);
    }
  }
  return remote_files(options);
}

void add_remote(py::module_&) {
  // Modules are imported by the main thread, or Ctrl-C waits for the answer. Nothing of this is ever destroyed.
  main_thread = std::this_thread::get_id();
  static const auto* const question = new Question(no_signal_raised);
  new WantedWhile(question);
}

}  // namespace ballast::python
