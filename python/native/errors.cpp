#include "errors.hpp"
#include "remote.hpp"

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "checkpoint.hpp"
#include "memory.hpp"
#include "words.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

struct Row {
  Errc code;
  const char* name;
  const char* doc;
};

// In the order of Errc. The library's own table says which built-in exception each of them is, too.
constexpr std::array kRows = {
    Row{Errc::io, "IOFailed", "The system could not read or write."},
    Row{Errc::not_found, "NotFound", "There is no such file."},
    Row{Errc::changed, "Changed", "A file changed or shrank while it was being read."},
    Row{Errc::malformed, "Malformed", "The bytes break the rules of their format."},
    Row{Errc::limit, "OverLimit", "Well-formed, but over one of the limits on input."},
    Row{Errc::unsafe, "Unsafe", "Names something dangerous, or leads outside its folder."},
    Row{Errc::unsupported, "Unsupported", "Understood, but not something that Ballast can do."},
    Row{Errc::mismatch, "Mismatch", "Two things that must agree do not."},
    Row{Errc::invalid_argument, "InvalidArgument", "The call asks for something that makes no sense."},
    Row{Errc::cancelled, "Cancelled", "The progress callback said stop."},
};

constexpr bool is_in_enum_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].code) != i) return false;
  return true;
}
static_assert(is_in_enum_order(), "classes are found by the code");

// The classes live as long as the interpreter, and are found without a lookup by name.
std::array<PyObject*, kRows.size()> classes;
PyObject* no_tensor = nullptr;
PyObject* no_permission = nullptr;
PyObject* already_exists = nullptr;

PyObject* make_class(py::module_& module, const char* name, const char* doc, const py::tuple& bases) {
  const std::string path = std::string("ballast.") + name;
  // str() of a KeyError is the repr of its text, so every class says how it is printed.
  PyObject* made = PyErr_NewExceptionWithDoc(path.c_str(), doc, bases.ptr(), nullptr);
  if (made == nullptr) throw py::error_already_set();
  module.add_object(name, py::reinterpret_borrow<py::object>(made));
  return made;
}

// Kept by an Error as its cause. The exception is let go of with the interpreter's lock, whichever thread does it.
struct RaisedInPython {
  std::shared_ptr<const void> exception;
};

py::object raised_in_python(const Error& error) {
  try {
    if (error.cause()) std::rethrow_exception(error.cause());
  } catch (const RaisedInPython& raised) {
    return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(raised.exception.get())));
  } catch (...) {  // of C++, which Python has no name for
  }
  return py::none();
}

[[noreturn]] void raise_again(const py::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

[[noreturn]] void raise_as(PyObject* type, const Error& error, Caller caller) {
  const std::string hint = in_keywords(error.hint().text(words_for(caller)));
  // What is quoted, such as a path, stays as it is.
  std::string text = error.where().empty() ? "" : error.where() + ": ";
  text += in_keywords(error.message());
  if (error.offset()) text += " (byte " + std::to_string(*error.offset()) + ")";
  if (!hint.empty()) text += "\n  hint: " + hint;
  const py::object value = py::reinterpret_steal<py::object>(
      PyObject_CallFunctionObjArgs(type, to_text(text).ptr(), static_cast<PyObject*>(nullptr)));
  if (!value) throw py::error_already_set();
  value.attr("code") = to_text(info(error.code()).name);
  value.attr("where") = error.where().empty() ? py::object(py::none()) : to_text(error.where());
  value.attr("offset") = error.offset() ? py::object(py::int_(*error.offset())) : py::object(py::none());
  value.attr("hint") = hint.empty() ? py::object(py::none()) : to_text(hint);
  value.attr("name") = error.name().value_or("").empty() ? py::object(py::none()) : to_text(*error.name());
  const auto is_a = [&](PyObject* base) { return PyObject_IsInstance(value.ptr(), base) == 1; };
  if (is_a(PyExc_OSError) && !error.where().empty()) value.attr("filename") = to_text(error.where());
  if (is_a(PyExc_FileNotFoundError)) value.attr("errno") = ENOENT;
  if (is_a(PyExc_FileExistsError)) value.attr("errno") = EEXIST;
  if (is_a(PyExc_PermissionError)) value.attr("errno") = EACCES;
  if (const py::object cause = raised_in_python(error); !cause.is_none())
    PyException_SetCause(value.ptr(), py::object(cause).release().ptr());  // "raise … from cause"
  PyErr_SetObject(type, value.ptr());
  throw py::error_already_set();
}

}  // namespace

