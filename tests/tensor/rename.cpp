// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/rename.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace test {
namespace {

template <class D, class... Ps>
using T = Tensor<double, D, On<Ps...>>;
template <class X, class Old, class New>
inline constexpr bool allowed = detail::is_accepted<detail::rename_of<X, Old, New>>;

static_assert(allowed<T<Dims<batch, seq>>, seq, key<seq>> && !allowed<T<Dims<batch, seq>>, hidden, key<seq>>);
static_assert(!allowed<T<Dims<batch, seq>>, seq, batch>);

TEST_CASE("the dim and the shard that speaks of it change their name, nothing else changes") {
  on_grid({2, 3}, [](const Rank& rank) {
    using K = T<Dims<batch, seq, heads>, Shard<seq, tp, dp>>;
    const auto k = rank.integers<K>({2, 7, 3});
    const auto r = rename<seq, key<seq>>(k);
    static_assert(
        std::is_same_v<std::remove_const_t<decltype(r)>, T<Dims<batch, key<seq>, heads>, Shard<key<seq>, tp, dp>>>);
    require(r.local().data() == k.local().data(), "no copy");
    require(r.extents() == k.extents() && r.ranges() == k.ranges(), "the same piece");
    require_equal(rank.denoted(r), rank.denoted(k), "the same value");
    const K back = rename<key<seq>, seq>(r);
    require(back.local().data() == k.local().data(), "and back");
    const auto z = rename<seq, key<seq>>(rank.integers<T<Dims<seq>, Shard<seq, Zigzag<tp>, dp>>>({13}));
    static_assert(std::is_same_v<typename decltype(z)::layout, On<Shard<key<seq>, Zigzag<tp>, dp>>>, "rules stay");
    require_equal(rank.denoted(z), array(13, [](std::size_t i) { return integer(i, 1); }), "by another rule");
    const auto other = rename<heads, hidden>(k);
    static_assert(std::is_same_v<typename decltype(other)::layout, On<Shard<seq, tp, dp>>>);
    const auto part = rename<d0, d1>(rank.integers<T<Dims<d0>, Partial<tp>>>({3}));
    require_equal(rank.denoted(part), array(3, [](std::size_t i) { return integer(i, 1); }), "Partial");
  });
}

TEST_CASE("what is renamed is not written through its old name") {
  on_grid({1, 1}, [](const Rank& rank) {
    const auto x = rank.integers<T<Dims<d0>>>({3});
    auto y = rename<d0, d1>(x);
    y.mutable_local()[0] += 1;
    require(x.local()[0] == integer(0, 1) && y.local()[0] == integer(0, 1) + 1, "copied on write");
  });
}

}  // namespace
}  // namespace test
