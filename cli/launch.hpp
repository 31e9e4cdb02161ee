// Whether this process is one of several that mpirun or srun started to do the same.
#pragma once

namespace ballast::cli {

bool is_one_of_many() noexcept;

// Throws Errc::invalid_argument if it is: each of them would write the same file. Looks at the environment alone, which
// takes no time. `has_mpi` is true in a program whose MPI knows of no other process.
void refuse_to_write_many_times(bool has_mpi = false);

}  // namespace ballast::cli
