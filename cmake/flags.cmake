# SPDX-License-Identifier: Apache-2.0
# The one place for compiler flags.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "Tidegate needs GCC 12 or later for <expected>; this is GCC "
    "${CMAKE_CXX_COMPILER_VERSION}. Name a newer one with -DCMAKE_CXX_COMPILER=.")
endif()

add_library(tidegate_warnings INTERFACE)
target_compile_options(tidegate_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow $<$<BOOL:${TIDEGATE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of a plain `"a" + std::to_string(n)` (its bug 105651).
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
  # Clang implements what libstdc++'s <expected> asks for before it says so.
  add_compile_options(-U__cpp_concepts -D__cpp_concepts=202002L -Wno-builtin-macro-redefined)
endif()

find_program(CCACHE ccache)
if(CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Several small files are compiled as one: they share most of what they include, which is most of the
# work. The builds of debug and lint go file by file: there each must name what it needs, and there
# is no other file whose names it could clash with.
if(CMAKE_UNITY_BUILD)
  target_compile_options(tidegate_warnings INTERFACE -Wno-shadow
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
