// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/space.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstring>

#include "ranks.hpp"

namespace {

using namespace meshwise;
using namespace meshwise::detail;

std::string hex(const void* p) { return std::to_string(reinterpret_cast<std::uintptr_t>(p)); }

}  // namespace

TEST_CASE("processes see each other's bytes at equal addresses") {
  for (const int ranks : {1, 2, 4}) {
    Segments segments = Segments::create(ranks);
    const auto body = [](Space& space, const test::Line& line) -> std::string {
      auto* const own = static_cast<char*>(space.arena().allocate(100, 64));
      std::snprintf(own, 100, "from %d", space.rank());
      line.say(hex(own));
      std::string seen;
      for (int k = 0; k < space.ranks(); ++k) {
        const auto at = std::strtoull(line.hear().c_str(), nullptr, 10);
        const auto* const theirs = reinterpret_cast<const char*>(at);
        if (!space.addressable(theirs, 100)) return "not addressable";
        seen += std::string(theirs) + ";";
      }
      line.say(seen);
      return line.hear();
    };
    test::Ranks children(segments, body);
    std::vector<std::string> addresses;
    std::string all;
    for (int k = 0; k < ranks; ++k) {
      addresses.push_back(children.hear(k));
      all += "from " + std::to_string(k) + ";";
    }
    for (int k = 0; k < ranks; ++k) {
      for (const auto& one : addresses) {
        children.say(k, one);
        usleep(0);
      }
    }
    for (int k = 0; k < ranks; ++k) CHECK(children.hear(k) == all);
    for (int k = 0; k < ranks; ++k) {
      children.say(k, "bye");
      CHECK(children.hear(k) == "bye");
      CHECK(children.reap(k) == 0);
    }
  }
}
