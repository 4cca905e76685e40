// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/backward.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;

/// The inner product of a value and a gradient in dual layouts, by its definition: the sum over ranks of the products
/// of what they hold. Where both are replicated there is one copy of each, so that coordinate 0 counts alone.
template <class X, class G>
double pairing(const Rank& rank, const X& x, const G& g) {
  bool counts = true;
  const auto one = [&]<class A>(detail::type<A>) {
    using V = detail::placement_traits<placement_of<typename X::layout, A>>;
    using W = detail::placement_traits<placement_of<typename G::layout, A>>;
    static_assert(V::shard ? W::shard : V::partial ? W::replicate : !W::shard);
    if (V::replicate && W::replicate && rank.mesh.template coordinate<A>() != 0) counts = false;
  };
  one(detail::type<dp>{});
  one(detail::type<tp>{});
  require(x.ranges() == g.ranges(), "duals hold the same indices");
  double sum = 0;
  for (std::size_t i = 0; i < x.local().size(); ++i) sum += x.local()[i] * g.local()[i];
  return rank.total(counts ? sum : 0.0);
}

using Kinds = detail::list<Replicate<tp>, Shard<d0, tp>, Shard<d1, tp>, Partial<tp>>;

/// <f(x), g> = <x, f*(g)> for f = convert<To> on a value placed as From and a gradient that arrives as G.
template <class From, class To, class G>
void check_adjoint(const Rank& rank, const Extents<Square>& extents) {
  if constexpr (std::is_same_v<decltype(detail::dual_steps<On<To>, On<G>>()), detail::list<>> &&
                detail::is_accepted<detail::backward_of<T<From>, T<G>>>) {
    const auto x = rank.reals<T<From>>(extents, 5);
    const auto g = rank.reals<T<G>>(extents, 6);
    const auto y = convert<To>(x);
    const auto dx = backward_to<T<From>>(g);
    const double forward = pairing(rank, y, g), backward = pairing(rank, x, dx);
    const std::string what = name_of<From>() + " -> " + name_of<To>() + ", gradient " + name_of<G>();
    require(std::fabs(forward - backward) <= 1e-12 * (1 + std::fabs(forward)), what);
    // A gradient denotes one tensor, in whatever layout.
    require_close(rank.denoted(dx), rank.denoted(g), 1e-12, what);
  }
}
template <class From, class To, class... G>
void check_gradients(const Rank& rank, const Extents<Square>& extents, detail::list<G...>) {
  (check_adjoint<From, To, G>(rank, extents), ...);
}
template <class From, class... To>
void check_targets(const Rank& rank, const Extents<Square>& extents, detail::list<To...> kinds) {
  (check_gradients<From, To>(rank, extents, kinds), ...);
}
template <class... From>
void check_all(const Rank& rank, const Extents<Square>& extents, detail::list<From...> kinds) {
  (check_targets<From>(rank, extents, kinds), ...);
}

TEST_CASE("the backward of every conversion of one axis is its adjoint") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      check_all(rank, {5, 7}, Kinds{});
      check_all(rank, {2, 1}, Kinds{});
      Draw draw(11);
      for (int i = 0; i < (full() ? 36 : 4); ++i) check_all(rank, {draw.size(), draw.size()}, Kinds{});
    });
  }
}

TEST_CASE("replicate to shard: the user chooses what the padded gradient is") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto x = rank.reals<T<>>({5, 3}, 1);
      const auto y = convert<Shard<d1, tp>>(x);
      const auto g = rank.reals<T<Shard<d1, tp>>>({5, 3}, 2);
      const double forward = pairing(rank, y, g);
      const auto owed = view_as<Partial<tp>>(g);
      const auto whole = convert<Replicate<tp>>(g);
      require(std::fabs(forward - pairing(rank, x, owed)) <= 1e-12, "Partial: a sum is owed");
      require(std::fabs(forward - pairing(rank, x, whole)) <= 1e-12, "Replicate: it has been gathered");
      require_close(rank.denoted(backward_to<T<>>(owed)), rank.denoted(g), 0, "both are duals");
    });
  }
}

