// BLAS and LAPACK are loaded when they are first needed: OpenBLAS starts threads as soon as it is loaded, and a command
// that lists a file should not start them. Every function here runs on the calling thread alone.
#pragma once

namespace ballast::kernels {

// The C interface of BLAS.
struct Blas {
  static constexpr int kRowMajor = 101, kAsItIs = 111, kTransposed = 112;

  void (*sgemm)(int order, int a_order, int b_order, int m, int n, int k, float alpha, const float* a, int lda,
                const float* b, int ldb, float beta, float* c, int ldc);
};

// LAPACK's Fortran interface: every argument is passed by address, and matrices are column-major.
struct Lapack {
  void (*sgesdd)(const char* job, const int* m, const int* n, float* a, const int* lda, float* s, float* u,
                 const int* ldu, float* vt, const int* ldvt, float* work, const int* lwork, int* iwork, int* info);
  void (*sgelqf)(const int* m, const int* n, float* a, const int* lda, float* tau, float* work, const int* lwork,
                 int* info);
  void (*sorglq)(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau, float* work,
                 const int* lwork, int* info);
};

// Throw Errc::unsupported, with the package to install, if the library is not found.
const Blas& blas();
const Lapack& lapack();

}  // namespace ballast::kernels
