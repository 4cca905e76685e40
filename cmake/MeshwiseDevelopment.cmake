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
