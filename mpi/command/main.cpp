// ballast-mpi: some verbs of ballast, done together by all ranks that mpirun or srun starts.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <ballast/mpi.hpp>

#include "../../cli/command_line.hpp"
#include "../../cli/interrupt.hpp"
#include "../failure.hpp"
#include "rank_team.hpp"

namespace {

constexpr std::string_view kVerbs[] = {"convert", "adapter merge", "hash", "verify", "stats"};

constexpr std::string_view kExamples =
    R"(  mpirun -n 4 ballast-mpi convert model/ half/ --dtype BF16 --max-shard-size 5GB
  srun --kill-on-bad-exit=1 -n 16 ballast-mpi adapter merge base/ my-lora/ -o merged/
)";

ballast::mpi::RankReport report_of(std::span<const ballast::TeamWork> work) {
  ballast::mpi::RankReport report;
  for (const ballast::TeamWork& one : work) {
    report.ranks.push_back(
        {.read = one.read, .sent = one.sent, .received = one.received, .written = one.written, .held = one.held});
  }
  return report;
}

std::string table_of(std::span<const ballast::TeamWork> work) { return to_string(report_of(work)); }

std::string members_of(std::span<const ballast::TeamWork> work) {
  const ballast::mpi::RankReport report = report_of(work);
  const bool counts_held = report.total().held != 0;  // the buffers of verbs that only read are not counted
  std::string text = "\"ranks\": [";
  for (const ballast::mpi::RankTraffic& rank : report.ranks) {
    text += fmt::format(R"({}{{"read": {}, "sent": {}, "received": {}, "written": {}{}}})",
                        &rank == report.ranks.data() ? "" : ", ", rank.read, rank.sent, rank.received, rank.written,
                        counts_held ? fmt::format(R"(, "held": {})", rank.held) : "");
  }
  return text + fmt::format(R"(], "imbalance": {{"read": {:.4f}, "written": {:.4f}}})",
                            report.imbalance(&ballast::mpi::RankTraffic::read),
                            report.imbalance(&ballast::mpi::RankTraffic::written));
}

// The other ranks may wait for a message of this one that will never come. After a signal they end by themselves; to
// end MPI, one would wait for all of them.
[[noreturn]] void end_the_job(const ballast::mpi::RankTeam& team, int exit_code) {
  if (ballast::cli::interrupted() != 0) _exit(exit_code);
  if (!team.is_first()) {  // which has said it
    fmt::print(stderr, "ballast: {} (on rank {} of {})\n", ballast::mpi::as_error(team.broken_by()).what(), team.rank(),
               team.size());
  }
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  _exit(exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  if (level < MPI_THREAD_FUNNELED) {
    fmt::print(stderr, "ballast-mpi: this MPI allows no threads (MPI_THREAD_FUNNELED)\n");
    MPI_Abort(MPI_COMM_WORLD, 6);
  }
  int exit_code = 0;
  {
    ballast::mpi::RankTeam team(MPI_COMM_WORLD, [] { return ballast::cli::interrupted() != 0; });
    const ballast::cli::Program program{.name = "ballast-mpi",
                                        .summary =
                                            "Converts, merges, hashes, verifies and measures checkpoints with "
                                            "all processes that mpirun or srun starts.",
                                        .examples = kExamples,
                                        .verbs = kVerbs,
                                        .team = &team,
                                        .rank_table = table_of,
                                        .rank_members = members_of};
    team.serve([&] { exit_code = ballast::cli::run(argc, argv, program); });
    if (team.broken_by() != nullptr) end_the_job(team, exit_code);
  }
  MPI_Finalize();
  return exit_code;
}
