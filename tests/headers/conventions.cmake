# SPDX-License-Identifier: Apache-2.0
# The house rules that a script can see. Run as cmake -P; every breach is one line.
cmake_minimum_required(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
cmake_path(GET root PARENT_PATH root)

# Which floors a floor may include besides itself. Data goes down.
set(floor_core "")
set(floor_topology core)
set(floor_schedule core topology)
set(floor_trace core topology schedule fabric collective layout mesh)  # beside the floors: traffic below, the ledger above
set(floor_fabric core topology schedule trace collective)
set(floor_collective ${floor_fabric} fabric)
set(floor_bootstrap ${floor_collective} collective)
set(floor_layout core)
set(floor_mesh ${floor_bootstrap} layout)
set(floor_tensor ${floor_mesh} mesh)
set(floor_train ${floor_tensor} tensor)
set(floor_parallel ${floor_train} train)
set(floor_planner core topology schedule layout)
set(floor_blas ${floor_tensor} tensor)

# Identifiers that belong to the compiler or the platform and may be used though they look reserved.
set(reserved_allowed
  "__(builtin_[a-z0-9_]+|atomic_[a-z]+_fetch|ATOMIC_[A-Z_]+|attribute__|restrict__|asm__|volatile__|extension__|vector_size__|may_alias__|aligned__|target__|always_inline__|noinline__|visibility__)"
  "__(x86_64__|i386__|aarch64__|PRETTY_FUNCTION__|get_cpuid[a-z_]*|ARM_NEON|GNUC__|GNUC_MINOR__|clang__|clang_major__|cplusplus|linux__|SIZEOF_INT128__|int128|has_builtin|has_include|has_feature|has_attribute|SANITIZE_THREAD__|SANITIZE_ADDRESS__|CUDACC__|CUDA_ARCH__|NVCC__|BYTE_ORDER__|ORDER_LITTLE_ENDIAN__)"
  "_(SC_[A-Z0-9_]+|Float16|Static_assert|Pragma|Exit|Noreturn)"
  "__(host__|device__|global__|forceinline__|m[0-9]+[a-z]*)")

# What every program would pay for that includes the umbrella. The fabrics, which only few files include, may use them.
string(JOIN "|" costly algorithm chrono cmath deque fstream functional future iomanip istream list locale map memory ostream random
  ranges set sstream thread unordered_map unordered_set variant)

set(breaches "")
macro(breach text)
  string(APPEND breaches "  ${file}: ${text}\n")
endmacro()

file(GLOB_RECURSE files RELATIVE "${root}" "${root}/include/*")
foreach(file IN LISTS files)
  if(NOT file MATCHES "^include/meshwise/([a-z0-9_]+/)*[a-z0-9_]+\\.hpp$"
     AND NOT file MATCHES "/detail/[a-z0-9_]+\\.inc$")
    breach("include/meshwise/ holds lower-case .hpp files, and .inc files in detail/, only")
    continue()
  endif()
  file(READ "${root}/${file}" text)

  # An .inc file is a piece of a header that is included several times on purpose.
  if(NOT text MATCHES "^// SPDX-License-Identifier: Apache-2\\.0\n")
    breach("must begin with the SPDX line")
  elseif(file MATCHES "hpp$" AND NOT text MATCHES "^[^\n]*\n#pragma once\n")
    breach("#pragma once must be the second line")
  endif()
  string(REGEX MATCHALL "\n" newlines "${text}")
  list(LENGTH newlines lines)
  if(lines GREATER 600)
    breach("${lines} lines; the ceiling is 600")
  endif()

  string(REPEAT "[^\n]" 121 too_long)
  if(text MATCHES "${too_long}")
    breach("a line is longer than 120 columns")
  endif()

  # Comments and string literals may say what they like. ([ and ] and ; would confuse CMake's lists.)
  string(REGEX REPLACE "[][;]" " " code "${text}")
  string(REGEX REPLACE "//[^\n]*" "" code "${code}")
  if(code MATCHES "/\\*")
    breach("comments are written with //")
  endif()

  string(REGEX MATCHALL "# *include *[<\"][^>\"\n]+[>\"]" includes "${code}")
  if(file MATCHES "^include/meshwise/([a-z0-9_]+)/")
    set(floor "${CMAKE_MATCH_1}")
    if(NOT DEFINED floor_${floor})
      breach("the floor ${floor}/ has no row in tests/headers/conventions.cmake")
    endif()
    foreach(include IN LISTS includes)
      if(include MATCHES "\"meshwise/([a-z0-9_]+)/" AND NOT CMAKE_MATCH_1 STREQUAL floor
         AND NOT CMAKE_MATCH_1 IN_LIST floor_${floor})
        breach("${floor}/ may not include ${CMAKE_MATCH_1}/, a floor above it or beside it")
      elseif(include MATCHES "\"meshwise/meshwise.hpp")
        breach("a header never includes the umbrella")
      endif()
    endforeach()
  endif()
  foreach(include IN LISTS includes)
    if(include MATCHES "\"" AND NOT include MATCHES "\"meshwise/")
      breach("${include}: our own headers are named from the include root, \"meshwise/...\"")
    elseif(include MATCHES "<(iostream|regex|filesystem|bits/.*|immintrin\\.h)>" OR include MATCHES "<meshwise/")
      breach("${include}: not in a public header")
    elseif(include MATCHES "<(${costly})>" AND NOT file MATCHES "^include/meshwise/fabric/")
      breach("${include}: as large as ten of ours; see core/owned.hpp, core/math.hpp and core/detail/ (list, shared, sort, sorted)")
    endif()
  endforeach()

  string(REGEX MATCHALL "# *define +[A-Za-z0-9_]+" macros "${code}")
  foreach(macro IN LISTS macros)
    if(NOT macro MATCHES "define +MESHWISE_")
      breach("${macro}: macros begin with MESHWISE_")
    endif()
  endforeach()
  if(code MATCHES "[^A-Za-z0-9_](NDEBUG|__AVX[A-Z0-9_]*|__SSE[A-Z0-9_]*|thread_local)[^A-Za-z0-9_]")
    breach("${CMAKE_MATCH_1}: what a function does may not depend on how its includer was compiled, nor on hidden state")
  endif()

  string(REGEX REPLACE "\"[^\"\n]*\"" "\"\"" code "${code}")
  foreach(allowed IN LISTS reserved_allowed)
    string(REGEX REPLACE "([^A-Za-z0-9_])${allowed}" "\\1" code "${code}")
  endforeach()
  string(REGEX MATCHALL "[^A-Za-z0-9_](_[A-Z][A-Za-z0-9_]*|__[A-Za-z0-9_]+)" names "${code}")
  string(REGEX MATCHALL "[A-Za-z0-9]__[A-Za-z0-9]" doubled "${code}")
  list(REMOVE_DUPLICATES names)
  foreach(name IN LISTS names doubled)
    string(STRIP "${name}" name)
    breach("${name}: reserved identifier")
  endforeach()

  # Tests mirror headers path for path; a header without its own file is included by name in a test of its room.
  if(NOT file MATCHES "/detail/" AND file MATCHES "^include/meshwise/(([a-z0-9_]+)/.+)\\.hpp$"
     AND NOT EXISTS "${root}/tests/${CMAKE_MATCH_1}.cpp")
    set(name "${CMAKE_MATCH_1}")
    set(room "${CMAKE_MATCH_2}")
    if(NOT DEFINED tests_of_${room})
      set(tests_of_${room} "")
      file(GLOB_RECURSE tests "${root}/tests/${room}/*.cpp")
      foreach(test IN LISTS tests)
        file(STRINGS "${test}" lines REGEX "^#include \"meshwise/")
        list(APPEND tests_of_${room} ${lines})
      endforeach()
    endif()
    if(NOT "#include \"meshwise/${name}.hpp\"" IN_LIST tests_of_${room})
      breach("no test tests/${name}.cpp, and no test in tests/${room}/ includes it")
    endif()
  endif()
endforeach()

file(GLOB_RECURSE files RELATIVE "${root}" "${root}/tests/*.[ch]pp" "${root}/examples/*.[ch]pp" "${root}/benchmarks/*.[ch]pp")
foreach(file IN LISTS files)
  file(READ "${root}/${file}" text LIMIT 40)
  if(NOT text MATCHES "^// SPDX-License-Identifier: Apache-2\\.0\n")
    breach("must begin with the SPDX line")
  endif()
endforeach()

if(breaches)
  message(FATAL_ERROR "conventions broken:\n${breaches}")
endif()
