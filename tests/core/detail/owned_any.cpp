// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/owned_any.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>

using namespace meshwise::detail;

namespace {

/// An object that tells how many of its kind there are.
struct Counted {
  int& alive;
  explicit Counted(int& count) : alive(count) { ++alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --alive; }
};

TEST_CASE("an OwnedAny deletes what it owns as what it is") {
  int alive = 0;
  {
    OwnedAny any;
    REQUIRE(any.get<Counted>() == nullptr);
    any.own(new Counted(alive));
    REQUIRE(any.get<Counted>() != nullptr);
    any.own(new Counted(alive));
    REQUIRE(alive == 1);
    OwnedAny other = std::move(any);
    REQUIRE(any.get<Counted>() == nullptr);
    REQUIRE(other.get<Counted>() != nullptr);
    const auto shared = std::make_shared<int>(3);
    other.own(new std::shared_ptr<int>(shared));
    REQUIRE(alive == 0);
    REQUIRE(shared.use_count() == 2);
    other = OwnedAny();
    REQUIRE(shared.use_count() == 1);
    other.own(new Counted(alive));
  }
  REQUIRE(alive == 0);
}

}  // namespace
