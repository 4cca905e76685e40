// SPDX-License-Identifier: Apache-2.0
// convert and view_as beyond one axis of doubles: several axes, other elements, sharing, conversions in place.
#include <doctest/doctest.h>

#include <algorithm>

#include "meshwise/tensor/convert.hpp"
#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;

template <class X>
void require_integers(const Rank& rank, const X& x, const std::string& what) {
  require_equal(rank.denoted(x), array(x.size(), [](std::size_t i) { return integer(i, 1); }), what);
}
/// The local piece is what a tensor made in this layout holds.
template <class X>
void require_piece(const Rank& rank, const X& x, const std::string& what) {
  const X right = rank.integers<X>(x.extents());
  require(std::equal(x.local().begin(), x.local().end(), right.local().begin(), right.local().end()), what);
}

TEST_CASE("one dim over two axes, both orders: shards join and leave at the minor end") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      Draw draw(3);
      for (int i = 0; i < 10; ++i) {
        const Extents<Square> extents{draw.size() + draw.size(), draw.size()};
        const auto whole = rank.integers<T<>>(extents);
        const T<Shard<d0, dp, tp>> major = convert<Shard<d0, dp, tp>>(whole);
        require_piece(rank, major, "slices, dp major");
        const T<Shard<d0, tp, dp>> minor = convert<Shard<d0, tp, dp>>(whole);
        require_piece(rank, minor, "slices, tp major");
        const T<Shard<d0, dp>> outer = convert<Replicate<tp>>(major);
        require_piece(rank, outer, "gather the minor axis");
        const T<> again = convert<Replicate<tp>, Replicate<dp>>(major);
        require_integers(rank, again, "gather both");
        const T<Shard<d0, dp>, Shard<d1, tp>> moved = convert<Shard<d1, tp>>(major);
        require_piece(rank, moved, "move the minor axis to another dim");
        require_piece(rank, convert<Shard<d0, tp>>(moved), "and back");
        const T<Shard<d0, dp, tp>> turned = convert<Replicate<dp>, Replicate<tp>, Shard<d0, dp, tp>>(minor);
        require_piece(rank, turned, "exchange the order of the axes");
        const auto part = rank.integers<T<Shard<d0, tp>, Partial<dp>>>(extents);
        const T<Shard<d0, tp, dp>> scattered = convert<Shard<d0, dp>>(part);
        require_piece(rank, scattered, "reduce-scatter inside a shard");
        require_integers(rank, convert<Replicate<dp>>(part), "all-reduce of a shard");
        require_integers(rank, convert<Partial<dp>>(whole), "keep the first");
      }
    });
  }
}

TEST_CASE("several placements are carried out in order, on axes of their own") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Square>& extents : {Extents<Square>{5, 7}, {1, 2}, {0, 3}, {3, 0}}) {
        const auto owed = rank.integers<T<Partial<dp>, Partial<tp>>>(extents);
        require_integers(rank, convert<Replicate<dp>, Replicate<tp>>(owed), "two all-reduces");
        require_integers(rank, convert<Replicate<tp>, Replicate<dp>>(T<Partial<dp>, Partial<tp>>(owed)), "in place");
        const T<Shard<d0, tp, dp>> both = convert<Shard<d0, tp, dp>>(owed);
        require_piece(rank, both, "two reduce-scatters of one dim");
        const T<Shard<d0, dp>, Shard<d1, tp>> two = convert<Shard<d1, tp>, Shard<d0, dp>>(owed);
        require_piece(rank, two, "two reduce-scatters of two dims");
        require_integers(rank, convert<Partial<tp>, Partial<dp>>(two), "pads");
        require_integers(rank, convert<Replicate<dp>, Partial<tp>>(two), "a gather and a pad");
        require_integers(rank, owed, "the argument is as it was");
        const T<Shard<d0, dp>, Shard<d1, tp>> same = convert<Shard<d0, dp>, Shard<d1, tp>>(two);
        require(same.local().data() == two.local().data(), "nothing to do");
      }
    });
  }
}

