// view: a page that shows a checkpoint, or the difference of two, in a browser or in one HTML file.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/save.hpp>
#include <ballast/text.hpp>

#include "../options.hpp"
#include "../save_job.hpp"
#include "../view/report.hpp"
#include "../view/server.hpp"
#include "../view/subject.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

constexpr std::uint64_t kMostPort = 65535;

struct Arguments {
  std::vector<std::string> targets;
  std::optional<std::string> html;
  std::string base;
  std::uint64_t sample = 0, port = 0;
  bool no_browser = false;
};

// An option that would do nothing is a mistake.
void check_options(const Arguments& arguments) {
  const bool is_report = arguments.html.has_value();
  if (is_report && arguments.html->empty())
    throw Error(Errc::invalid_argument, "--html: there is no file without a name")
        .hint("--html report.html; --html - writes to standard output");
  if (arguments.sample != 0 && !is_report)
    throw Error(Errc::invalid_argument, "--sample is for a report").hint("add --html FILE, or leave --sample out");
  if (is_report && arguments.port != 0)
    throw Error(Errc::invalid_argument, "--port is for a page that is served").hint("leave --html out, or --port");
  if (arguments.port > kMostPort)
    throw Error(Errc::invalid_argument, fmt::format("--port: there is no port {}", arguments.port))
        .hint("a number from 1 to 65535, or 0 for any that is free");
}

// A report over a model of its own would be all that is left of it.
void check_place(const Session& session, const Subject& subject, const std::string& path) {
  for (const Checkpoint& side : subject.originals) refuse_own_files(path, side.files);
  if (subject.base) refuse_own_files(path, subject.base->files);
  refuse_existing(session, path);
}

int write_report(Session& session, Subject subject, const Arguments& arguments) {
  const std::string& path = *arguments.html;
  if (path != "-") check_place(session, subject, path);
  auto bar = session.progress_bar();
  const Report report = make_report(session, std::move(subject), arguments.sample, bar.callback());
  bar.clear();
  for (const std::string& note : report.notes) session.note(note);
  if (path == "-") {
    session.out.write(report.page);
    return 0;
  }
  const auto bytes = std::as_bytes(std::span(report.page));
  save_raw(Tensor::from_bytes(DType::u8, {bytes.size()}, bytes), path, session.save_options());
  session.say(fmt::format("wrote {}: {}", path, format_bytes(bytes.size())));
  return 0;
}

int run_view(Session& session, const Arguments& arguments) {
  if (arguments.targets.empty()) throw Error(Errc::invalid_argument, "view what?").hint("name a checkpoint");
  if (arguments.targets.size() > 2)
    throw Error(Errc::invalid_argument, "a page shows one checkpoint, or the difference of two")
        .hint("name one target, or two");
  check_options(arguments);
  if (arguments.html && *arguments.html != "-") refuse_existing(session, *arguments.html);
  Subject subject = open_subject(session, arguments.targets, arguments.base);
  if (arguments.html) return write_report(session, std::move(subject), arguments);
  serve(session, subject, {static_cast<std::uint16_t>(arguments.port), !arguments.no_browser});
  return 0;
}

}  // namespace

void add_view(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  verb.positional("TARGET", &arguments->targets, "a checkpoint, or two to compare; a file, a folder, https://, hf://");
  verb.option("--html", "FILE", &arguments->html, "write the page as one file instead; - is standard output");
  verb.option("--sample", "N", &arguments->sample,
              "with --html, statistics from about N values of each tensor; 0, the default, is all");
  verb.option("--base", "TARGET", &arguments->base, "of an adapter: the model that it belongs to");
  verb.option("--port", "N", &arguments->port, "the port of the page; 0, the default, is any that is free");
  verb.flag("--no-browser", &arguments->no_browser, "only print the address");
  add_selection_options(verb, session);
  add_force_option(verb, session);
  verb.examples =
      "  ballast view model.safetensors\n  ballast view model/ --html report.html\n  ballast view base/ tuned/\n";
  verb.run = [arguments, &session] { return run_view(session, *arguments); };
}

}  // namespace ballast::cli
