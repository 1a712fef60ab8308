# SPDX-License-Identifier: Apache-2.0
# cmake -DEXIT=CODE -DREGEX=... -P run.cmake -- PROGRAM ARGUMENTS...: fails unless PROGRAM exits
# with CODE and its output matches REGEX.
cmake_minimum_required(VERSION 3.25)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(DEFINED started)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(started ON)
  endif()
endforeach()

execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT result STREQUAL EXIT)
  message(FATAL_ERROR "exit code ${result} instead of ${EXIT}:\n${out}")
endif()
if(NOT out MATCHES "${REGEX}")
  message(FATAL_ERROR "nothing matches ${REGEX} in:\n${out}")
endif()
