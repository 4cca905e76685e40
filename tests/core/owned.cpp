// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/owned.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <type_traits>
#include <utility>

using meshwise::Owned;

namespace {

/// An object that tells how many of its kind there are.
struct Counted {
  int& alive;
  explicit Counted(int& count) : alive(count) { ++alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  virtual ~Counted() { --alive; }
};
struct Derived : Counted {
  using Counted::Counted;
};

static_assert(std::is_convertible_v<std::unique_ptr<Derived>, Owned<Counted>>);
static_assert(!std::is_convertible_v<std::unique_ptr<Counted>, Owned<Derived>>);
static_assert(!std::is_convertible_v<std::unique_ptr<Derived>&, Owned<Counted>>);
static_assert(!std::is_convertible_v<const std::unique_ptr<Derived>, Owned<Counted>>);
static_assert(!std::is_convertible_v<Counted*, Owned<Counted>>);
static_assert(!std::is_copy_constructible_v<Owned<Counted>> && !std::is_copy_assignable_v<Owned<Counted>>);

TEST_CASE("an Owned deletes what it owns, once") {
  int alive = 0;
  {
    Owned<Counted> one(new Counted(alive));
    Owned<Counted> other(new Counted(alive));
    REQUIRE(alive == 2);
    other = std::move(one);
    REQUIRE(alive == 1);
    REQUIRE(one == nullptr);
    REQUIRE(static_cast<bool>(other));
    Owned<Counted> third(std::move(other));
    REQUIRE(&third->alive == &alive);
    REQUIRE(&(*third).alive == &alive);
    third = Owned<Counted>();
    REQUIRE(alive == 0);
    third = Owned<Counted>(new Counted(alive));
    third.reset();
    REQUIRE(alive == 0);
    REQUIRE(third.get() == nullptr);
    third = Owned<Counted>(new Counted(alive));
  }
  REQUIRE(alive == 0);
}

TEST_CASE("an Owned takes from a unique_ptr, and gives away") {
  int alive = 0;
  {
    const auto make = [&]() -> Owned<Counted> {
      auto made = std::make_unique<Derived>(alive);
      return made;
    };
    Owned<Counted> one = make();
    REQUIRE(alive == 1);
    one = std::make_unique<Derived>(alive);
    REQUIRE(alive == 1);
    Owned<Counted> none = std::unique_ptr<Derived>();
    REQUIRE(none == nullptr);
    std::unique_ptr<Counted> back(one.release());
    REQUIRE(!one);
    REQUIRE(alive == 1);
    one = Owned<Derived>(new Derived(alive));
    REQUIRE(alive == 2);
  }
  REQUIRE(alive == 0);
}

}  // namespace
