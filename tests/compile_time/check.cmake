# SPDX-License-Identifier: Apache-2.0
# Prints what a compiler needs for a source, in milliseconds of processor time, and the budget that the source names:
#
#   cmake -D SOURCE=umbrella.cpp -D COMPILER=g++ -D INCLUDE=include -D BASH=bash -P check.cmake
#
#   // budget: 900 ms                        for the whole of it
#   // budget: 2000 ms beyond the includes   for it, less what its includes alone need
#
# The least of up to three attempts counts; there is only one where the budget is met by a good margin. Fails where the
# source does not compile, or needs three times its budget: machines differ, but not by that.
cmake_minimum_required(VERSION 3.25)

file(STRINGS "${SOURCE}" budget REGEX "^// budget: [0-9]+ ms( beyond the includes)?$")
if(NOT budget MATCHES "([0-9]+) ms( beyond the includes)?")
  message(FATAL_ERROR "${SOURCE}: no budget; add a line \"// budget: 100 ms\"")
endif()
set(budget ${CMAKE_MATCH_1})
set(beyond "${CMAKE_MATCH_2}")

# measure(RESULT ARGUMENTS...): one compilation, in milliseconds.
function(measure result)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C "${BASH}" -c "TIMEFORMAT='spent %3U'; time \"$@\"" bash
            "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE}" ${ARGN}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0 OR NOT output MATCHES "spent ([0-9]+)\\.([0-9][0-9][0-9])")
    message(FATAL_ERROR "${SOURCE} does not compile with ${COMPILER}:\n${output}")
  endif()
  set(seconds ${CMAKE_MATCH_1})
  string(REGEX REPLACE "^0+([0-9])" "\\1" milliseconds "${CMAKE_MATCH_2}")
  math(EXPR spent "${seconds} * 1000 + ${milliseconds}")
  set(${result} ${spent} PARENT_SCOPE)
endfunction()

# The includes alone, given on the command line before an empty source.
set(includes "")
if(beyond)
  file(STRINGS "${SOURCE}" lines REGEX "^#include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"(.*)\"$" "\\1" header "${line}")
    list(APPEND includes -include "${header}")
  endforeach()
endif()

set(least "")
foreach(attempt RANGE 2)
  measure(whole "${SOURCE}")
  set(spent ${whole})
  if(beyond)
    measure(before ${includes} -x c++ /dev/null)
    math(EXPR spent "${whole} - ${before}")
  endif()
  if("${least}" STREQUAL "" OR spent LESS least)
    set(least ${spent})
    set(least_whole ${whole})
  endif()
  math(EXPR most "${budget} * 7 / 10")
  if(least LESS most)
    break()
  endif()
endforeach()

cmake_path(GET SOURCE STEM name)
cmake_path(GET COMPILER FILENAME compiler)
if(least GREATER budget)
  set(verdict "over it")
else()
  set(verdict "within")
endif()
if(beyond)
  set(beyond " beyond its includes (${least_whole} ms in all)")
endif()
message(STATUS "${name}, ${compiler}: ${least} ms of processor time${beyond}, budget ${budget} ms: ${verdict}")
math(EXPR most "${budget} * 3")
if(least GREATER most)
  message(FATAL_ERROR "${name} needs more than three times its budget with ${compiler}")
endif()
