// fetch: brings what an address names onto this machine.
#include <ballast/fetch.hpp>

#include <memory>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../launch.hpp"
#include "../options.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  FetchOptions options;
};

void write_json(Session& session, const FetchReport& report) {
  JsonWriter json(session.out, "ballast.fetch/1");
  json.field("target", report.target);
  report.commit.empty() ? json.field("commit", nullptr) : json.field("commit", report.commit);
  json.field("folder", report.folder);
  json.key("files");
  json.begin_array(JsonWriter::Layout::lines);
  for (const FetchedFile& file : report.files) {
    json.begin_object();
    json.field("path", file.path);
    json.field("local", file.local);
    json.field("bytes", file.bytes);
    file.digest.empty() ? json.field("digest", nullptr) : json.field("digest", file.digest);
    json.field("was_there", file.was_there);
    json.end();
  }
  json.end();
  json.finish();
}

int run_fetch(Session& session, const Arguments& arguments) {
  if (session.host == nullptr) refuse_to_write_many_times();
  FetchOptions options = arguments.options;
  options.remote = remote_options(session.remote, session.host);
  options.overwrite = session.force;
  options.durable = !session.skip_sync;
  auto bar = session.progress_bar();
  options.progress = bar.callback();
  const FetchReport report = fetch(session.target_in(arguments.target), options);
  bar.clear();
  for (const std::string& name : report.left_out)
    session.note(fmt::format("{} was left out: its name leads out of the folder", escape_for_terminal(name)));
  std::uint64_t fetched = 0, bytes = 0;
  for (const FetchedFile& file : report.files) {
    if (file.was_there) continue;
    ++fetched;
    bytes += file.bytes;
  }
  if (session.json) {
    write_json(session, report);
  } else {
    session.out.line(escape_for_terminal(report.folder));
    session.out.flush();  // before the summary on stderr
  }
  session.say(fmt::format(
      "fetched {}, {}; {} there already", plural(fetched, "file"), format_bytes(bytes),
      report.files.size() - fetched == 1 ? "1 was" : fmt::format("{} were", report.files.size() - fetched)));
  return 0;
}

}  // namespace

void add_fetch(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  verb.positional("TARGET", &arguments->target, "hf://org/name[@revision][/path], https://… or s3://bucket/key");
  verb.option("-o,--output", "DIR", &arguments->options.folder, "only into this folder, not into the Hub's cache");
  verb.option("--include", "GLOB", &arguments->options.include, "only files whose full path matches");
  verb.option("--exclude", "GLOB", &arguments->options.exclude, "leave out files whose full path matches");
  verb.option("--in-flight", "N", &arguments->options.in_flight, "requests at once, 8 by default");
  add_force_option(verb, session);
  add_sync_option(verb, session);
  add_json_option(verb, session);
  verb.examples =
      "  ballast fetch hf://org/model --include '*.safetensors' --include '*.json'\n"
      "  ballast fetch hf://org/model -o model\n"
      "  ballast fetch https://example.org/model.safetensors -o .\n";
  verb.run = [arguments, &session] { return run_fetch(session, *arguments); };
}

}  // namespace ballast::cli
