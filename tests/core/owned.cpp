// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/owned.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <type_traits>
#include <utility>
#include "watched.hpp"

using meshwise::Owned;

namespace {

using namespace test;

static_assert(std::is_convertible_v<std::unique_ptr<DerivedWatched>, Owned<Watched>>);
static_assert(!std::is_convertible_v<std::unique_ptr<Watched>, Owned<DerivedWatched>>);
static_assert(!std::is_convertible_v<std::unique_ptr<DerivedWatched>&, Owned<Watched>>);
static_assert(!std::is_convertible_v<const std::unique_ptr<DerivedWatched>, Owned<Watched>>);
static_assert(!std::is_convertible_v<Watched*, Owned<Watched>>);
static_assert(!std::is_convertible_v<std::unique_ptr<Watched, void (*)(Watched*)>, Owned<Watched>>,
              "what another function deletes");
static_assert(!std::is_convertible_v<std::shared_ptr<Watched>, Owned<Watched>>, "what others own too");
static_assert(!std::is_convertible_v<meshwise::detail::Shared<Watched>, Owned<Watched>>, "what others own too");
static_assert(std::is_convertible_v<Owned<DerivedWatched>, Owned<Watched>>);
static_assert(!std::is_convertible_v<Owned<Watched>, Owned<DerivedWatched>>);
static_assert(!std::is_copy_constructible_v<Owned<Watched>> && !std::is_copy_assignable_v<Owned<Watched>>);

TEST_CASE("an Owned deletes what it owns, once") {
  int alive = 0;
  {
    Owned<Watched> one(new Watched(alive));
    Owned<Watched> other(new Watched(alive));
    REQUIRE(alive == 2);
    other = std::move(one);
    REQUIRE(alive == 1);
    REQUIRE(one == nullptr);
    REQUIRE(static_cast<bool>(other));
    Owned<Watched> third(std::move(other));
    REQUIRE(&third->alive == &alive);
    REQUIRE(&(*third).alive == &alive);
    third = Owned<Watched>();
    REQUIRE(alive == 0);
    third = Owned<Watched>(new Watched(alive));
    third.reset();
    REQUIRE(alive == 0);
    REQUIRE(third.get() == nullptr);
    third = Owned<Watched>(new Watched(alive));
  }
  REQUIRE(alive == 0);
}

TEST_CASE("an Owned takes from a unique_ptr, and gives away") {
  int alive = 0;
  {
    const auto make = [&]() -> Owned<Watched> {
      auto made = std::make_unique<DerivedWatched>(alive);
      return made;
    };
    Owned<Watched> one = make();
    REQUIRE(alive == 1);
    one = std::make_unique<DerivedWatched>(alive);
    REQUIRE(alive == 1);
    Owned<Watched> none = std::unique_ptr<DerivedWatched>();
    REQUIRE(none == nullptr);
    std::unique_ptr<Watched> back(one.release());
    REQUIRE(!one);
    REQUIRE(alive == 1);
    one = Owned<DerivedWatched>(new DerivedWatched(alive));
    REQUIRE(alive == 2);
  }
  REQUIRE(alive == 0);
}

}  // namespace
