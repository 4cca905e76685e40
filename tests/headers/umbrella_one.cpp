// SPDX-License-Identifier: Apache-2.0
#include "component_headers.hpp"  // generated: what the umbrella leaves out, back ends and components

#include <meshwise/meshwise.hpp>

const char* umbrella_two_error_text();
const void* umbrella_two_version();

// The two units were compiled apart; what the headers define `inline` must be one thing in the program.
int main() {
  if (umbrella_two_version() != static_cast<const void*>(&meshwise::version_major)) return 1;
  try {
    meshwise::fail("header_link_test", "", "nothing", "");
  } catch (const meshwise::Error& error) {
    const char* other = umbrella_two_error_text();
    for (const char* mine = error.what(); *mine != '\0' || *other != '\0'; ++mine, ++other) {
      if (*mine != *other) return 2;
    }
    return 0;
  }
}
