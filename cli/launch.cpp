#include "launch.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <ballast/error.hpp>

namespace ballast::cli {
namespace {

struct Launcher {
  std::string_view name;
  const char* processes;  // the variable that says how many there are
  const char* process;    // the variable that only such a process has
};

// A shell in an allocation of Slurm has SLURM_NTASKS and SLURM_PROCID, too; only a process of a step knows the step's
// number of tasks.
constexpr Launcher kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
    {"mpiexec", "PMI_SIZE", "PMI_RANK"},
};

unsigned number_in(const char* variable) {
  const char* text = std::getenv(variable);
  unsigned number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

// What started this process together with others; null if nothing did.
const Launcher* launcher_of_many() noexcept {
  for (const Launcher& launcher : kLaunchers) {
    if (number_in(launcher.processes) >= 2 && std::getenv(launcher.process) != nullptr) return &launcher;
  }
  return nullptr;
}

}  // namespace

bool is_one_of_many() noexcept { return launcher_of_many() != nullptr; }

void refuse_to_write_many_times(bool has_mpi) {
  const Launcher* const launcher = launcher_of_many();
  if (launcher == nullptr) return;
  throw Error(Errc::invalid_argument,
              fmt::format("{} started {} processes of ballast, and each of them would write the same", launcher->name,
                          number_in(launcher->processes)))
      .hint(has_mpi
                ? "MPI knows of one process only: start ballast-mpi by the mpirun of its own MPI, or by srun --mpi=pmix"
                : fmt::format("ballast-mpi writes it together: convert, adapter merge; for one process, start "
                              "ballast without {}",
                              launcher->name));
}

}  // namespace ballast::cli
