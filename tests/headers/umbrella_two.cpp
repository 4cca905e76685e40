// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "poisoned_macros.hpp"

#include "component_headers.hpp"  // generated: what the umbrella leaves out, back ends and components

#include <meshwise/meshwise.hpp>

const char* umbrella_two_error_text();
const void* umbrella_two_version();

const void* umbrella_two_version() { return &meshwise::version_major; }

const char* umbrella_two_error_text() {
  static const std::string text = [] {
    try {
      meshwise::fail("header_link_test", "", "nothing", "");
    } catch (const meshwise::Error& error) {
      return std::string(error.what());
    }
  }();
  return text.c_str();
}