void add_errors(py::module_& module) {
  py::object base = py::reinterpret_steal<py::object>(
      PyErr_NewExceptionWithDoc("ballast.Error",
                                "Whatever Ballast could not do. code is the kind (\"malformed\"), where the file, "
                                "offset the byte in it, hint what "
                                "to do, and name the tensor; each is None if it is unknown.",
                                PyExc_Exception, nullptr));
  if (!base) throw py::error_already_set();
  // OSError and KeyError print their arguments in ways of their own; the text of an error is its first argument.
  base.attr("__str__") = py::cpp_function(
      [](const py::object& self) {
        const py::tuple args = self.attr("args");
        return args.empty() ? py::str("") : py::str(args[0]);
      },
      py::is_method(base));
  for (const char* field : {"code", "where", "offset", "hint", "name"}) base.attr(field) = py::none();
  module.add_object("Error", base);
  const py::module_ builtins = py::module_::import("builtins");
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const Row& row = kRows[i];
    // Ctrl-C itself is raised as KeyboardInterrupt; Cancelled is for a program that stops a job by its callback.
    py::tuple bases = py::make_tuple(base, builtins.attr(info(row.code).python_exception.data()));
    if (row.code == Errc::cancelled) bases = py::make_tuple(base);
    classes[i] = make_class(module, row.name, row.doc, bases);
    py::handle(classes[i]).attr("code") = to_text(info(row.code).name);
  }
  no_permission =
      make_class(module, "NoPermission", "The system does not allow it.",
                 py::make_tuple(py::reinterpret_borrow<py::object>(classes[0]), builtins.attr("PermissionError")));
  already_exists = make_class(
      module, "AlreadyExists", "There is a file of that name.",
      py::make_tuple(py::reinterpret_borrow<py::object>(classes[static_cast<std::size_t>(Errc::invalid_argument)]),
                     builtins.attr("FileExistsError")));
  no_tensor = make_class(module, "NoSuchTensor", "There is no tensor, or no metadata, of this name.",
                         py::make_tuple(base, builtins.attr("KeyError")));
  py::handle(no_tensor).attr("code") = to_text(info(Errc::not_found).name);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      try {
        raise(error);
      } catch (py::error_already_set& raised) {
        raised.restore();
      }
    }
  });
}

std::exception_ptr cause_of(const py::error_already_set& error) {
  py::object exception = error.value();
  if (error.trace()) PyException_SetTraceback(exception.ptr(), error.trace().ptr());
  return std::make_exception_ptr(RaisedInPython{keep(std::move(exception))});
}

void raise(const Error& error, Caller caller) {
  if (error.code() == Errc::cancelled) {
    if (const py::object exception = raised_in_python(error); !exception.is_none()) raise_again(exception);
  }
  raise_what_a_signal_raised();
  const bool exists = error.code() == Errc::invalid_argument && error.system_code() == EEXIST;
  if (exists) raise_as(already_exists, error, caller);
  const bool is_a_file = !error.name() || error.system_code() != 0;
  if (error.code() == Errc::not_found && !is_a_file) raise_as(no_tensor, error, caller);
  const bool is_denied = error.system_code() == EACCES || error.system_code() == EPERM;
  if (error.code() == Errc::io && is_denied) raise_as(no_permission, error, caller);
  raise_as(classes[static_cast<std::size_t>(error.code())], error, caller);
}

}  // namespace ballast::python
