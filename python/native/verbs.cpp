#include <pybind11/stl.h>

#include "verbs.hpp"

#include <string>
#include <utility>
#include <vector>

#include "checkpoint.hpp"
#include "errors.hpp"
#include "host.hpp"
#include "job.hpp"
#include "words.hpp"

namespace py = pybind11;

namespace ballast::python {
namespace {

// (exit code, what the command prints, notes).
py::tuple run(const std::vector<std::string>& words, const py::dict& targets, const py::object& progress) {
  cli::Host host;
  for (const auto& [name, checkpoint] : targets)
    host.targets.emplace(py::str(name).cast<std::string>(), checkpoint.cast<const PyCheckpoint&>().get());
  std::vector<std::string> said;
  host.say = [&](std::string_view text) { said.emplace_back(text); };
  host.words = words_for(Caller::verb);
  cli::Answered answered;
  for_caller(Caller::verb, [&] {
    run_job(progress, [&](const Progress& told) {
      host.progress = told;
      host.keep_going = [&told] { return told({}); };
      answered = cli::run_for(host, words);
    });
  });
  py::list notes;
  for (const std::string& text : said) notes.append(to_text(in_keywords(text)));
  return py::make_tuple(answered.exit_code, to_text(answered.out), notes);
}

py::dict described(const cli::Argument& argument) {
  py::dict row;
  row["name"] = argument.is_positional() ? argument.value_name : argument.long_name;
  row["positional"] = argument.is_positional();
  row["required"] = argument.is_required();
  row["repeatable"] = argument.is_repeatable();
  row["flag"] = !argument.takes_value();
  row["number"] = std::holds_alternative<unsigned*>(argument.destination) ||
                  std::holds_alternative<std::uint64_t*>(argument.destination) ||
                  std::holds_alternative<double*>(argument.destination);
  row["value"] = argument.value_name;
  row["help"] = argument.description;
  return row;
}

// NOLINTNEXTLINE(misc-no-recursion): our own tree, which is two levels deep
py::dict described(const cli::Command& command) {
  py::dict row;
  row["name"] = command.name;
  row["summary"] = command.summary;
  py::list arguments, verbs;
  for (const cli::Argument& argument : command.arguments) arguments.append(described(argument));
  for (const cli::Command& verb : command.verbs) verbs.append(described(verb));
  row["arguments"] = arguments;
  row["verbs"] = verbs;
  return row;
}

}  // namespace

void add_verbs(py::module_& module) {
  module.def("run", &run, py::arg("words"), py::arg("targets"), py::arg("progress"));
  module.def("command", [] {
    py::dict tree;
    cli::visit_commands([&](const cli::Command& root) { tree = described(root); });
    return tree;
  });
}

}  // namespace ballast::python
