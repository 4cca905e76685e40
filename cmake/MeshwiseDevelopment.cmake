# SPDX-License-Identifier: Apache-2.0
# Flags of the project's own programs (tests, examples, benchmarks). Users of meshwise::meshwise never see them.
add_library(meshwise_development INTERFACE)
target_link_libraries(meshwise_development INTERFACE meshwise::meshwise)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(meshwise_development INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion $<$<BOOL:${MESHWISE_WERROR}>:-Werror>)
  target_compile_definitions(meshwise_development INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
endif()
if(MESHWISE_SANITIZE)
  string(REPLACE ";" "," meshwise_sanitizers "${MESHWISE_SANITIZE}")
  set(meshwise_sanitize_flags "-fsanitize=${meshwise_sanitizers}" -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_compile_options(meshwise_development INTERFACE ${meshwise_sanitize_flags})
  target_link_options(meshwise_development INTERFACE ${meshwise_sanitize_flags})
endif()

# With the tests, ranks as threads are compiled once for all of the project's programs; without them every program
# compiles as it does elsewhere. meshwise_share_launch(TARGETS...): after this their sources need not instantiate them.
set(meshwise_launch_header "${PROJECT_SOURCE_DIR}/tests/support/launch.hpp")
if(MESHWISE_TESTS)
  add_library(meshwise_launch OBJECT "${PROJECT_SOURCE_DIR}/tests/support/launch.cpp")
  target_link_libraries(meshwise_launch PRIVATE meshwise_development)
endif()
function(meshwise_share_launch)
  if(TARGET meshwise_launch AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    foreach(target IN LISTS ARGN)
      target_link_libraries(${target} PRIVATE meshwise_launch)
      target_compile_options(${target} PRIVATE "SHELL:-include \"${meshwise_launch_header}\"")
    endforeach()
  endif()
endfunction()
