// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/position_ids.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "meshwise/tensor/lookup.hpp"
#include "support.hpp"

namespace test {
namespace {

using Shape = Dims<batch, seq, hidden>;
template <class... Ps>
using X = Tensor<float, Shape, On<Ps...>>;
template <class T>
using Ids = decltype(position_ids<seq>(std::declval<const T&>()));
template <class... Ps>
using Of = Tensor<std::int32_t, Dims<seq>, On<Ps...>>;

static_assert(std::is_same_v<Ids<X<>>, Of<>> && std::is_same_v<Ids<X<Shard<batch, dp>, Partial<tp>>>, Of<>>);
static_assert(std::is_same_v<Ids<X<Shard<batch, dp>, Shard<seq, Zigzag<tp>>>>, Of<Shard<seq, Zigzag<tp>>>>);
static_assert(std::is_same_v<Ids<X<Shard<seq, dp, Striped<tp>>>>, Of<Shard<seq, dp, Striped<tp>>>>);
template <class T>
concept has_positions = requires(const T& x) {
  position_ids<seq>(x);
};
static_assert(!has_positions<Tensor<float, Dims<batch>, On<>>>);

template <class... Ps>
void check(const Rank& rank, const Extents<Shape>& extents) {
  const X<Ps...> x(rank.mesh, extents);
  const auto ids = position_ids<seq>(x);
  require(ids.local().size() == x.ranges()[1].size, "as many as there are rows");
  require_equal(rank.denoted(ids), array(extents[1], [](std::size_t i) { return static_cast<double>(i); }), "ids");
}

TEST_CASE("position ids are global, whatever the rule") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const std::size_t length : small_sizes) {
        check(rank, {2, length, 1});
        check<Shard<seq, tp>>(rank, {2, length, 1});
        check<Shard<batch, dp>, Shard<seq, Zigzag<tp>>>(rank, {2, length, 1});
        check<Shard<seq, Striped<dp>, tp>>(rank, {2, length, 1});
        check<Shard<seq, Chunked<tp>>, Partial<dp>>(rank, {0, length, 1});
      }
      std::vector<std::size_t> counts(static_cast<std::size_t>(rank.mesh.size<tp>()), 0);
      counts.back() = 5;
      check<Shard<seq, Counted<tp>>>(rank, {1, Extent::of_parts(counts), 1});
    });
  }
}

TEST_CASE("learned positions of a zigzag sequence; integers that are too small") {
  on_grid({1, 2}, [](const Rank& rank) {
    const X<Shard<seq, Zigzag<tp>>> x(rank.mesh, {1, 7, 3});
    const auto table = rank.reals<Tensor<float, Dims<vocab, hidden>, On<>>>({9, 3}, 5);
    const auto found = lookup<vocab>(table, position_ids<seq>(x));
    static_assert(std::is_same_v<typename decltype(found)::layout, typename decltype(x)::layout>);
    const Positions held = x.positions<seq>();
    for (std::size_t i = 0; i < held.size(); ++i) {
      for (std::size_t c = 0; c < 3; ++c) require(found.local()[i * 3 + c] == table.local()[held.at(i) * 3 + c], "row");
    }
    const auto text = error_of([&] { static_cast<void>(position_ids<seq, std::int8_t>(X<>(rank.mesh, {1, 129, 0}))); });
    require(contains(text, "position_ids (rank ") && contains(text, "found 129"), text);
    require(error_of([&] {
              static_cast<void>(position_ids<seq, std::int8_t>(X<>(rank.mesh, {1, 128, 0})));
            }).empty(),
            "127 is the last");
  });
}

}  // namespace
}  // namespace test