TEST_CASE("several axes, whatever order the mesh has") {
  const auto check = []<class Value, class G>(const Rank& rank, detail::type<Value>, detail::type<G>) {
    for (const Extents<Square>& extents : {Extents<Square>{7, 5}, {2, 1}, {0, 3}}) {
      const auto g = rank.reals<G>(extents, 3);
      const auto dx = backward_to<Value>(g);
      static_assert(
          std::is_same_v<
              decltype(detail::dual_steps<typename Value::layout, typename decltype(backward_to<Value>(g))::layout>()),
              detail::list<>>);
      require_close(rank.denoted(dx), rank.denoted(g), 1e-12, "value");
      const auto x = rank.reals<Value>(extents, 4);
      require(std::isfinite(pairing(rank, x, dx)), "they pair");
    }
  };
  for (const GridSize size : few_grids) {
    on_grid(size, [&](const Rank& rank) {
      using detail::type;
      check(rank, type<T<Shard<d0, dp>, Partial<tp>>>{}, type<T<Shard<d0, dp, tp>>>{});
      check(rank, type<T<Shard<d0, dp>, Shard<d1, tp>>>{}, type<T<Shard<d0, dp, tp>>>{});
      check(rank, type<T<Shard<d0, tp, dp>>>{}, type<T<>>{});
      check(rank, type<T<Shard<d0, tp, dp>>>{}, type<T<Partial<dp>, Shard<d0, tp>>>{});
      check(rank, type<T<Shard<d0, dp, tp>>>{}, type<T<Partial<dp>, Partial<tp>>>{});
      check(rank, type<T<Partial<dp>, Partial<tp>>>{}, type<T<Shard<d0, dp>, Shard<d1, tp>>>{});
      check(rank, type<T<>>{}, type<T<Partial<dp>>>{});
    });
  }
}

TEST_CASE("nothing is communicated when the gradient is in a dual already") {
  on_grid({2, 2}, [](const Rank& rank) {
    using X = T<Shard<d0, dp>, Partial<tp>>;
    const auto g = rank.reals<T<Shard<d0, dp>>>({4, 4});
    const Traffic d = rank.mesh.along<dp>().traffic(), t = rank.mesh.along<tp>().traffic();
    const auto dx = backward_to<X>(g);
    require(dx.local().data() == g.local().data(), "the same storage");
    require(rank.mesh.along<dp>().traffic() == d && rank.mesh.along<tp>().traffic() == t, "no traffic");
  });
}

TEST_CASE("seeds: ones in the dual of the loss, so that a sum of shares counts each share once") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      using Loss = Tensor<double, Dims<>, On<Partial<dp>, Partial<tp>>>;
      const auto loss = rank.reals<Loss>({}, 9);
      const Tensor<double, Dims<>, On<>> seed = gradient_seed(loss);
      require(seed.local()[0] == 1, "one");
      require(std::fabs(pairing(rank, loss, seed) - real(0, 9)) < 1e-12, "the loss itself");
      const auto rows = gradient_seed(rank.reals<T<Shard<d0, dp>, Partial<tp>>>({3, 2}));
      static_assert(std::is_same_v<std::remove_const_t<decltype(rows)>, T<Shard<d0, dp>>>);
      require_equal(rank.denoted(rows), std::vector<double>(6, 1.0), "rows");
    });
  }
}

// Which gradients are refused is a matter of types: tests/layout/dual.cpp.
template <class Value, class G>
concept can_go_back = detail::is_accepted<detail::backward_of<Value, G>>;
static_assert(can_go_back<T<Partial<tp>>, T<Shard<d0, tp>>> && !can_go_back<T<>, T<Shard<d0, tp>>>);
static_assert(!can_go_back<T<>, Tensor<double, Dims<d1, d0>, On<>>>);

}  // namespace
}  // namespace test
