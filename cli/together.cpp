#include "together.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "output.hpp"

namespace ballast::cli {
namespace {

// What every process has, as bytes, in the order of the processes.
template <class T>
std::vector<T> of_all(Team& team, const T& mine) {
  std::vector<T> all;
  for (const auto& message : team.exchange(std::as_bytes(std::span(&mine, 1)))) {
    if (message.size() != sizeof(T)) {
      throw Error(Errc::mismatch, "the processes of this job do not carry out the same")
          .hint("give all of them the same arguments, and the same version of this program");
    }
    all.emplace_back();
    std::memcpy(&all.back(), message.data(), sizeof(T));
  }
  return all;
}

// The document gets more members before its last brace.
void add_members(std::string& document, const std::string& members) {
  const std::size_t brace = document.rfind('}');
  if (brace == std::string::npos) return;
  const std::size_t end = document.find_last_not_of(" \n", brace - 1) + 1;
  document.replace(end, brace - end, fmt::format(",\n  {}\n", members));
}

}  // namespace

int run_together(const Program& program, Session& session, const Command& command) {
  session.ignore_cache = true;
  session.quiet = session.quiet || !session.team->is_first();
  std::string document;
  const bool is_in_document = session.rank_report && session.json && session.team->is_first();
  Output out = is_in_document ? std::exchange(session.out, Output(&document)) : Output();
  const int exit_code = command.run();
  if (session.rank_report) {
    session.out.flush();                         // before the table on stderr
    const TeamWork mine = session.team->work();  // without what this exchange sends
    const std::vector<TeamWork> work = of_all(*session.team, mine);
    if (is_in_document) {
      add_members(document, program.rank_members(work));
      session.out = std::move(out);
      session.out.write(document);
    } else if (session.team->is_first() && !session.json) {
      write_to_stderr(program.rank_table(work));
    }
  }
  return of_all(*session.team, exit_code).front();
}

Silence::Silence(Session& session) {
  if (!team_of(session.team).is_first()) session.out = Output(&forgotten_);
}

}  // namespace ballast::cli
