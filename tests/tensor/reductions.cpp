// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/reductions.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "support.hpp"

namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class D, class... Ps>
using T = Tensor<double, D, On<Ps...>>;

/// A cube reduced over the dims that are not kept, by a loop.
std::vector<double> reduced(const std::vector<double>& x, const Extents<Cube>& extents, std::array<bool, 3> keep,
                            ReductionKind op, double identity) {
  std::size_t size = 1;
  for (std::size_t d = 0; d < 3; ++d) size *= keep[d] ? extents[d].size() : 1;
  std::vector<double> result(size, identity);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::array<std::size_t, 3> at{i / (extents[1] * extents[2]), i / extents[2] % extents[1], i % extents[2]};
    std::size_t position = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      if (keep[d]) position = position * extents[d] + at[d];
    }
    result[position] = combine(op, result[position], x[i]);
  }
  return result;
}

template <class Op, class Result, class... Ds, class X>
void check(const Rank& rank, const X& x) {
  const auto found = reduce<Op, Ds...>(x);
  static_assert(std::is_same_v<std::remove_const_t<decltype(found)>, Result>);
  const auto keeps = []<class... All>(detail::list<All...>) {
    return std::array<bool, 3>{!detail::contains<All, detail::list<Ds...>>...};
  };
  require_equal(rank.denoted(found),
                reduced(rank.denoted(x), x.extents(), keeps(detail::dims_of<Cube>{}), reduction_kind<Op>,
                        static_cast<double>(Op::template identity<typename X::element>())),
                name_of<Op>() + " to " + name_of<typename Result::dims>());
}

/// Which of two numbers that are not 0 comes later.
struct Later {
  static constexpr const char* name = "later";
  static constexpr ReductionKind kind = ReductionKind::user;
  static constexpr bool commutative = false, linear = false;
  template <Element E>
  static constexpr accumulate_t<E> identity() {
    return 0;
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    return b == A(0) ? a : b;
  }
};
using First = T<Cube, Shard<d0, dp>>;
static_assert(detail::is_accepted<detail::reduce_of<First, Later, d1, d2>>);
static_assert(!detail::is_accepted<detail::reduce_of<First, Later, d0>> &&
              !detail::is_accepted<detail::reduce_of<T<Cube, Partial<dp, Later>>, Later, d1>>);

TEST_CASE("what is not commutative is combined in row-major order, however many there are") {
  on_grid({2, 1}, [](const Rank& rank) {
    const auto number = [](std::size_t i) { return static_cast<double>(i % 7 == 3 ? 0 : i + 1); };
    const auto x = rank.fill<First>({3, 5, 23}, number);
    const auto last = [&](std::size_t first, std::size_t step, std::size_t count) {
      double result = 0;
      for (std::size_t i = 0; i < count; ++i) result = Later::apply(result, number(first + i * step));
      return result;
    };
    require_equal(rank.denoted(reduce<Later, d2>(x)), array(15, [&](std::size_t i) { return last(i * 23, 1, 23); }),
                  "the inner dim");
    require_equal(rank.denoted(reduce<Later, d1>(x)),
                  array(69, [&](std::size_t i) { return last(i / 23 * 115 + i % 23, 23, 5); }), "a middle dim");
    require_equal(rank.denoted(reduce<Later, d1, d2>(x)),
                  array(3, [&](std::size_t i) { return last(i * 115, 1, 115); }), "both");
  });
}

static_assert(!detail::is_accepted<detail::reduce_of<T<Cube>, Sum, d0, d1, d0>>, "a dim named twice");
static_assert(!detail::is_accepted<detail::reduce_of<T<Cube>, Max, hidden>>);

