# SPDX-License-Identifier: Apache-2.0
# Installs BUILD into a new prefix under WORK, builds EXAMPLE against that prefix alone, with CMake
# or with a plain call of the compiler (WAY), and runs it.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

file(STRINGS ${prefix}/lib/systemd/system/tidegate.service start REGEX "^ExecStart=/.*/tidegate serve ")
if(NOT start)
  message(FATAL_ERROR "the installed unit of systemd does not start the binary by its full path")
endif()

# Each installed header must compile on its own as C++20.
file(GLOB headers RELATIVE ${prefix}/include ${prefix}/include/tidegate/*.hpp)
foreach(header ${headers})
  file(WRITE ${WORK}/header.cpp "#include <${header}>\n")
  run(${CXX} -std=c++20 -Wall -Wextra -Wpedantic -Werror -I${prefix}/include -fsyntax-only ${WORK}/header.cpp)
endforeach()

if(WAY STREQUAL "cmake")
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${EXAMPLE} -B ${WORK}/build
      -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX}
      -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  # find_package() must not find a tidegate that is installed elsewhere on this machine.
  file(STRINGS ${WORK}/build/CMakeCache.txt found REGEX "^tidegate_DIR:PATH=${prefix}/")
  if(NOT found)
    message(FATAL_ERROR "find_package(tidegate) did not take the one in ${prefix}")
  endif()
  run(${CMAKE_COMMAND} --build ${WORK}/build)
  run(${WORK}/build/embed)
else()
  # PKG_CONFIG_LIBDIR replaces the system's folders instead of adding to them.
  set(ENV{PKG_CONFIG_LIBDIR} ${prefix}/${LIBDIR}/pkgconfig)
  run(pkg-config --cflags --libs tidegate)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${CXX} ${EXAMPLE}/main.cpp ${flags} -o ${WORK}/embed)
  run(${WORK}/embed)
endif()

foreach(word allowed denied)
  if(NOT output MATCHES ": ${word}, ")
    message(FATAL_ERROR "the example has no ${word} decision:\n${output}")
  endif()
endforeach()
