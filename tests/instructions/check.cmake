# SPDX-License-Identifier: Apache-2.0
# Counts instructions of conversions and collectives and compares them:
#
#   cmake -D VALGRIND=valgrind -D PROGRAM=test_instructions -D FOLDER=a/new/folder -P check.cmake
#
# Prints, for each conversion and size, instructions per call of the collective, of the conversion and of allocating its
# result, and (conversion - allocation) / collective. That must be at most 1.02 from 64 KiB on.
cmake_minimum_required(VERSION 3.25)
set(least_bytes 65536)
set(most 10200)  # ratios are in units of 1/10000

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(
  COMMAND "${VALGRIND}" --tool=callgrind --collect-atstart=no "--toggle-collect=measured::*"
          "--callgrind-out-file=${FOLDER}/dump" "${PROGRAM}"
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} under callgrind ended with ${code}:\n${output}")
endif()

# One dump for each measurement, in order; numbered names sort as numbers do.
file(GLOB dumps "${FOLDER}/dump.*")
list(SORT dumps COMPARE NATURAL)
set(keys "")
foreach(dump IN LISTS dumps)
  file(STRINGS "${dump}" lines REGEX "^(desc: Trigger: Client Request|summary): ")
  if(NOT "${lines}" MATCHES "Client Request: ([a-z_]+) ([0-9]+) ([a-z]+) ([0-9]+);summary: ([0-9]+)")
    continue()  # the rest, when the program has ended
  endif()
  math(EXPR per_call "${CMAKE_MATCH_5} / ${CMAKE_MATCH_4}")
  set("${CMAKE_MATCH_1}/${CMAKE_MATCH_2}/${CMAKE_MATCH_3}" ${per_call})
  list(APPEND keys "${CMAKE_MATCH_1}/${CMAKE_MATCH_2}")
endforeach()
list(REMOVE_DUPLICATES keys)
if(NOT keys)
  message(FATAL_ERROR "callgrind has measured nothing:\n${output}")
endif()

macro(column text width)
  set(cell "${text}")
  string(LENGTH "${cell}" length)
  while(length LESS ${width})
    string(PREPEND cell " ")
    math(EXPR length "${length} + 1")
  endwhile()
  string(APPEND row "${cell}")
endmacro()

macro(print first second third fourth fifth sixth)
  set(row "")
  column("${first}" 24)
  column("${second}" 10)
  column("${third}" 12)
  column("${fourth}" 12)
  column("${fifth}" 12)
  column("${sixth}" 8)
  message("${row}")
endmacro()

message("instructions per call")
print(conversion bytes collective conversion allocation ratio)
set(failed "")
foreach(key IN LISTS keys)
  string(REGEX MATCH "^([a-z_]+)/([0-9]+)$" key "${key}")
  set(name "${CMAKE_MATCH_1}")
  set(bytes "${CMAKE_MATCH_2}")
  foreach(what IN ITEMS collective conversion)
    if(NOT "${${key}/${what}}" GREATER 0)
      message(FATAL_ERROR "callgrind has not measured the ${what} of ${key}:\n${output}")
    endif()
  endforeach()
  set(collective "${${key}/collective}")
  set(conversion "${${key}/conversion}")
  set(allocation 0)  # in place
  if(DEFINED "${key}/allocation")
    set(allocation "${${key}/allocation}")
  endif()
  math(EXPR ratio "(${conversion} - ${allocation}) * 10000 / ${collective}")
  math(EXPR whole "${ratio} / 10000")
  math(EXPR decimals "10000 + ${ratio} % 10000")
  string(SUBSTRING "${decimals}" 1 4 decimals)
  print("${name}" ${bytes} ${collective} ${conversion} ${allocation} "${whole}.${decimals}")
  if(bytes GREATER_EQUAL least_bytes AND ratio GREATER most)
    string(APPEND failed "  ${key}: ${whole}.${decimals}\n")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "a conversion costs more than 2 % over its collective:\n${failed}")
endif()
