// Program: the command whose words are carried out. It is `ballast`, unless a program of several processes says what it
// is, all of whose processes carry out the same words together.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <ballast/team.hpp>

namespace ballast::cli {

struct Command;

struct Program {
  std::string_view name = "ballast";
  std::string_view summary = "Opens model checkpoints: looks into them, compares them, converts them.";
  std::string_view examples{};                // for the help; empty: those of `ballast`
  std::span<const std::string_view> verbs{};  // "hash", "adapter merge"; empty: all that there are
  Team* team = nullptr;                       // the processes, of which only the first one speaks
  // What each process has done: a table for people, and members of a JSON object.
  std::string (*rank_table)(std::span<const TeamWork>) = nullptr;
  std::string (*rank_members)(std::span<const TeamWork>) = nullptr;

  bool has(std::string_view verb) const;  // a verb, or the first word of one
};

// Removes the verbs of a verb that the program does not have, and says in its summary which are left.
void keep_verbs_of(const Program& program, Command& verb);

}  // namespace ballast::cli
