// Session: the user's choices that mean the same for every verb, and the streams that answers go to.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/team.hpp>
#include <ballast/transform.hpp>

#include "output.hpp"
#include "progress_bar.hpp"
#include "remote_flags.hpp"
#include "terminal.hpp"

namespace ballast {
class Error;
}

namespace ballast::cli {

struct Host;

struct Session {
  const Host* host = nullptr;  // the other program that the verb runs in, if there is one
  Team* team = nullptr;        // the processes that do the verb together, if there are several
  bool rank_report = false;

  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool lenient = false;
  bool dequantize = false;
  bool weights_only = false;
  bool single = false;
  bool little_endian_blocks = false;
  bool allow_dangerous = false;
  bool strict = false;
  std::string root;
  bool make_cache = false, cache_all = false, compress_cache = false, ignore_cache = false;
  bool force = false;
  bool skip_sync = false;
  unsigned threads = 0;
  ColorMode color = ColorMode::automatic;
  Limits limits;
  Selection selection;
  RemoteFlags remote;

  Output out;       // data, and nothing else
  Terminal screen;  // describes the stream of `out`
  Terminal errors;  // describes stderr

  OpenOptions open_options() const;  // never makes a cache
  OpenOptions look_options() const;  // the same for verbs that show what a header says, and read no data
  OpenOptions data_options() const;  // makes a cache if the user asks for it, and throws if several processes would
  // For verbs that write: throws if several processes would write the same, unless nothing is written in the end.
  SaveOptions save_options(bool is_dry_run = false) const;
  // Whether long values and lists are shown in full: a program gets everything.
  bool shows_all() const noexcept { return verbose || !screen.interactive; }
  ProgressBar progress_bar() const;

  // The target, or its --subfolder.
  std::string target_in(const std::string& target) const;

  // A line for people: to stderr, escaped, and silent with -q; or to the host.
  void say(std::string_view text) const;
  void note(std::string_view text) const;

 private:
  mutable FilesPtr remote_files_;  // made when they are first needed; they keep their connections
};

// An error and what helps, to stderr, with -q too. The second one returns the exit code.
void say_error(const Session& session, std::string_view message, std::string_view hint);
int say_error(const Session& session, const Error& error);

// Reads all of standard input into memory. Throws Errc::invalid_argument if standard input is the terminal.
std::vector<std::byte> read_standard_input();

// Opens a file, a folder, an index, or "-" for standard input, which is read into memory. say_notes() prints its notes.
Checkpoint open_target(const Session& session, const std::string& target);

// The same for verbs that show what a header says, and read no data: of a remote file, its end is left alone.
Checkpoint open_to_look(const Session& session, const std::string& target);

// The same, and never from a cache: for facts about the file that other programs see, such as its digests.
Checkpoint open_original(const Session& session, const std::string& target);

// The same for verbs that read the data: if the user asks for it, from a cache that is made first.
Checkpoint open_data(const Session& session, const std::string& target);
void say_notes(const Session& session, const Checkpoint& checkpoint);
void say_notes(const Session& session, std::span<const Note> notes);

// The tensors that --include, --exclude and `globs` leave. Errc::not_found if no tensor is left.
Checkpoint select_tensors(const Session& session, Checkpoint checkpoint, const std::vector<std::string>& globs = {});

// A note for each single glob that matches nothing in any of these checkpoints.
void say_unmatched(const Session& session, const Selection& selection,
                   std::initializer_list<const Checkpoint*> checkpoints);

// Indices of the tensors in natural order, the order in which people read names.
std::vector<std::size_t> natural_order(const Checkpoint& checkpoint);

std::string plural(std::uint64_t count,
                   std::string_view noun);    // for people, in messages: "1 tensor", "11 008 tensors"
std::string format_duration(double seconds);  // "3 ms", "1.2 s"

}  // namespace ballast::cli
