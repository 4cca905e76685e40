// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/detail/list.hpp"

#include <doctest/doctest.h>

namespace {

using namespace meshwise::detail;

struct a {};
struct b {};
struct c {};

template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;
template <class T>
struct is_not_b {
  static constexpr bool value = !same<T, b>;
};

static_assert(list<>::size == 0 && list<a, b, a>::size == 3);
static_assert(same<join<>, list<>> && same<join<list<>, list<>>, list<>>);
static_assert(same<join<list<a>, list<>, list<b, c>, list<a>>, list<a, b, c, a>>);
static_assert(contains<b, list<a, b>> && !contains<c, list<a, b>> && !contains<a, list<>>);
static_assert(index_of<a, list<a, b>> == 0 && index_of<b, list<a, b, b>> == 1);
static_assert(index_of<c, list<a, b>> == 2 && index_of<c, list<>> == 0);
static_assert(count_same<a, a, b, a> == 2 && count_same<a> == 0);
static_assert(same<front<list<a, b>>, a> && same<back<list<a, b>>, b> && same<back<list<c>>, c>);
static_assert(same<back<list<>>, void>);
static_assert(same<decltype(filtered<is_not_b>(list<a, b, c, b>{})), list<a, c>>);
static_assert(same<decltype(filtered<is_not_b>(list<>{})), list<>>);
static_assert(same<without<b, list<a, b, c>>, list<a, c>> && same<without<c, list<a, b>>, list<a, b>>);
static_assert(same<repeated<list<a, b, c>>, void> && same<repeated<list<>>, void>);
static_assert(same<repeated<list<a, b, c, b, a>>, a> && same<repeated<list<a, b, b>>, b>);

TEST_CASE("lists of types: checked when this file is compiled") { CHECK(index_of<b, list<a, b>> == 1); }

}  // namespace
