// cache: shows what the conversion cache holds.
#include <ballast/cache.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../launch.hpp"
#include "../options.hpp"
#include "../table.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::optional<std::string> target;
  std::vector<std::string> targets;
};

std::uint64_t bytes_of(const std::vector<CacheEntry>& entries) {
  std::uint64_t bytes = 0;
  for (const CacheEntry& entry : entries) bytes += entry.bytes;
  return bytes;
}

void write_json(Session& session, std::string_view what, const std::vector<CacheEntry>& entries) {
  JsonWriter json(session.out, "ballast.cache/1");
  json.field("folder", cache_folder());
  json.key(what);
  json.begin_array(JsonWriter::Layout::lines);
  for (const CacheEntry& entry : entries) {
    json.begin_object();
    json.field("path", entry.path);
    json.field("source", entry.source);
    json.field("bytes", entry.bytes);
    json.field("valid", entry.is_valid);
    if (!entry.is_valid) json.field("why", entry.why_not);
    json.end();
  }
  json.end();
  json.field("bytes", bytes_of(entries));
  json.finish();
}

int run_path(Session& session, const Arguments& arguments) {
  if (arguments.target && !std::filesystem::exists(*arguments.target))
    throw Error(Errc::not_found, "no such file or folder").in(*arguments.target);
  const std::string path = arguments.target ? cache_path(*arguments.target) : cache_folder();
  if (path.empty()) {
    throw Error(Errc::not_found, "there is no place for a cache")
        .hint("set HOME or XDG_CACHE_HOME to a folder that only you can write to");
  }
  session.out.line(escape_for_terminal(path));
  return 0;
}

int run_list(Session& session) {
  const std::vector<CacheEntry> entries = list_cache();
  if (session.json) {
    write_json(session, "caches", entries);
    return 0;
  }
  Table table(session.out, session.screen,
              {{}, {.right = true, .color = Color::green}, {.color = Color::yellow, .wraps = true}});
  for (const CacheEntry& entry : entries) {
    table.row({escape_for_terminal(entry.source), session.screen.bytes(entry.bytes),
               entry.is_valid ? "" : escape_for_terminal(entry.why_not)});
  }
  table.finish();
  session.out.flush();  // before the summary on stderr
  session.say(entries.empty()
                  ? "no caches"
                  : fmt::format("{}, {}", plural(entries.size(), "cache"), format_bytes(bytes_of(entries))));
  return 0;
}

int run_clear(Session& session, const Arguments& arguments) {
  if (session.host == nullptr) refuse_to_write_many_times();
  const std::vector<CacheEntry> removed = clear_cache(arguments.targets);
  if (session.json) write_json(session, "removed", removed);
  session.say(removed.empty()
                  ? "no caches to remove"
                  : fmt::format("removed {}, {}", plural(removed.size(), "cache"), format_bytes(bytes_of(removed))));
  return 0;
}

}  // namespace

void add_cache(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();

  Command& path = verb.verb("path", "where the cache of a target lies or would lie");
  path.positional("TARGET", &arguments->target,
                  "a file or a folder; without it, the folder of those that cannot lie beside");
  path.examples = "  ballast cache path model.pt\n";
  path.run = [arguments, &session] { return run_path(session, *arguments); };

  Command& list = verb.verb("list", "what there is, of what, how large, and whether it still counts");
  add_json_option(list, session);
  list.examples = "  ballast cache list\n";
  list.run = [&session] { return run_list(session); };

  Command& clear = verb.verb("clear", "remove all, or those of some targets");
  clear.positional("TARGET", &arguments->targets, "only those of these");
  add_json_option(clear, session);
  clear.examples = "  ballast cache clear\n  ballast cache clear model.pt\n";
  clear.run = [arguments, &session] { return run_clear(session, *arguments); };
}

}  // namespace ballast::cli
