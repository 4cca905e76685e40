// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/linear.hpp"

#include <doctest/doctest.h>

#include "meshwise/tensor/elementwise.hpp"
#include "support.hpp"

namespace test {
namespace {

template <class... Ps>
using T = Tensor<double, Dims<d0, d1>, On<Ps...>>;
template <class... Ps>
using Row = Tensor<double, Dims<d1>, On<Ps...>>;

struct Twice {
  double operator()(double x) const { return 2 * x; }
};
struct Mix {
  double operator()(double x, double y) const { return 3 * x - 2 * y; }
};
struct Slope {
  double operator()(double x, double y) const { return x * y * y; }
};

template <class F, class X>
concept can_map = requires(const F& f, const X& x) {
  map(f, x);
};
template <class F, class A, class B>
concept can_zip = requires(const F& f, const A& a, const B& b) {
  zip(f, a, b);
};

// A lambda of the user counts as non-linear: of a value, anything goes; of a sum that is owed, nothing.
static_assert(can_map<Twice, T<>> && can_map<Twice, T<Shard<d0, tp>>> && !can_map<Twice, T<Partial<tp>>>);
static_assert(can_map<Linear<Twice>, T<Partial<tp>>> && can_map<Linear<Twice>, T<Partial<dp>, Partial<tp>>>);
static_assert(!can_map<Linear<Twice>, T<Partial<tp, Max>>> && !can_map<Linear<Twice>, T<Partial<tp, Min>>>);
static_assert(!can_map<LinearInFirst<Twice>, T<Partial<tp>>>, "a word about functions of two");
static_assert(can_zip<Mix, T<>, T<>> && !can_zip<Mix, T<Partial<tp>>, T<Partial<tp>>>);
static_assert(!can_zip<Mix, T<Partial<tp>>, T<>> && !can_zip<Mix, T<>, T<Partial<tp>>>);

// Linear in both together: both owe the same sum, or neither.
static_assert(can_zip<Linear<Mix>, T<Partial<tp>>, T<Partial<tp>>> && can_zip<Linear<Mix>, T<>, T<>>);
static_assert(can_zip<Linear<Mix>, T<Partial<tp>>, Row<Partial<tp>>>);
static_assert(!can_zip<Linear<Mix>, T<Partial<tp>>, T<>> && !can_zip<Linear<Mix>, T<>, T<Partial<tp>>>);
static_assert(!can_zip<Linear<Mix>, T<Partial<tp>>, T<Partial<dp>>>);
static_assert(!can_zip<Linear<Mix>, T<Partial<tp, Max>>, T<Partial<tp, Max>>>);

// Linear in the first one.
static_assert(can_zip<LinearInFirst<Slope>, T<Partial<tp>>, T<>> && can_zip<LinearInFirst<Slope>, T<>, T<>>);
static_assert(can_zip<LinearInFirst<Slope>, T<Partial<dp>, Partial<tp>>, Row<>>);
static_assert(!can_zip<LinearInFirst<Slope>, T<>, T<Partial<tp>>>);
static_assert(!can_zip<LinearInFirst<Slope>, T<Partial<tp>>, T<Partial<tp>>>);
static_assert(!can_zip<LinearInFirst<Slope>, T<Partial<dp>>, T<Partial<tp>>>);
static_assert(!can_zip<LinearInFirst<Slope>, T<Partial<tp, Max>>, T<>>);

/// What the functions make of a tensor in the layout of Ps is what they make of its value.
template <class... Ps>
void check(const Rank& rank, const Extents<Dims<d0, d1>>& extents) {
  const auto a = rank.integers<T<Ps...>>(extents, 1), b = rank.integers<T<Ps...>>(extents, 2);
  const auto wanted = [&](auto f) {
    return array(a.size(), [&](std::size_t i) { return f(integer(i, 1), integer(i, 2)); });
  };
  const auto mapped = map(linear(Twice{}), a);
  static_assert(std::is_same_v<std::remove_const_t<decltype(mapped)>, T<Ps...>>);
  require_equal(rank.denoted(mapped), wanted([](double x, double) { return 2 * x; }), "map");
  require_equal(rank.denoted(zip(linear(Mix{}), a, b)), wanted([](double x, double y) { return 3 * x - 2 * y; }),
                "zip");
}

TEST_CASE("linear functions of Partials denote the function of the value, over layouts and sizes") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      Draw draw(5);
      for (int i = 0; i < 6; ++i) {
        const Extents<Dims<d0, d1>> extents{draw.size(), draw.size()};
        check<>(rank, extents);
        check<Shard<d0, dp>, Shard<d1, tp>>(rank, extents);
        check<Partial<tp>>(rank, extents);
        check<Shard<d1, dp>, Partial<tp>>(rank, extents);
        check<Partial<dp>, Partial<tp>>(rank, extents);
        const auto gradient = rank.integers<T<Shard<d0, dp>, Partial<tp>>>(extents, 1);
        const auto value = rank.integers<T<Shard<d0, dp>>>(extents, 2);
        const auto both = zip(linear_in_first(Slope{}), gradient, value);
        static_assert(std::is_same_v<std::remove_const_t<decltype(both)>, T<Shard<d0, dp>, Partial<tp>>>);
        require_equal(
            rank.denoted(both),
            array(value.size(), [](std::size_t at) { return integer(at, 1) * integer(at, 2) * integer(at, 2); }),
            "linear in the first");
      }
    });
  }
}

TEST_CASE("the wrappers are the function for tensors that owe nothing") {
  on_grid({1, 2}, [](const Rank& rank) {
    const auto x = rank.integers<T<Shard<d0, tp>>>({3, 2}, 1);
    const int offset = 7;  // a state is legal, and so is a function that lies: nothing checks the claim
    require_equal(rank.denoted(map(linear([offset](double v) { return v + offset; }), x)),
                  array(6, [](std::size_t i) { return integer(i, 1) + 7; }), "map");
    require_equal(rank.denoted(zip(linear_in_first([](double v, double w) { return v - w; }), x, x)),
                  std::vector<double>(6), "zip");
  });
}

}  // namespace
}  // namespace test
