#include "session.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>
#include <ballast/error.hpp>
#include <ballast/suggest.hpp>
#include <ballast/text.hpp>

#include "host.hpp"
#include "interrupt.hpp"
#include "launch.hpp"
#include "remedies.hpp"
#include "wrap.hpp"

namespace ballast::cli {

std::vector<std::byte> read_standard_input() {
  if (isatty(STDIN_FILENO) == 1) {
    throw Error(Errc::invalid_argument, "standard input is the terminal")
        .hint("pipe a file into it: cat model.safetensors | ballast ls -");
  }
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  std::size_t size = 0;
  for (;;) {
    throw_if_interrupted();
    if (size == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t got = ::read(STDIN_FILENO, bytes.data() + size, bytes.size() - size);
    if (got == 0) break;
    if (got > 0) size += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR)
      throw Error(Errc::io, fmt::format("cannot read: {}", std::strerror(errno))).in("standard input");
  }
  bytes.resize(size);
  return bytes;
}

namespace {

std::string no_match_hint(const Checkpoint& checkpoint, const std::vector<std::string>& include) {
  if (include.size() == 1) {
    std::vector<std::string_view> names;
    for (const auto& [name, tensor] : checkpoint) names.push_back(name);
    if (const auto name = nearest(include[0], names)) return fmt::format("did you mean {}?", *name);
  }
  return fmt::format("a glob must match the full name, as in '*weight'; {} lists all {}", Advice::mention(Remedy::ls),
                     plural(checkpoint.size(), "name"));
}

}  // namespace

OpenOptions Session::open_options() const {
  OpenOptions options;
  options.limits = limits;
  options.safety = weights_only ? Safety::strict : Safety::inert;
  options.root = root;
  options.single = single;
  options.little_endian_blocks = little_endian_blocks;
  options.lenient = lenient;
  options.dequantize = dequantize;
  options.threads = threads;
  options.cache = ignore_cache ? Cache::ignore : Cache::use;
  options.variant = remote.variant;
  if (!remote_files_) remote_files_ = remote_files(remote_options(remote, host));
  options.remote = remote_files_;
  return options;
}

OpenOptions Session::look_options() const {
  OpenOptions options = open_options();
  options.checks_end = false;
  return options;
}

std::string Session::target_in(const std::string& target) const {
  if (remote.subfolder.empty() || target == "-") return target;
  return options_for(target, open_options()).files->inside(target, remote.subfolder);
}

OpenOptions Session::data_options() const {
  OpenOptions options = open_options();
  if (ignore_cache) return options;
  if (host == nullptr && (make_cache || cache_all)) refuse_to_write_many_times();
  if (host == nullptr && is_one_of_many()) return options;
  const char* wish = std::getenv("BALLAST_CACHE");
  const std::string_view wanted = wish == nullptr ? "" : wish;
  if (make_cache || wanted == "1") options.cache = Cache::automatic;
  if (cache_all || wanted == "all") options.cache = Cache::always;
  options.compress_cache = compress_cache;
  return options;
}

SaveOptions Session::save_options(bool is_dry_run) const {
  if (!is_dry_run && host == nullptr && team_of(team).size() == 1) refuse_to_write_many_times(team != nullptr);
  SaveOptions options;
  options.team = team;
  options.overwrite = force;
  options.allow_dangerous = allow_dangerous;
  options.strict = strict;
  options.durable = !skip_sync;
  options.threads = threads;
  options.limits = limits;
  return options;
}

ProgressBar Session::progress_bar() const {
  return ProgressBar(errors, !quiet, host == nullptr ? Progress() : host->progress);
}

void Session::say(std::string_view text) const {
  if (host != nullptr) return host->say(text);
  if (!quiet) write_to_stderr(labelled(errors, "", escape_for_terminal(text)) + "\n");
}

void Session::note(std::string_view text) const {
  if (host != nullptr) return host->say(text);
  if (quiet) return;
  write_to_stderr(labelled(errors, errors.paint(Color::yellow, "note:") + " ", escape_for_terminal(text)) + "\n");
}

void say_error(const Session& session, std::string_view message, std::string_view hint) {
  if (!team_of(session.team).is_first()) return;
  const Terminal terminal = terminal_on(STDERR_FILENO, session.color);
  const auto say = [&](const std::string& label, std::string_view text) {
    if (!text.empty()) write_to_stderr(labelled(terminal, label + " ", escape_for_terminal(text)) + "\n");
  };
  say(terminal.paint(Color::red, "ballast:"), message);
  say("  " + terminal.paint(Color::cyan, "hint:"), hint);
}

int say_error(const Session& session, const Error& error) {
  if (error.code() == Errc::cancelled && interrupted() != 0) {
    say_error(session, "interrupted", worded(error.hint()));
    return 128 + interrupted();
  }
  const bool could_be_raised = error.code() == Errc::limit && error.hint().empty();
  say_error(session, error.what(),
            could_be_raised
                ? "if you trust where the file comes from, raise the limit with --limit NAME=VALUE; ballast "
                  "--limits lists them"
                : worded(error.hint()));
  return info(error.code()).exit_code;
}

namespace {

// People who know transformers write org/name.
Checkpoint open_named(const Session& session, const std::string& target, const OpenOptions& options) try {
  return open(session.target_in(target), options);
} catch (Error& error) {
  const bool may_be_repository = error.code() == Errc::not_found && path_or_repository(target) != target;
  throw may_be_repository ? error.hint("a repository of the Hugging Face Hub is hf://" + target) : error;
}

Checkpoint open_with(const Session& session, const std::string& target, const OpenOptions& options) {
  if (session.host != nullptr) {
    const auto given = session.host->targets.find(target);
    if (given != session.host->targets.end()) return given->second;
  }
  if (target == "-" && session.team != nullptr) {
    throw Error(Errc::invalid_argument, "standard input reaches one process only")
        .hint("name a file that all processes see");
  }
  const auto start = std::chrono::steady_clock::now();
  Checkpoint checkpoint =
      target == "-" ? open_bytes(read_standard_input(), "<stdin>", options) : open_named(session, target, options);
  if (session.verbose) {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    session.say(fmt::format("opened {}: {} in {}, {:.1f} ms", target, plural(checkpoint.size(), "tensor"),
                            plural(checkpoint.files.size(), "file"), elapsed.count()));
  }
  return checkpoint;
}

}  // namespace

Checkpoint open_target(const Session& session, const std::string& target) {
  return open_with(session, target, session.open_options());
}

Checkpoint open_to_look(const Session& session, const std::string& target) {
  return open_with(session, target, session.look_options());
}

Checkpoint open_original(const Session& session, const std::string& target) {
  OpenOptions options = session.open_options();
  options.cache = Cache::ignore;
  return open_with(session, target, options);
}

Checkpoint open_data(const Session& session, const std::string& target) {
  auto bar = session.progress_bar();
  OpenOptions options = session.data_options();
  options.progress = bar.callback();
  Checkpoint checkpoint = open_with(session, target, options);
  bar.clear();
  return checkpoint;
}

void say_notes(const Session& session, std::span<const Note> notes) {
  for (const Note& note : notes)
    session.note(note.where.empty() ? text_of(note) : fmt::format("{}: {}", note.where, text_of(note)));
}

void say_notes(const Session& session, const Checkpoint& checkpoint) { say_notes(session, checkpoint.notes); }

void say_unmatched(const Session& session, const Selection& selection,
                   std::initializer_list<const Checkpoint*> checkpoints) {
  for (const auto* globs : {&selection.include, &selection.exclude}) {
    for (const std::string& glob : *globs) {
      const Selection alone{{glob}, {}};
      const auto matches = [&](const Checkpoint* checkpoint) {
        return std::ranges::any_of(*checkpoint, [&](const auto& entry) { return alone.matches(entry.name); });
      };
      if (std::ranges::none_of(checkpoints, matches))
        session.note(fmt::format("{}no tensor matches \"{}\"", globs == &selection.exclude ? "--exclude: " : "", glob));
    }
  }
}

Checkpoint select_tensors(const Session& session, Checkpoint checkpoint, const std::vector<std::string>& globs) {
  Selection selection = session.selection;
  selection.include.insert(selection.include.end(), globs.begin(), globs.end());
  if (selection.include.empty() && selection.exclude.empty()) return checkpoint;

  Checkpoint selected = select(checkpoint, selection);
  if (selected.size() > 0) say_unmatched(session, selection, {&checkpoint});
  if (selected.size() > 0 || checkpoint.size() == 0) return selected;
  const std::string what = selection.include.size() == 1 ? fmt::format("no tensor matches \"{}\"", selection.include[0])
                                                         : std::string("no tensor matches the selection");
  throw Error(Errc::not_found, what).about("").in(checkpoint.target).hint(no_match_hint(checkpoint, selection.include));
}

std::vector<std::size_t> natural_order(const Checkpoint& checkpoint) {
  std::vector<std::string_view> names;
  names.reserve(checkpoint.size());
  for (const auto& [name, tensor] : checkpoint) names.push_back(name);
  return ballast::natural_order(names);
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return Terminal{.interactive = true}.plural(count, noun);
}

std::string format_duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1000) : fmt::format("{:.1f} s", seconds);
}

}  // namespace ballast::cli
