# SPDX-License-Identifier: Apache-2.0
# All compiler flags are defined here.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "Tidegate needs GCC 12 or later for <expected>; this is GCC "
    "${CMAKE_CXX_COMPILER_VERSION}. Name a newer one with -DCMAKE_CXX_COMPILER=.")
endif()

add_library(tidegate_warnings INTERFACE)
target_compile_options(tidegate_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow $<$<BOOL:${TIDEGATE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports a false warning for a plain `"a" + std::to_string(n)` (its bug 105651).
  target_compile_options(tidegate_warnings INTERFACE -Wno-restrict)
endif()

if(TIDEGATE_SANITIZE)
  add_compile_options(-fsanitize=${TIDEGATE_SANITIZE} -fno-omit-frame-pointer)
  if(TIDEGATE_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  add_link_options(-fsanitize=${TIDEGATE_SANITIZE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  # Clang implements the features that libstdc++'s <expected> checks for, but this version does not
  # report them.
  add_compile_options(-U__cpp_concepts -D__cpp_concepts=202002L -Wno-builtin-macro-redefined)
endif()

find_program(CCACHE ccache)
if(CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Several small files are compiled as one: they share most of what they include, which is most of
# the work of the compiler. The builds `debug` and `lint` compile each file on its own, so that each
# file must include what it uses and names of different files cannot clash.
if(CMAKE_UNITY_BUILD)
  target_compile_options(tidegate_warnings INTERFACE -Wno-shadow
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
