#include "kernels/linear/blas.hpp"

#include <ballast/error.hpp>

#include "core/shared_library.hpp"

namespace ballast::kernels {
namespace {

constexpr const char* kOpenBlas = "libopenblas.so.0";

// OpenBLAS has both BLAS and LAPACK. If it is not installed, the system's default libraries for each are loaded.
SharedLibrary load(const char* what, const char* otherwise) {
  try {
    return SharedLibrary(kOpenBlas, what);
  } catch (const Error& error) {
    try {
      return SharedLibrary(otherwise, what);
    } catch (const Error&) {
      throw Error(error.code(), error.message()).hint("install OpenBLAS; Debian's package is libopenblas0");
    }
  }
}

// Our own threads divide the work already.
void use_one_thread(const SharedLibrary& library) {
  void (*set_threads)(int) = nullptr;
  library.find_if_there(set_threads, "openblas_set_num_threads");
  if (set_threads != nullptr) set_threads(1);
}

Blas find_blas() {
  const SharedLibrary library = load("BLAS", "libblas.so.3");
  use_one_thread(library);
  Blas found{};
  library.find(found.sgemm, "cblas_sgemm");
  return found;
}

Lapack find_lapack() {
  const SharedLibrary library = load("LAPACK", "liblapack.so.3");
  use_one_thread(library);
  Lapack found{};
  library.find(found.sgesdd, "sgesdd_");
  library.find(found.sgelqf, "sgelqf_");
  library.find(found.sorglq, "sorglq_");
  return found;
}

}  // namespace

const Blas& blas() {
  static const Blas found = find_blas();
  return found;
}

const Lapack& lapack() {
  static const Lapack found = find_lapack();
  return found;
}

}  // namespace ballast::kernels