TEST_CASE("every subset of dims of a tensor that two axes shard") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto all = [&](const Extents<Cube>& extents) {
        const auto x = rank.integers<T<Cube, Shard<d0, dp>, Shard<d1, tp>>>(extents);
        check<Sum, T<Cube, Shard<d0, dp>, Shard<d1, tp>>>(rank, x);
        check<Sum, T<Dims<d0, d1>, Shard<d0, dp>, Shard<d1, tp>>, d2>(rank, x);
        check<Sum, T<Dims<d0, d2>, Shard<d0, dp>, Partial<tp>>, d1>(rank, x);
        check<Sum, T<Dims<d1, d2>, Partial<dp>, Shard<d1, tp>>, d0>(rank, x);
        check<Sum, T<Dims<d2>, Partial<dp>, Partial<tp>>, d0, d1>(rank, x);
        check<Sum, T<Dims<d1>, Partial<dp>, Shard<d1, tp>>, d2, d0>(rank, x);
        check<Sum, T<Dims<>, Partial<dp>, Partial<tp>>, d0, d1, d2>(rank, x);
        check<Max, T<Dims<d0>, Shard<d0, dp>, Partial<tp, Max>>, d1, d2>(rank, x);
        check<Max, T<Dims<d0, d1>, Shard<d0, dp>, Shard<d1, tp>>, d2>(rank, x);
        check<Min, T<Dims<d2>, Partial<dp, Min>, Partial<tp, Min>>, d0, d1>(rank, x);
        const auto y = rank.integers<T<Cube, Shard<d0, tp, dp>>>(extents);
        check<Sum, T<Dims<d1, d2>, Partial<dp>, Partial<tp>>, d0>(rank, y);
        check<Sum, T<Dims<d0>, Shard<d0, tp, dp>>, d1, d2>(rank, y);
        const auto z = rank.integers<T<Cube, Shard<d0, Zigzag<dp>>, Shard<d2, Striped<tp>>>>(extents);
        check<Sum, T<Dims<d1, d2>, Partial<dp>, Shard<d2, Striped<tp>>>, d0>(rank, z);
        check<Max, T<Dims<d0, d1>, Shard<d0, Zigzag<dp>>, Partial<tp, Max>>, d2>(rank, z);
      };
      Draw draw(19);
      all({5, 3, 17});
      all({1, 1, 1});
      for (int i = 0; i < (full() ? 60 : 6); ++i) all({draw.size(), draw.size(), draw.size()});
    });
  }
}

TEST_CASE("a Partial is reduced further by the same operation") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto x = rank.integers<T<Cube, Shard<d0, dp>, Partial<tp>>>({4, 3, 2});
      check<Sum, T<Dims<>, Partial<dp>, Partial<tp>>, d0, d1, d2>(rank, x);
      check<Sum, T<Dims<d0>, Shard<d0, dp>, Partial<tp>>, d1, d2>(rank, x);
      const auto m = rank.integers<T<Cube, Partial<tp, Max>>>({4, 3, 2});
      check<Max, T<Dims<d1>, Partial<tp, Max>>, d0, d2>(rank, m);
    });
  }
}

TEST_CASE("sum, max and min are reduce; converted, all ranks hold the result") {
  on_grid({2, 3}, [](const Rank& rank) {
    const auto x = rank.integers<T<Cube, Shard<d0, dp>, Shard<d1, tp>>>({5, 4, 3});
    const std::vector<double> values = rank.denoted(x);
    double total = 0, most = values[0], least = values[0];
    for (const double v : values) {
      total += v;
      most = v > most ? v : most;
      least = v < least ? v : least;
    }
    require(convert<Replicate<dp>, Replicate<tp>>(sum<d0, d1, d2>(x)).local()[0] == total, "sum");
    require(convert<Replicate<dp>, Replicate<tp>>(max<d0, d1, d2>(x)).local()[0] == most, "max");
    require(convert<Replicate<dp>, Replicate<tp>>(min<d0, d1, d2>(x)).local()[0] == least, "min");
  });
}

TEST_CASE("16-bit elements accumulate wide, integers and products work, nothing gives the identity") {
  on_grid({1, 2}, [](const Rank& rank) {
    using B = Tensor<bf16, Dims<d0>, On<>>;
    const auto ones = rank.fill<B>({1000}, [](std::size_t) { return 1.0; });
    require_equal(rank.denoted(sum<d0>(ones)), {1000}, "a bf16 counter would stop at 256");
    using I = Tensor<std::int32_t, Dims<d0, d1>, On<Shard<d0, tp>>>;
    const auto i = rank.fill<I>({3, 9}, [](std::size_t at) { return at == 5 ? -7.0 : 2.0; });
    require_equal(rank.denoted(reduce<Product, d0, d1>(i)), {-7.0 * (1 << 26)}, "product");
    const T<Dims<d0>, Shard<d0, tp>> none(rank.mesh, {0});
    const double infinity = std::numeric_limits<double>::infinity();
    require_equal(rank.denoted(max<d0>(none)), {-infinity}, "maximum of nothing");
    require_equal(rank.denoted(min<d0>(none)), {infinity}, "minimum of nothing");
    require_equal(rank.denoted(reduce<Product, d0>(none)), {1}, "product of nothing");
  });
}

}  // namespace
}  // namespace test
