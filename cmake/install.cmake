# What is installed, in components: library, command, completions and pages are what `cmake --install` puts under a prefix.
# The packages have some of them, and some of their own: see package.cmake.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ballast)

install(TARGETS ballast EXPORT ballastTargets COMPONENT library FILE_SET HEADERS COMPONENT library)
install(EXPORT ballastTargets NAMESPACE ballast:: DESTINATION ${package_dir} COMPONENT library)
if(TARGET ballast_mpi)
  install(TARGETS ballast_mpi EXPORT ballastMpiTargets COMPONENT library FILE_SET HEADERS COMPONENT library)
  install(EXPORT ballastMpiTargets NAMESPACE ballast:: DESTINATION ${package_dir} COMPONENT library)
endif()
configure_package_config_file(cmake/ballastConfig.cmake.in ${PROJECT_BINARY_DIR}/ballastConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ballastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ballastConfig.cmake ${PROJECT_BINARY_DIR}/ballastConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT library)

# The .pc file finds its prefix from where it lies, so that an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  OUTPUT_VARIABLE pc_to_prefix)
configure_file(cmake/ballast.pc.in ${PROJECT_BINARY_DIR}/ballast.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ballast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT pages)

# The command itself writes its completions, as they are installed: install_completion(SHELL FILE COMPONENT [EXCLUDE_FROM_ALL])
function(install_completion shell file component)
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  cmake_path(GET file FILENAME name)
  cmake_path(GET file PARENT_PATH folder)
  set(made ${PROJECT_BINARY_DIR}/completions/${shell})
  install(CODE "
    file(MAKE_DIRECTORY \"${made}\")
    execute_process(COMMAND \"$<TARGET_FILE:ballast_cli>\" completion ${shell}
      OUTPUT_FILE \"${made}/${name}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT ${component} ${ARGN})
  install(FILES ${made}/${name} DESTINATION ${folder} COMPONENT ${component} ${ARGN})
endfunction()

if(TARGET ballast_cli)
  install(TARGETS ballast_cli COMPONENT command)
  install(FILES docs/ballast.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT pages)
  install_completion(bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions/ballast completions)
  install_completion(fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/ballast.fish completions)
  install_completion(zsh ${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_ballast pages)
endif()
