// The command as a person runs it: whole processes, with everything that they do besides opening a file.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
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

// A file of 100 000 tensors in which nothing folds: each name has a random word for its number.
void write_unfoldable(const std::string& path) {
  std::mt19937 random(1);
  std::string header = "{";
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    std::string word;
    for (int letter = 0; letter < 8; ++letter) word += static_cast<char>('a' + random() % 16);
    header += fmt::format(R"({}"model.layers.{}.{}.weight":{{"dtype":"BF16","shape":[4,4],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i / 100, word, i * 32, (i + 1) * 32);
  }
  header += "}";
  const std::uint64_t length = header.size();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&length), 8) << header;
  std::filesystem::resize_file(path, 8 + length + 3'200'000);
}

void bench_tree(Report& report, int rounds) {
  const std::string path = scratch() + "/tree.safetensors";
  for (const bool folds : {true, false}) {
    const std::string name =
        fmt::format("ls --tree of 100 000 tensors {} / ls", folds ? "in layers" : "of which none folds");
    if (!report.wants(name)) continue;
    if (folds)
      write_model(path, 0, 100'000);
    else
      write_unfoldable(path);
    const auto ours = [&] { run_process({BALLAST_COMMAND, "ls", "--tree", path}); };
    const auto theirs = [&] { run_process({BALLAST_COMMAND, "ls", path}); };
    report.add(name, compare({ours}, {theirs}, rounds), Goal::time_at_most, 2.0);
  }
}

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
  const std::array<Case, 3> cases = {{
      {"ls 100 000 tensors, without the start / open them", {"ls"}, 3.0},
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
  bench_tree(report, kRounds);
}

}  // namespace ballast::bench
