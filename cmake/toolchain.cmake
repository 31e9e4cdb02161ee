# How our own code is compiled: ballast_compile_options(TARGET) gives a target the warnings and the hardening.

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  # The kernels ask for more themselves; elsewhere -O3 only costs time to compile.
  string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

  find_program(BALLAST_CCACHE ccache)
  if(BALLAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/ccache-launcher)
  endif()
endif()

# Precompiled headers save us a quarter of the time. They also hide an include that a file forgot, so there are none in
# what clang-tidy reads; and none with other compilers, or in other people's projects that do not ask for them.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR (NOT PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_DISABLE_PRECOMPILE_HEADERS))
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# A sanitizer sees only what it was compiled into, so it goes everywhere.
if(BALLAST_SANITIZE)
  add_compile_options(-fsanitize=${BALLAST_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BALLAST_SANITIZE})
endif()

function(ballast_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wconversion -Wsign-conversion
    $<$<BOOL:${BALLAST_WERROR}>:-Werror>
    # GCC 12 sees overlaps and overflows in "a" + b that are not there, for strings a and b (its bugs 105329, 105651).
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>"
    # Its collector of garbage costs a tenth of the time, and there is memory enough.
    $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>
    -fstack-protector-strong)
  target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)

  # Fortified functions need an optimiser, and would hide calls from a sanitizer.
  if(NOT BALLAST_SANITIZE)
    target_compile_options(${target} PRIVATE
      "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
  endif()
endfunction()
