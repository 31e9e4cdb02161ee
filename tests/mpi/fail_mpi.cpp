// A library for LD_PRELOAD in which the n-th exchange of ballast-mpi fails, n being BALLAST_FAIL_EXCHANGE: MPI lets a
// program put its own functions before those of the library.
#include <mpi.h>

#include <cstdlib>

extern "C" int MPI_Iallgather(const void* out, int sends, MPI_Datatype send_type, void* in, int receives,
                              MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  static int calls = 0;
  const char* const failing = std::getenv("BALLAST_FAIL_EXCHANGE");
  if (failing != nullptr && ++calls == std::atoi(failing)) return MPI_ERR_OTHER;
  return PMPI_Iallgather(out, sends, send_type, in, receives, receive_type, comm, request);
}
