// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/attach.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "../../support/processes.hpp"

using meshwise::detail::attach_and_read;
using meshwise::detail::attach_and_write;

TEST_CASE("private memory of another process is read and written whole, or not at all") {
  std::vector<std::uint32_t> data(300'000), copy(data.size());
  test::Children other(1, [&](int, const test::Line& line) -> std::string {
    std::iota(data.begin(), data.end(), 5U);  // of the child only
    char text[32];
    std::snprintf(text, sizeof(text), "%p", static_cast<void*>(data.data()));
    line.say(text);
    const std::string word = line.hear();
    return word + " " + std::to_string(data.front()) + " " + std::to_string(data.back());
  });
  const auto address = reinterpret_cast<const void*>(std::stoull(other.hear(0), nullptr, 16));
  const std::size_t bytes = data.size() * sizeof(data[0]);
  if (!attach_and_read(other.pid(0), copy.data(), address, bytes)) {
    MESSAGE("the system refuses to attach");
    return;
  }
  for (std::uint32_t i = 0; i < copy.size(); ++i) REQUIRE(copy[i] == i + 5);
  CHECK(attach_and_read(other.pid(0), copy.data(), address, 0));
  CHECK(!attach_and_read(other.pid(0), copy.data(), nullptr, 8));
  copy[0] = 7;
  copy.back() = 8;
  auto* const place = const_cast<void*>(address);
  CHECK(attach_and_write(other.pid(0), place, copy.data(), bytes));
  CHECK(attach_and_write(other.pid(0), place, copy.data(), 0));
  CHECK(!attach_and_write(other.pid(0), nullptr, copy.data(), 8));
  other.say(0, "done");
  CHECK(other.hear(0) == "done 7 8");
  other.reap(0);
  CHECK(!attach_and_read(99999999, copy.data(), address, 8));
  CHECK(!attach_and_write(99999999, place, copy.data(), 8));
}