TEST_CASE("larger and odd extents, up to nine ranks") {
  const auto check = [](const Rank& rank, const Extents<Square>& extents) {
    const auto part = rank.integers<T<Shard<d0, dp>, Partial<tp>>>(extents);
    const auto shard = convert<Shard<d1, tp>>(part);
    require_piece(rank, shard, "reduce-scatter");
    require_piece(rank, convert<Shard<d0, tp>>(shard), "all-to-all");
    const auto whole = convert<Replicate<tp>, Replicate<dp>>(shard);
    require_integers(rank, whole, "all-gathers");
    require_piece(rank, convert<Shard<d0, tp>>(convert<Shard<d0, dp>>(whole)), "slices");
    require_integers(rank, convert<Replicate<tp>>(part), "all-reduce");
  };
  for (const GridSize size : {GridSize{1, 9}, GridSize{3, 3}, GridSize{2, 4}}) {
    on_grid(size, [&](const Rank& rank) {
      check(rank, {64, 8});
      check(rank, {7, 1000});
      check(rank, {2, 2});
      check(rank, {0, 8});
    });
  }
  on_grid({1, 3}, [&](const Rank& rank) { check(rank, {1, 65537}); });
  on_grid({2, 2}, [&](const Rank& rank) { check(rank, {65537, 1}); });
}

TEST_CASE("the minimum, and elements of other types") {
  const auto check = []<class E>(const Rank& rank, E) {
    using Part = Tensor<E, Square, On<Partial<tp>>>;
    const Extents<Square> extents{5, 3};
    const auto part = rank.integers<Part>(extents);
    require_integers(rank, convert<Replicate<tp>>(part), "all-reduce");
    const auto shard = convert<Shard<d1, tp>>(part);
    require_integers(rank, shard, "reduce-scatter");
    require_integers(rank, convert<Shard<d0, tp>>(shard), "all-to-all");
    require_integers(rank, convert<Replicate<tp>>(shard), "all-gather");
    require_integers(rank, convert<Partial<tp>>(shard), "pad");
    require_integers(rank, convert<Partial<tp>>(convert<Replicate<tp>>(shard)), "keep the first");
  };
  for (const GridSize size : {GridSize{1, 2}, GridSize{2, 3}}) {
    on_grid(size, [&](const Rank& rank) {
      check(rank, bf16(0));
      check(rank, std::int32_t{0});
      const auto least = rank.integers<Tensor<float, Square, On<Partial<tp, Min>>>>({4, 3});
      require_integers(rank, convert<Replicate<tp>>(least), "minimum");
      require_integers(rank, convert<Partial<tp, Min>>(convert<Shard<d0, tp>>(least)), "pad with +infinity");
    });
  }
}

TEST_CASE("an rvalue is reduced in place, an lvalue is left alone") {
  on_grid({1, 3}, [](const Rank& rank) {
    auto x = rank.integers<T<Partial<tp>>>({4, 4});
    const std::vector<double> own(x.local().begin(), x.local().end());
    const Usage before = rank.mesh.memory().total();
    const double* where = x.local().data();
    {
      const T<> y = convert<Replicate<tp>>(x);
      require(y.local().data() != where && std::equal(own.begin(), own.end(), x.local().begin()), "lvalue");
    }
    const T<> y = convert<Replicate<tp>>(std::move(x));
    require(y.local().data() == where, "rvalue");
    require(rank.mesh.memory().total().current == before.current, "no memory more");
    require_integers(rank, y, "value");
  });
}

TEST_CASE("ranks may share storage differently: the collective is the same for all of them") {
  on_grid({1, 3}, [](const Rank& rank) {
    const auto whole = rank.integers<T<>>({3, 3});
    // Coordinate 0 shares this with `whole`, the others own theirs.
    require_integers(rank, convert<Replicate<tp>>(view_as<Partial<tp>>(whole)), "an expression");
    auto part = view_as<Partial<tp>>(whole);
    T<Partial<tp>> kept = part;
    if (rank.mesh.coordinate<tp>() == 1) kept = T<Partial<tp>>(rank.mesh, {1, 1});
    require_integers(rank, convert<Replicate<tp>>(part), "an lvalue");
    require_integers(rank, convert<Replicate<tp>>(std::move(part)), "an rvalue");
    require_integers(rank, whole, "what was shared");
  });
}

