# SPDX-License-Identifier: Apache-2.0
# Writes one translation unit that holds several test files:
#
#   cmake -D OUTPUT=unit.cpp -D ROOT=tests -D "SOURCES=tests/a/x.cpp|tests/a/y.cpp" -P unite.cmake
#
# What the files instantiate alike is then compiled once. Every file keeps its lines and its name in messages, and its
# names to itself: its includes are moved to the top, and a file without a namespace of its own is put into one; in the
# others it is the unnamed namespaces that become the file's own.
cmake_minimum_required(VERSION 3.25)

string(REPLACE "|" ";" SOURCES "${SOURCES}")
set(includes "")
set(bodies "")
foreach(source IN LISTS SOURCES)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE name)
  string(MAKE_C_IDENTIFIER "in_${name}" name)
  file(READ "${source}" text)
  set(text "\n${text}")  # so that every line has a beginning

  string(REGEX MATCHALL "\n#include [<\"][^>\"]+[>\"]" lines "${text}")
  foreach(line IN LISTS lines)
    string(STRIP "${line}" line)
    if(line MATCHES "\"(.+)\"")
      cmake_path(ABSOLUTE_PATH CMAKE_MATCH_1 BASE_DIRECTORY "${folder}" NORMALIZE OUTPUT_VARIABLE file)
      if(EXISTS "${file}")
        set(line "#include \"${file}\"")
      endif()
    endif()
    list(APPEND includes "${line}")
  endforeach()
  string(REGEX REPLACE "\n#include [^\n]*" "\n" text "${text}")

  if(text MATCHES "\nnamespace [a-z]")
    # What stands behind the unnamed namespace may use its names.
    set(visible "")
    if(NOT text MATCHES "\n}  // namespace\n+}  // namespace [a-z_:]+\n+$")
      set(visible "namespace ${name} {} using namespace ${name}; ")
    endif()
    string(REPLACE "\nnamespace {" "\n${visible}namespace ${name} {" text "${text}")
    string(APPEND bodies "\n#line 1 \"${source}\"${text}")
  else()
    string(APPEND bodies "\nnamespace ${name} {\n#line 1 \"${source}\"${text}\n}\n")
  endif()
endforeach()
list(REMOVE_DUPLICATES includes)
list(JOIN includes "\n" includes)
file(WRITE "${OUTPUT}" "${includes}\n${bodies}")
