# SPDX-License-Identifier: Apache-2.0
# Checks several cases with one compiler at once, since most of what a case costs is reading the headers:
#
#   cmake -D "SOURCES=a.cpp|b.cpp" -D ROOT=tests -D OUTPUT=unit.cpp -D FAMILY=g++ -D COMPILER=/usr/bin/g++
#         -D INCLUDE=include [-D COMMON=common.hpp] -P group.cmake
#
# See check.cmake for what is checked. All twins stand in one translation unit, and all mistakes in another one, which has
# an error for each. A mistake passes if the first error at its own lines is the expected one and none stands in a header
# before that. Whichever does not pass so is checked by itself: that alone is a failure.
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/../support/unite.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/expectations.cmake")
set(ENV{LC_ALL} C)  # plain quotes in the diagnostics
set(command "${COMPILER}" -std=c++20 -fno-diagnostics-color -Wall -Wextra -fsyntax-only "-I${INCLUDE}" "${OUTPUT}")
if(FAMILY STREQUAL "clang++")
  set(all_errors -ferror-limit=0 -fno-caret-diagnostics)
else()
  set(all_errors -fmax-errors=0 -fno-diagnostics-show-caret)
endif()

execute_process(COMMAND ${command} -Werror RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(SEND_ERROR "a twin does not compile with ${COMPILER}:\n${output}")
endif()

execute_process(COMMAND ${command} ${all_errors} -DMESHWISE_MUST_NOT_COMPILE
  OUTPUT_VARIABLE output ERROR_VARIABLE output)
set(output "\n${output}")  # so that every line has a beginning
set(by_itself "")
foreach(source IN LISTS SOURCES)
  set(good TRUE)
  string(REGEX REPLACE "([][+.*()^$?|\\\\])" "\\\\\\1" pattern "${source}")
  if(NOT output MATCHES "\n${pattern}:[0-9]+:[0-9]+: error: ([^\n]*)")
    set(good FALSE)
  else()
    normalise("${CMAKE_MATCH_1}" text)
    string(FIND "${output}" "${CMAKE_MATCH_0}" place)
    string(SUBSTRING "${output}" 0 ${place} before)
    string(REGEX REPLACE "\n[^\n:]*[.]cpp:[^\n]*" "" before "${before}")
    if(before MATCHES ": (fatal )?error: ")
      set(good FALSE)
    endif()
  endif()
  read_expectations("${source}" "${FAMILY}")
  if(expectations EQUAL 0)
    set(good FALSE)
  endif()
  set(i 0)
  while(good AND i LESS expectations)
    if(NOT place_${i} STREQUAL "expect" OR NOT text MATCHES "${expected_${i}}")
      set(good FALSE)
    endif()
    math(EXPR i "${i} + 1")
  endwhile()
  cmake_path(GET source STEM name)
  if(good)
    message(STATUS "${name}: ${text}")
  else()
    list(APPEND by_itself "${source}")
  endif()
endforeach()

foreach(source IN LISTS by_itself)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -D "SOURCE=${source}" -D "FAMILY=${FAMILY}" -D "COMPILER=${COMPILER}"
            -D "INCLUDE=${INCLUDE}" -D "COMMON=${COMMON}" -P "${CMAKE_CURRENT_LIST_DIR}/check.cmake"
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  cmake_path(GET source STEM name)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${output}")
  else()
    message(STATUS "${name}, by itself: ${output}")
  endif()
endforeach()
