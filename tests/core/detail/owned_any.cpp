// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/owned_any.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include "../watched.hpp"

using namespace meshwise::detail;

namespace {

using namespace test;

TEST_CASE("an OwnedAny deletes what it owns as what it is") {
  int alive = 0;
  {
    OwnedAny any;
    REQUIRE(any.get<Watched>() == nullptr);
    any.own(new Watched(alive));
    REQUIRE(any.get<Watched>() != nullptr);
    any.own(new Watched(alive));
    REQUIRE(alive == 1);
    OwnedAny other = std::move(any);
    REQUIRE(any.get<Watched>() == nullptr);
    REQUIRE(other.get<Watched>() != nullptr);
    const auto shared = std::make_shared<int>(3);
    other.own(new std::shared_ptr<int>(shared));
    REQUIRE(alive == 0);
    REQUIRE(shared.use_count() == 2);
    other = OwnedAny();
    REQUIRE(shared.use_count() == 1);
    other.own(new Watched(alive));
  }
  REQUIRE(alive == 0);
}

}  // namespace
