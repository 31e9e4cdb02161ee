// A verb in another program: the Python module runs the verbs of the command, so that both mean the same.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/progress.hpp>
#include <ballast/remedy.hpp>

#include "arguments.hpp"

namespace ballast::cli {

// What the other program brings along. A verb uses it from the thread that runs the verb, and its progress as
// progress.hpp says.
struct Host {
  std::function<void(std::string_view)> say{};  // a note, or another line that the command would write to stderr
  Advice::Words words{};                        // what it calls remedies, instead of flags
  Progress progress{};
  std::function<bool()> keep_going{};                        // asked while a verb waits for a server, by any thread
  std::map<std::string, Checkpoint, std::less<>> targets{};  // that are open already, by what the words call them
};

struct Answered {
  int exit_code = 0;
  std::string out;  // what the command would write to stdout
};

// Runs the verb that the words name, without signal handlers, colours or standard streams. Throws Error, whose hint is
// in the words of the host; its message, and what its hint says beside remedies, may speak of the command's flags.
Answered run_for(const Host& host, const std::vector<std::string>& words);

// Describes the whole command, and calls `look` with it.
void visit_commands(const std::function<void(const Command&)>& look);

}  // namespace ballast::cli
