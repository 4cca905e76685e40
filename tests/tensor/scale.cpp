// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/scale.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "support.hpp"

namespace test {
namespace {

template <class E, class... Ps>
using T = Tensor<E, Dims<d0, d1>, On<Ps...>>;
using Cut = T<double, Shard<d0, dp>, Shard<d1, tp>>;
using Part = T<double, Shard<d0, dp>, Partial<tp>>;

template <class X>
concept can_scale = requires(const X& x) {
  2 * x;
  -x;
};
template <class X>
concept can_divide = requires(const X& x) {
  x / 2;
};
template <class X>
concept can_scale_in_place = requires(X& x) {
  x *= 2;
};
static_assert(can_scale<Cut> && can_scale<Part> && can_divide<Part> && can_scale_in_place<Part>);
static_assert(can_scale<T<std::int32_t>> && can_scale_in_place<T<std::int32_t>> && !can_divide<T<std::int32_t>>);
static_assert(!can_scale<T<float, Partial<tp, Max>>> && !can_divide<T<float, Partial<tp, Max>>> &&
              !can_scale_in_place<T<float, Partial<tp, Max>>>);

TEST_CASE("a number before, after and under a tensor, in every layout") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto check = [&]<class X>(const Extents<Dims<d0, d1>>& extents, const X& x) {
        const auto wanted = [&](auto f) { return array(x.size(), [&](std::size_t i) { return f(integer(i, 1)); }); };
        require_equal(rank.denoted(2.5 * x), wanted([](double v) { return 2.5 * v; }), "a number times x");
        require_equal(rank.denoted(x * 2.5), wanted([](double v) { return 2.5 * v; }), "x times a number");
        require_equal(rank.denoted(extents[1] * x), wanted([&](double v) { return double(extents[1].size()) * v; }),
                      "times an extent");
        require_equal(rank.denoted(-x), wanted([](double v) { return -v; }), "minus x");
        require_equal(rank.denoted(x / 4), wanted([](double v) { return v / 4; }), "a quotient");
        X y = x;
        y *= 3;
        require_equal(rank.denoted(y), wanted([](double v) { return 3 * v; }), "in place");
        require_equal(rank.denoted(x), wanted([](double v) { return v; }), "argument");
      };
      for (const Extents<Dims<d0, d1>>& extents : {Extents<Dims<d0, d1>>{5, 7}, {1, 2}, {0, 3}}) {
        check(extents, rank.integers<Cut>(extents, 1));
        check(extents, rank.integers<Part>(extents, 1));
      }
    });
  }
}

TEST_CASE("a quotient is rounded once; minus zero; integers wrap") {
  on_grid({1, 1}, [](const Rank& rank) {
    const auto sevens = rank.fill<T<float>>({1, 1}, [](std::size_t) { return 7.0; });
    require((sevens / 10).local()[0] == 7.0f / 10.0f, "not 7 * 0.1");
    require(std::isinf((sevens / 0).local()[0]), "by 0");
    const auto zero = rank.fill<T<float>>({1, 1}, [](std::size_t) { return 0.0; });
    require(std::signbit((-zero).local()[0]), "-0");
    const auto one = rank.fill<T<std::uint8_t>>({1, 1}, [](std::size_t) { return 1.0; });
    require((-one).local()[0] == 255, "unsigned");
    require(error_of([&] { static_cast<void>(0.5 * one); }).find("a whole number") != std::string::npos, "half");
  });
}

TEST_CASE("an rvalue and x *= c are written in place unless storage is shared") {
  on_grid({1, 1}, [](const Rank& rank) {
    auto x = rank.integers<T<double>>({4, 3}, 1);
    const double* where = x.local().data();
    x *= 2;
    require(x.local().data() == where, "in place");
    const auto kept = x;
    x *= 2;
    require(x.local().data() != where && kept.local().data() == where, "shared");
    require(kept.local()[5] == 2 * integer(5, 1) && x.local()[5] == 4 * integer(5, 1), "values");
    where = x.local().data();
    auto y = -(2 * std::move(x)) / 8;
    require(y.local().data() == where && y.local()[5] == -integer(5, 1), "a chain of rvalues");
  });
}

/// A size times an extent in a template, where clang 14 tries every operator of the extent's namespace.
template <class X>
std::size_t elements_of(const X& x) {
  std::size_t n = 1;
  for (std::size_t i = 0; i < X::rank; ++i) n = n * x.extents()[i];
  return n;
}
TEST_CASE("an extent is a number beside numbers") {
  on_grid({1, 1}, [](const Rank& rank) { require(elements_of(rank.integers<Cut>({4, 3}, 1)) == 12, "product"); });
}

}  // namespace
}  // namespace test
