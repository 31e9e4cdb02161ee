# What the packages have. cmake/make_packages makes them of these components:
#
#   the tarball   portable, completions, pages
#   the .deb      command, completions, debian
if(NOT TARGET ballast_portable)
  return()
endif()

set(BALLAST_PACKAGE_CONTACT "The authors of Ballast <ballast@example.invalid>" CACHE STRING "Who maintains the packages")
set(made ${PROJECT_BINARY_DIR}/package)

# package_script(COMPONENT SCRIPT): what SCRIPT makes, as it is installed.
function(package_script component script)
  install(CODE "
    set(source \"${PROJECT_SOURCE_DIR}\")
    set(made \"${made}\")
    set(version \"${PROJECT_VERSION}\")
    set(contact \"${BALLAST_PACKAGE_CONTACT}\")"
    COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(SCRIPT cmake/package/${script} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# package_files(COMPONENT DESTINATION FILE…)
function(package_files component destination)
  install(FILES ${ARGN} DESTINATION ${destination} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# The tarball carries every shared library that the command needs, except those of glibc, which must be the system's.
# If archives of all of them were found (cli/CMakeLists.txt), there is none to carry.
install(TARGETS ballast_portable RUNTIME_DEPENDENCY_SET carried COMPONENT portable EXCLUDE_FROM_ALL)
install(RUNTIME_DEPENDENCY_SET carried
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv)\\.so"
  LIBRARY DESTINATION lib COMPONENT portable EXCLUDE_FROM_ALL)
package_script(portable licences.cmake)
package_files(portable share/doc/ballast ${made}/copyright CHANGELOG.md)

# Debian wants its own places, compressed pages, and a changelog in its own format.
package_script(debian licences.cmake)
package_script(debian debian.cmake)
package_files(debian share/doc/ballast ${made}/copyright ${made}/changelog.gz)
package_files(debian share/man/man1 ${made}/ballast.1.gz)
package_files(debian share/lintian/overrides ${made}/overrides/ballast)
install_completion(zsh share/zsh/vendor-completions/_ballast debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_INSTALL_CMAKE_PROJECTS "")
foreach(component command completions debian)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${PROJECT_BINARY_DIR} ballast ${component} /)
endforeach()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME ballast)
set(CPACK_PACKAGE_VENDOR Ballast)
set(CPACK_PACKAGE_CONTACT ${BALLAST_PACKAGE_CONTACT})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "look into, compare and convert model checkpoints")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Ballast opens model checkpoints (safetensors, PyTorch, GGUF, NumPy; sharded or
not; on this machine, on the Hugging Face Hub or behind an address) lazily and
safely: it reads as little as the question needs, runs nothing that a file
brings along, and converts in bounded memory.

libcurl is loaded for checkpoints elsewhere, and OpenBLAS to merge adapters;
the rest needs neither.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4, libopenblas0")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
