# SPDX-License-Identifier: Apache-2.0
# Rules of `cmake --install`: the library, its headers, a CMake package and a pkg-config file; the
# binary and its systemd unit.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tidegate)

install(TARGETS tidegate tidegate_headers EXPORT tidegate_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tidegate_targets NAMESPACE tidegate:: DESTINATION ${package_dir})
if(TIDEGATE_CLI)
  install(TARGETS tidegate_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # systemd looks for units in this folder below /usr and /usr/local. The unit names the binary by
  # its full path.
  file(READ ${PROJECT_SOURCE_DIR}/deploy/systemd/tidegate.service unit)
  string(REPLACE "ExecStart=/usr/local/bin/" "ExecStart=${CMAKE_INSTALL_FULL_BINDIR}/" unit "${unit}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tidegate.service CONTENT "${unit}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/deploy/systemd/tidegate.service)
  install(FILES ${PROJECT_BINARY_DIR}/tidegate.service DESTINATION lib/systemd/system)
endif()

configure_package_config_file(cmake/tidegate-config.cmake.in tidegate-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tidegate-config-version.cmake COMPATIBILITY SameMinorVersion)
# The .pc file finds the prefix relative to its own location, so that it stays correct with `cmake
# --install --prefix` and for a package that is moved afterwards.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tidegate.pc.in tidegate.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tidegate-config.cmake
              ${PROJECT_BINARY_DIR}/tidegate-config-version.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/tidegate.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
