// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/named.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace test {
namespace {

template <class... Ps>
using T = Tensor<double, Dims<d0, d1>, On<Ps...>>;
template <class X, class P, Transition named>
inline constexpr bool allowed = detail::is_accepted<detail::named_of<X, P, named>>;

// A form is the transition it names and no other.
static_assert(allowed<T<Shard<d0, tp>>, Replicate<tp>, Transition::all_gather>);
static_assert(!allowed<T<Partial<tp>>, Replicate<tp>, Transition::all_gather>);
static_assert(!allowed<T<>, Replicate<tp>, Transition::all_gather>);
static_assert(allowed<T<Partial<tp, Max>>, Replicate<tp>, Transition::all_reduce>);
static_assert(!allowed<T<Shard<d0, tp>>, Replicate<tp>, Transition::all_reduce>);
static_assert(allowed<T<Partial<tp>>, Shard<d0, tp>, Transition::reduce_scatter>);
static_assert(!allowed<T<>, Shard<d0, tp>, Transition::reduce_scatter>);
static_assert(allowed<T<Shard<d1, tp>>, Shard<d0, tp>, Transition::all_to_all>);
static_assert(!allowed<T<Shard<d0, tp>>, Shard<d0, tp>, Transition::all_to_all>);
static_assert(!allowed<T<Shard<d0, dp, tp>>, Replicate<dp>, Transition::all_gather>);

TEST_CASE("the named forms are the conversions") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const Extents<Dims<d0, d1>> extents{5, 3};
      const auto value = array(15, [](std::size_t i) { return integer(i, 1); });
      const auto shard = rank.integers<T<Shard<d0, tp>>>(extents);
      auto part = rank.integers<T<Partial<tp>>>(extents);
      const std::uint64_t before = rank.mesh.along<tp>().traffic().calls;
      const T<> whole = all_gather<tp>(shard);
      const T<Shard<d1, tp>> moved = all_to_all<d1, tp>(shard);
      const T<Shard<d1, tp>> scattered = reduce_scatter<d1, tp>(part);
      const double* where = part.local().data();
      const T<> reduced = all_reduce<tp>(std::move(part));
      require(reduced.local().data() == where, "in place");
      const std::uint64_t calls = rank.mesh.along<tp>().traffic().calls - before;
      require(calls == (rank.mesh.size<tp>() == 1 ? 0U : 4U), "one call each");
      require_equal(rank.denoted(whole), value, "all_gather");
      require_equal(rank.denoted(moved), value, "all_to_all");
      require_equal(rank.denoted(scattered), value, "reduce_scatter");
      require_equal(rank.denoted(reduced), value, "all_reduce");
    });
  }
}

}  // namespace
}  // namespace test
