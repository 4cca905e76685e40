# SPDX-License-Identifier: Apache-2.0
# Prints what a compiler needs for a source, in milliseconds of processor time, the least of three, and the budget:
#
#   cmake -D SOURCE=umbrella.cpp -D COMPILER=g++ -D INCLUDE=include -D BASH=bash -P check.cmake
#
# The source names its budget: "// budget: 900 ms". Fails only where it does not compile.
cmake_minimum_required(VERSION 3.25)

file(STRINGS "${SOURCE}" budget REGEX "^// budget: [0-9]+ ms$")
if(NOT budget MATCHES "([0-9]+)")
  message(FATAL_ERROR "${SOURCE}: no budget; add a line \"// budget: 100 ms\"")
endif()
set(budget ${CMAKE_MATCH_1})

set(least "")
foreach(attempt RANGE 2)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C "${BASH}" -c "TIMEFORMAT='spent %3U'; time \"$@\"" bash
            "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE}" "${SOURCE}"
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0 OR NOT output MATCHES "spent ([0-9]+)\\.([0-9][0-9][0-9])")
    message(FATAL_ERROR "${SOURCE} does not compile with ${COMPILER}:\n${output}")
  endif()
  set(seconds ${CMAKE_MATCH_1})
  string(REGEX REPLACE "^0+([0-9])" "\\1" milliseconds "${CMAKE_MATCH_2}")
  math(EXPR spent "${seconds} * 1000 + ${milliseconds}")
  if("${least}" STREQUAL "" OR spent LESS least)
    set(least ${spent})
  endif()
endforeach()

cmake_path(GET SOURCE STEM name)
cmake_path(GET COMPILER FILENAME compiler)
if(least GREATER budget)
  set(verdict "over it")
else()
  set(verdict "within")
endif()
message(STATUS "${name}, ${compiler}: ${least} ms of processor time, budget ${budget} ms: ${verdict}")
