# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: the library, its headers, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tidegate)

install(TARGETS tidegate tidegate_headers EXPORT tidegate_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tidegate_targets NAMESPACE tidegate:: DESTINATION ${package_dir})
if(TIDEGATE_CLI)
  install(TARGETS tidegate_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/tidegate-config.cmake.in tidegate-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tidegate-config-version.cmake COMPATIBILITY SameMinorVersion)
# The .pc file finds the prefix from its own place, so that `cmake --install --prefix` and a
# package that is moved afterwards stay right.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tidegate.pc.in tidegate.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tidegate-config.cmake
              ${PROJECT_BINARY_DIR}/tidegate-config-version.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/tidegate.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
