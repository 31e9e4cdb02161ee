# What the library itself links. The command, the tests and the benchmarks ask for what they need where they are built.
# cmake/ballastConfig.cmake.in and cmake/ballast.pc.in repeat this list for those who use an installed Ballast.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(hwy REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
# libcurl is loaded at run time, so only its header is needed.
find_path(BALLAST_CURL_INCLUDE curl/curl.h REQUIRED)
mark_as_advanced(BALLAST_CURL_INCLUDE)
# These have no CMake package in Debian.
find_package(PkgConfig REQUIRED)
pkg_check_modules(deflate REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)

if(BALLAST_BUILD_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE)  # we use the interface of C; that of C++ is gone from the standard
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
