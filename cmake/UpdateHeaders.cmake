# SPDX-License-Identifier: Apache-2.0
# Derives cmake/MeshwiseHeaders.cmake and the umbrella include/meshwise/meshwise.hpp from the tree.
#
#   cmake -P cmake/UpdateHeaders.cmake             rewrites both files when they differ
#   cmake -D CHECK=ON -P cmake/UpdateHeaders.cmake changes nothing and fails when they differ
cmake_minimum_required(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)

# The floors of the house from the ground up: the order of the umbrella.
set(floors core topology schedule trace fabric collective bootstrap layout mesh tensor train parallel planner)
# The floors that programs on tensors and collectives do not name: algorithms, for who chooses, writes or proves one,
# meters, and what starts ranks, for the file with the main function. They are not in the umbrella.
set(workshop schedule trace bootstrap)
# Folders of these names, wherever they stand, hold a back end: a component of its own, never in the umbrella.
set(components blas)

file(GLOB_RECURSE headers RELATIVE "${root}/include" "${root}/include/meshwise/*.hpp" "${root}/include/meshwise/*.inc")
list(SORT headers)
set(core_headers meshwise/meshwise.hpp)
foreach(component IN LISTS components)
  set(${component}_headers "")
endforeach()
set(problems "")

foreach(header IN LISTS headers)
  set(owner core)
  foreach(component IN LISTS components)
    if(header MATCHES "/${component}/")
      set(owner ${component})
    endif()
  endforeach()
  list(APPEND ${owner}_headers "${header}")
  if(owner STREQUAL "core" AND header MATCHES "^meshwise/([^/]+)/" AND NOT CMAKE_MATCH_1 IN_LIST floors)
    string(APPEND problems "  ${header}: the folder ${CMAKE_MATCH_1}/ is neither a floor nor a component;"
                           " add it to cmake/UpdateHeaders.cmake\n")
  endif()
endforeach()
list(REMOVE_DUPLICATES core_headers)
list(SORT core_headers)

# The umbrella: what is internal comes with the headers that need it, so neither detail/ is named nor a header that adds
# nothing to namespace meshwise itself. The back ends of the fabric, its folders, are for the file that launches ranks.
string(CONCAT umbrella
  "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n\n"
  "// What programs on tensors and collectives use, floor by floor. Written by ./run headers.\n"
  "// The file that launches the ranks includes their fabric too: \"meshwise/fabric/thread/launch.hpp\"; one that names\n"
  "// an algorithm or reads a meter, that: \"meshwise/schedule/ring.hpp\", \"meshwise/trace/ledger.hpp\".\n"
  "// Programs that care about compile time include what they use instead.\n\n"
  "#include \"meshwise/version.hpp\"\n")
foreach(floor IN LISTS floors)
  if(floor IN_LIST workshop)
    continue()
  endif()
  set(group ${core_headers})
  list(FILTER group INCLUDE REGEX "^meshwise/${floor}/")
  list(FILTER group EXCLUDE REGEX "/detail/|/fabric/[^/]+/")
  set(lines "")
  foreach(header IN LISTS group)
    file(STRINGS "${root}/include/${header}" public REGEX "^namespace meshwise {" LIMIT_COUNT 1)
    if(public)
      string(APPEND lines "#include \"${header}\"\n")
    endif()
  endforeach()
  if(lines)
    string(APPEND umbrella "\n${lines}")
  endif()
endforeach()

string(CONCAT list
  "# SPDX-License-Identifier: Apache-2.0\n"
  "# The headers of each component, by name. Written by ./run headers.\n")
foreach(component IN ITEMS core LISTS components)
  string(TOUPPER "${component}" upper)
  if(component STREQUAL "core")
    string(APPEND list "set(MESHWISE_HEADERS")
  else()
    string(APPEND list "set(MESHWISE_${upper}_HEADERS")
  endif()
  foreach(header IN LISTS ${component}_headers)
    string(APPEND list "\n  include/${header}")
  endforeach()
  string(APPEND list ")\n")
endforeach()

foreach(pair IN ITEMS "cmake/MeshwiseHeaders.cmake|list" "include/meshwise/meshwise.hpp|umbrella")
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 file)
  list(GET pair 1 variable)
  set(present "")
  if(EXISTS "${root}/${file}")
    file(READ "${root}/${file}" present)
  endif()
  if(NOT present STREQUAL "${${variable}}")
    if(CHECK)
      string(APPEND problems "  ${file} does not match the tree; run ./run headers\n")
    else()
      file(WRITE "${root}/${file}" "${${variable}}")
      message(STATUS "wrote ${file}")
    endif()
  endif()
endforeach()

if(problems)
  message(FATAL_ERROR "headers are not in order:\n${problems}")
endif()