TEST_CASE("conversions that do nothing alias until one side is written, whatever the size of the group") {
  for (const GridSize size : {GridSize{1, 1}, GridSize{1, 2}}) {
    on_grid(size, [](const Rank& rank) {
      const auto check = [&](auto x, auto y, const char* what) {
        const std::vector<double> first(x.local().begin(), x.local().end());
        const std::vector<double> second(y.local().begin(), y.local().end());
        for (double& value : y.mutable_local()) value += 100;
        require(std::equal(first.begin(), first.end(), x.local().begin()), what);
        for (double& value : x.mutable_local()) value -= 100;
        for (std::size_t i = 0; i < second.size(); ++i) require(y.local()[i] == second[i] + 100, what);
      };
      const auto whole = rank.integers<T<>>({4, 2});
      const auto part = rank.integers<T<Partial<tp>>>({4, 2});
      const auto shard = rank.integers<T<Shard<d0, tp>>>({4, 2});
      require(convert<Replicate<tp>>(whole).local().data() == whole.local().data(), "an alias");
      check(whole, convert<Replicate<tp>>(whole), "equal");
      check(whole, convert<Shard<d0, tp>>(whole), "slice of the outermost dim");
      check(whole, convert<Shard<d1, tp>>(whole), "slice of an inner dim");
      check(whole, convert<Partial<tp>>(whole), "keep the first");
      check(part, convert<Replicate<tp>>(part), "all-reduce");
      check(part, convert<Shard<d1, tp>>(part), "reduce-scatter");
      check(shard, convert<Replicate<tp>>(shard), "all-gather");
      check(shard, convert<Shard<d1, tp>>(shard), "all-to-all");
      check(shard, convert<Partial<tp>>(shard), "pad");
    });
  }
}

TEST_CASE("a slice of the outermost dim shares storage; a group of one shares always") {
  on_grid({1, 2}, [](const Rank& rank) {
    const auto whole = rank.integers<T<>>({5, 3});
    const auto shard = view_as<Shard<d0, tp>>(whole);
    require(shard.local().data() == whole.local().data() + shard.range<d0>().begin * 3, "a view");
    require_piece(rank, shard, "value");
    const auto line = view_as<Shard<d1, dp>>(rank.integers<T<>>({5, 3}));
    require(line.unique(), "the argument is gone");
    require(view_as<Shard<d0, dp>>(whole).local().data() == whole.local().data(), "a group of one");
    require(view_as<Partial<dp>>(whole).local().data() == whole.local().data(), "a group of one");
  });
}

template <class X, class P>
concept can_view = requires(const X& x) {
  view_as<P>(x);
};
static_assert(can_view<T<>, Shard<d0, tp>> && can_view<T<>, Partial<tp>> && can_view<T<Shard<d0, tp>>, Partial<tp>>);
static_assert(can_view<T<Shard<d0, tp>>, Shard<d0, tp>> && can_view<T<Partial<tp>>, Partial<tp>>);
static_assert(detail::is_accepted<detail::view_as_verdict<T<>, Shard<d0, tp>>>);
static_assert(!detail::is_accepted<detail::view_as_verdict<T<Shard<d0, tp>>, Replicate<tp>>>);
static_assert(!detail::is_accepted<detail::view_as_verdict<T<Shard<d0, tp>>, Shard<d1, tp>>>);
static_assert(!detail::is_accepted<detail::view_as_verdict<T<Partial<tp>>, Replicate<tp>>>);
static_assert(!detail::is_accepted<detail::view_as_verdict<T<Partial<tp>>, Shard<d0, tp>>>);

}  // namespace
}  // namespace test
