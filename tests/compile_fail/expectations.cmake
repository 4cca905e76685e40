# SPDX-License-Identifier: Apache-2.0
# What check.cmake and group.cmake know about cases and compilers alike.

# read_expectations(SOURCE FAMILY): sets `expectations` to their number, and place_I and expected_I.
function(read_expectations source family)
  file(STRINGS "${source}" lines REGEX "^ *// (expect|note)(\\([a-z+]+\\))?: ")
  set(number 0)
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^ *// (expect|note)(\\(([a-z+]+)\\))?: (.+)$" line "${line}")
    set(place "${CMAKE_MATCH_1}")
    set(only "${CMAKE_MATCH_3}")
    set(expected "${CMAKE_MATCH_4}")
    if("${only}" STREQUAL "" OR "${only}" STREQUAL "${family}")
      string(REGEX REPLACE " +$" "" expected "${expected}")
      set(place_${number} "${place}" PARENT_SCOPE)
      set(expected_${number} "${expected}" PARENT_SCOPE)
      math(EXPR number "${number} + 1")
    endif()
  endforeach()
  set(expectations ${number} PARENT_SCOPE)
endfunction()

# normalise(TEXT RESULT): compilers spell names and brackets differently.
function(normalise text result)
  string(REPLACE "meshwise::" "" text "${text}")
  string(REPLACE "> >" ">>" text "${text}")
  string(REPLACE "> >" ">>" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()
