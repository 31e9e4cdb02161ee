// view: a page that shows a checkpoint, or the difference of two, in a browser or in one HTML file.
#include <cstdint>
#include <memory>
#include <string>
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
  std::string html, base;
  std::uint64_t sample = 0, port = 0;
  bool no_browser = false;
};

int write_report(Session& session, const Subject& subject, const Arguments& arguments) {
  auto bar = session.progress_bar();
  const std::string page = make_report(session, subject, arguments.sample, bar.callback());
  bar.clear();
  if (arguments.html == "-") {
    session.out.write(page);
    return 0;
  }
  const auto bytes = std::as_bytes(std::span(page));
  save_raw(Tensor::from_bytes(DType::u8, {bytes.size()}, bytes), arguments.html, session.save_options());
  session.say(fmt::format("wrote {}: {}", arguments.html, format_bytes(page.size())));
  return 0;
}

int run_view(Session& session, const Arguments& arguments) {
  if (arguments.targets.empty()) throw Error(Errc::invalid_argument, "view what?").hint("name a checkpoint");
  if (arguments.targets.size() > 2)
    throw Error(Errc::invalid_argument, "a page shows one checkpoint, or the difference of two")
        .hint("name one target, or two");
  if (arguments.port > kMostPort)
    throw Error(Errc::invalid_argument, fmt::format("--port: there is no port {}", arguments.port))
        .hint("a number from 1 to 65535, or 0 for any that is free");
  if (!arguments.html.empty() && arguments.html != "-") refuse_existing(session, arguments.html);
  const Subject subject = open_subject(session, arguments.targets, arguments.base);
  if (!arguments.html.empty()) return write_report(session, subject, arguments);
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
