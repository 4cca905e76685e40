# SPDX-License-Identifier: Apache-2.0
# Checks one refusal with one compiler:
#
#   cmake -D SOURCE=case.cpp -D FAMILY=g++ -D COMPILER=/usr/bin/g++ -D INCLUDE=include -P check.cmake
#
# The source has two variants:
#
#   // expect: nonlinear_function_of_Partial<tp>
#   #ifdef MESHWISE_MUST_NOT_COMPILE
#     gelu(partial);                             the mistake
#   #else
#     gelu(convert<Replicate<tp>>(partial));     the twin: what the error tells the user to write
#   #endif
#
# The mistake must not compile, the compiler's first error must stand in the source itself (not in a header), and its
# text must match every expectation, a CMake regular expression. "// note: REGEX" is for what may stand in the lines
# that explain the first error instead. Where compilers differ, "expect(g++):" and "expect(clang++):" are for one of
# them. Before the comparison "meshwise::" is left out and brackets are closed as in ">>". The twin must compile without
# a warning.
#
# With -D COMMON=common.hpp the compiler reads that header first, in its precompiled form common.hpp.gch or .pch, which
#
#   cmake -D PRECOMPILE=common.hpp -D OUTPUT=common.hpp.gch -D DEPENDENCIES=common.hpp.d -D FAMILY=... -P check.cmake
#
# has written.
cmake_minimum_required(VERSION 3.25)

if(FAMILY STREQUAL "clang++")
  set(family_flags -ferror-limit=1)
elseif(FAMILY STREQUAL "g++")
  set(family_flags -fmax-errors=1)
else()
  message(FATAL_ERROR "FAMILY is g++ or clang++, not \"${FAMILY}\"")
endif()
set(command "${COMPILER}" -std=c++20 -fno-diagnostics-color ${family_flags} -Wall -Wextra)
if(INCLUDE)
  list(APPEND command "-I${INCLUDE}")
endif()
set(ENV{LC_ALL} C)  # plain quotes in the diagnostics

if(PRECOMPILE)
  execute_process(
    COMMAND ${command} -x c++-header "${PRECOMPILE}" -o "${OUTPUT}" -MD -MF "${DEPENDENCIES}" -MT "${OUTPUT}"
    COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()
list(APPEND command -fsyntax-only)
if(COMMON AND FAMILY STREQUAL "clang++")
  list(APPEND command -include-pch "${COMMON}.pch")
elseif(COMMON)
  list(APPEND command -Winvalid-pch -include "${COMMON}")
endif()

include("${CMAKE_CURRENT_LIST_DIR}/expectations.cmake")
read_expectations("${SOURCE}" "${FAMILY}")
if(expectations EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: no expectation; add a line \"// expect: REGEX\" for ${COMPILER}")
endif()

execute_process(COMMAND ${command} -DMESHWISE_MUST_NOT_COMPILE "${SOURCE}"
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: the mistake compiles with ${COMPILER}")
endif()
if(NOT output MATCHES "([^\n]*): (fatal )?error: ([^\n]*)")
  message(FATAL_ERROR "${SOURCE}: ${COMPILER} failed without an error line:\n${output}")
endif()
set(place "${CMAKE_MATCH_1}")
set(text "${CMAKE_MATCH_3}")
string(LENGTH "${SOURCE}:" length)
string(SUBSTRING "${place}" 0 ${length} file)
if(NOT file STREQUAL "${SOURCE}:")
  message(FATAL_ERROR "${SOURCE}: the first error stands elsewhere, not at the user's line:\n${output}")
endif()
normalise("${text}" text)
normalise("${output}" notes)
math(EXPR last "${expectations} - 1")
foreach(i RANGE ${last})
  if(place_${i} STREQUAL "expect" AND NOT text MATCHES "${expected_${i}}")
    message(FATAL_ERROR "${SOURCE}: the first error does not match\n  ${expected_${i}}\nit is\n  ${text}\n\n${output}")
  elseif(place_${i} STREQUAL "note" AND NOT notes MATCHES "${expected_${i}}")
    message(FATAL_ERROR "${SOURCE}: nothing about the first error matches\n  ${expected_${i}}\n\n${output}")
  endif()
endforeach()

execute_process(COMMAND ${command} -Werror "${SOURCE}"
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: the twin does not compile with ${COMPILER}:\n${output}")
endif()
message(STATUS "first error: ${text}")
