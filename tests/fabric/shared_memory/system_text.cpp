// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/system_text.hpp"

#include <doctest/doctest.h>

TEST_CASE("what the system says is read to its end; what cannot be read says nothing") {
  const std::string maps = meshwise::detail::system_text("/proc/self/smaps");  // longer than one read
  CHECK(maps.size() > 8192);
  CHECK(maps.back() == '\n');
  CHECK(meshwise::detail::system_text("/no/such/file").empty());
  CHECK(meshwise::detail::system_text("/proc").empty());
}
