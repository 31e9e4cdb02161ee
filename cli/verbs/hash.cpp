// hash: prints a digest for each tensor, and one for all of them.
#include <ballast/hash.hpp>

#include <memory>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  std::vector<std::string> globs;
  bool digest_only = false, decoded = false;
};

void write_json(Session& session, const HashReport& report, bool digest_only) {
  JsonWriter json(session.out, "ballast.hash/1");
  json.field("algorithm", "sha256");
  if (!digest_only) {
    json.key("tensors");
    json.begin_object(JsonWriter::Layout::lines);
    for (const auto& [name, sha256] : report.tensors) sha256 ? json.field(name, *sha256) : json.field(name, nullptr);
    json.end();
  }
  json.field("digest", report.digest);
  json.finish();
}

// A digest is never cut: what does not fit a terminal beside it stands in the line below.
void write_line(Session& session, const std::optional<std::string>& sha256, Color color, std::string_view name) {
  constexpr std::size_t kHexDigits = 64;
  const std::string_view digest = sha256 ? std::string_view(*sha256) : "no data";
  const bool is_beside = !session.screen.interactive || kHexDigits + 2 + columns_of(name) <= session.screen.width;
  const std::string gap = is_beside ? std::string(kHexDigits - digest.size(), ' ') : "\n";
  session.out.line(fmt::format("{}{}  {}", session.screen.paint(color, digest), gap, name));
}

// The lines have the format of sha256sum: people know it, and `verify --manifest` reads it back.
void write_text(Session& session, const Checkpoint& checkpoint, const HashReport& report) {
  for (const std::size_t i : natural_order(checkpoint)) {
    const auto& [name, sha256] = report.tensors[i];
    const std::string shown = escape_for_terminal(name);
    write_line(session, sha256, Color::dim, session.screen.utf8 ? shown : in_ascii(shown));
  }
  write_line(session, report.digest, Color::plain,
             fmt::format("(all {})", session.screen.plural(checkpoint.size(), "tensor")));
}

int run_hash(Session& session, const Arguments& arguments) {
  Checkpoint checkpoint = open_original(session, arguments.target);
  say_notes(session, checkpoint);
  checkpoint = select_tensors(session, std::move(checkpoint), arguments.globs);
  auto bar = session.progress_bar();
  const HashReport report = hash(checkpoint, {.decoded = arguments.decoded,
                                              .threads = session.threads,
                                              .progress = bar.callback(),
                                              .limits = session.limits,
                                              .team = session.team});
  bar.clear();
  if (session.json) {
    write_json(session, report, arguments.digest_only);
  } else if (arguments.digest_only) {
    session.out.line(report.digest);
  } else {
    write_text(session, checkpoint, report);
  }
  return 0;
}

}  // namespace

void add_hash(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  add_target(verb, arguments->target);
  verb.positional("GLOB", &arguments->globs, "only tensors whose full name matches one of these");
  verb.flag("--digest", &arguments->digest_only, "only the one digest for all tensors");
  verb.flag("--decoded", &arguments->decoded, "of ggml's blocks, hash the F32 values that they stand for");
  add_selection_options(verb, session);
  add_json_option(verb, session);
  verb.examples = "  ballast hash model/ > model.sha256\n  ballast hash model.safetensors --digest\n";
  verb.run = [arguments, &session] { return run_hash(session, *arguments); };
}

}  // namespace ballast::cli
