// The command as a person runs it: whole processes, with everything that they do besides opening a file.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include <ballast/ballast.hpp>

#include "benchmarks.hpp"
#include "generate.hpp"

namespace ballast::bench {
namespace {

// Runs the process to its end and discards its output.
void run_process(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child || status != 0) throw std::runtime_error(words[0] + " failed");
}

void start() { run_process({BALLAST_COMMAND, "--version"}); }

}  // namespace

void bench_command(Report& report) {
  constexpr int kRounds = 41;
  const std::string name = "start the command / an empty C++ program";
  if (report.wants(name))
    report.add(name, compare({start}, {[] { run_process({EMPTY_PROGRAM}); }}, kRounds), Goal::time_at_most, 4.0);

  struct Case {
    std::string name;
    std::vector<std::string> words;
    double bound;
  };
  const std::string path = scratch() + "/command.safetensors";
  const std::array<Case, 4> cases = {{
      {"ls 100 000 tensors, without the start / open them", {"ls"}, 3.0},
      {"ls --tree of 100 000 tensors, without the start / open them", {"ls", "--tree"}, 3.0},
      {"info of 100 000 tensors, without the start / open them", {"info"}, 3.0},
      {"ls --json of 100 000 tensors, without the start / open them", {"ls", "--json"}, 2.5},
  }};
  for (const Case& each : cases) {
    if (!report.wants(each.name)) continue;
    write_model(path, 0, 100'000);
    std::vector<std::string> words = {BALLAST_COMMAND};
    words.insert(words.end(), each.words.begin(), each.words.end());
    words.push_back(path);
    const auto ours = [&] { run_process(words); };
    report.add(each.name, compare({ours}, {[&] { open_and_list(path); }}, kRounds, start), Goal::time_at_most,
               each.bound);
  }
}

}  // namespace ballast::bench
