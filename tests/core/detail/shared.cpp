// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/shared.hpp"

#include <doctest/doctest.h>

#include <thread>
#include <utility>
#include <vector>
#include "../watched.hpp"

using namespace meshwise::detail;

namespace {

using namespace test;

TEST_CASE("the last owner deletes") {
  int alive = 0;
  Shared<Watched> outer;
  REQUIRE(outer == nullptr);
  {
    Shared<DerivedWatched> one(new DerivedWatched(alive));
    Shared<DerivedWatched> copy = one;
    REQUIRE(copy == one);
    REQUIRE(copy.get() == &*one);
    outer = copy;
    one = Shared<DerivedWatched>();
    copy.reset();
    REQUIRE(copy == nullptr);
    REQUIRE(alive == 1);
  }
  REQUIRE(&outer->alive == &alive);
  Shared<Watched> moved = std::move(outer);
  REQUIRE(outer == nullptr);
  REQUIRE(alive == 1);
  moved = moved;
  REQUIRE(alive == 1);
  moved = Shared<Watched>(new Watched(alive));
  REQUIRE(alive == 1);
  moved.reset();
  moved.reset();
  REQUIRE(alive == 0);
}

TEST_CASE("owners may be in different threads") {
  int alive = 0;
  for (int round = 0; round < 100; ++round) {
    Shared<Watched> first(new Watched(alive));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([mine = first]() mutable {
        for (int k = 0; k < 50; ++k) Shared<Watched> copy = mine;
        mine.reset();
      });
    }
    first.reset();
    for (std::thread& thread : threads) thread.join();
    REQUIRE(alive == 0);
  }
}

}  // namespace
