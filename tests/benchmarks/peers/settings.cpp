// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/peers/settings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace peers;

TEST_CASE("every setting has a name of its own, and its program in the folder") {
  for (const bool crowded : {false, true}) {
    std::set<std::string> names;
    for (const Setting& setting : known_settings("/folder", crowded)) {
      CHECK(names.insert(setting.name).second);
      CHECK(program_of(setting, "/folder").rfind("/folder/peer_", 0) == 0);
    }
    CHECK(names.size() >= 8);
  }
}

TEST_CASE("the number of ranks is put in wherever it is asked for") {
  const Setting setting{"x", "x", {"run", "-n", "{ranks}", "a={ranks}:{ranks}"}, {}, true};
  CHECK(command_of(setting, 12) == std::vector<std::string>{"run", "-n", "12", "a=12:12"});
}

TEST_CASE("with more ranks than cores libraries are told to give the core away, and ranks are bound by themselves") {
  for (const bool crowded : {false, true}) {
    for (const Setting& setting : known_settings("/folder", crowded)) {
      if (setting.library != "Open MPI") continue;
      const auto has = [&](const char* word) {
        return std::find(setting.command.begin(), setting.command.end(), word) != setting.command.end();
      };
      CHECK(has("mpi_yield_when_idle") == crowded);
      CHECK(has("--oversubscribe") == crowded);
      CHECK(has("core") == !crowded);
    }
  }
}

TEST_CASE("a program that is not there is not taken for one") {
  CHECK(!is_there(""));
  CHECK(!is_there("/folder/peer_nothing"));
  CHECK(is_there("/bin/sh"));
}
