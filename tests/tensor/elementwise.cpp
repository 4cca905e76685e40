// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/elementwise.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <utility>
#include "meshwise/tensor/accumulate.hpp"
#include "support.hpp"

namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class D, class... Ps>
using T = Tensor<double, D, On<Ps...>>;
using Cut = T<Cube, Shard<d0, dp>, Shard<d1, tp>>;

/// The position in an array of the dims Small of an element of a cube.
template <class Small>
std::size_t position_in(std::size_t linear, const Extents<Cube>& extents) {
  const std::array<std::size_t, 3> at{linear / (extents[1] * extents[2]), linear / extents[2] % extents[1],
                                      linear % extents[2]};
  std::size_t position = 0;
  [&]<class... Ds>(detail::list<Ds...>) {
    [[maybe_unused]] const auto one = [&](std::size_t i) { position = position * extents[i] + at[i]; };
    (one(static_cast<std::size_t>(detail::index_of<Ds, detail::dims_of<Cube>>)), ...);
  }(detail::dims_of<Small>{});
  return position;
}

/// A cube beside a tensor of fewer dims, both from integers.
template <class B>
void check_beside(const Rank& rank, const Extents<Cube>& extents) {
  const auto a = rank.integers<Cut>(extents, 1);
  const auto b = rank.integers<B>(detail::extents_from<typename B::dims>(a), 2);
  const auto wanted = [&](auto f) {
    return array(a.size(), [&](std::size_t i) {
      return f(integer(i, 1), integer(position_in<typename B::dims>(i, extents), 2));
    });
  };
  const std::string what = name_of<typename B::dims>();
  require_equal(rank.denoted(a + b), wanted([](double x, double y) { return x + y; }), what + " +");
  require_equal(rank.denoted(a - b), wanted([](double x, double y) { return x - y; }), what + " -");
  require_equal(rank.denoted(a * b), wanted([](double x, double y) { return x * y; }), what + " *");
  const auto f = [](double x, double y) { return x * x - 3 * y; };
  require_equal(rank.denoted(zip(f, a, b)), wanted(f), what + " zip");
  require_equal(rank.denoted(a), array(a.size(), [](std::size_t i) { return integer(i, 1); }), what + " argument");
}

TEST_CASE("two operands, the second one repeated over the dims it lacks") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      Draw draw(17);
      const auto check = [&](const Extents<Cube>& extents) {
        check_beside<Cut>(rank, extents);
        check_beside<T<Dims<d2>>>(rank, extents);
        check_beside<T<Dims<d1>, Shard<d1, tp>>>(rank, extents);
        check_beside<T<Dims<d0>, Shard<d0, dp>>>(rank, extents);
        check_beside<T<Dims<d0, d2>, Shard<d0, dp>>>(rank, extents);
        check_beside<T<Dims<d0, d1>, Shard<d0, dp>, Shard<d1, tp>>>(rank, extents);
        check_beside<T<Dims<>>>(rank, extents);
      };
      check({5, 3, 2});
      check({1, 7, 1});
      for (int i = 0; i < (full() ? 60 : 5); ++i) check({draw.size(), draw.size(), draw.size()});
    });
  }
}

TEST_CASE("Partial sums: linear operations stay exact before the reduction") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      using Part = T<Dims<d0, d1>, Shard<d0, dp>, Partial<tp>>;
      using Whole = T<Dims<d0, d1>, Shard<d0, dp>>;
      const auto a = rank.integers<Part>({3, 5}, 1), b = rank.integers<Part>({3, 5}, 2);
      const auto w = rank.integers<Whole>({3, 5}, 3);
      const auto row = rank.integers<T<Dims<d1>>>({5}, 4);
      const auto check = [&](const Part& found, auto f, const char* what) {
        require_equal(
            rank.denoted(found),
            array(15, [&](std::size_t i) { return f(integer(i, 1), integer(i, 2), integer(i, 3), integer(i % 5, 4)); }),
            what);
      };
      check(
          a + b, [](double x, double y, double, double) { return x + y; }, "sum");
      check(
          a - b, [](double x, double y, double, double) { return x - y; }, "difference");
      check(
          a * w, [](double x, double, double z, double) { return x * z; }, "Partial * Replicate");
      check(
          w * a, [](double x, double, double z, double) { return x * z; }, "Replicate * Partial");
      check(
          a * row, [](double x, double, double, double r) { return x * r; }, "scaled columns");
      check(
          a * -2.5, [](double x, double, double, double) { return -2.5 * x; }, "scaled");
      check(
          map(linear([](double x) { return 4 * x; }), a), [](double x, double, double, double) { return 4 * x; },
          "a linear function");
      check(
          zip(linear([](double x, double y) { return 2 * x - 3 * y; }), a, b),
          [](double x, double y, double, double) { return 2 * x - 3 * y; }, "a linear function of two Partials");
      check(
          zip(linear_in_first([](double x, double y) { return x * y * y; }), a, w),
          [](double x, double, double z, double) { return x * z * z; }, "a function that is linear in the Partial");
      check(
          zip(linear_in_first([](double x, double y) { return x * (y - 1); }), a, row),
          [](double x, double, double, double r) { return x * (r - 1); }, "the same, repeated");
      check(
          a, [](double x, double, double, double) { return x; }, "argument");
      // A row of a Partial belongs to one of the ranks along tp only if the others add nothing.
      const auto bias = view_as<Partial<tp>>(row);
      check(
          a + bias, [](double x, double, double, double r) { return x + r; }, "a bias added once");
    });
  }
}

TEST_CASE("rvalues that share with nobody are written in place, everything else is left alone") {
  on_grid({1, 2}, [](const Rank& rank) {
    const auto triple = [](double x) { return 3 * x; };
    auto x = rank.integers<Cut>({2, 3, 2}, 1);
    const auto b = rank.integers<T<Dims<d2>>>({2}, 2);
    const double* where = x.local().data();
    const Cut shared = x;
    const auto y = map(triple, std::move(x));
    require(y.local().data() != where && shared.local().data() == where, "shared");
    require_equal(rank.denoted(shared), array(12, [](std::size_t i) { return integer(i, 1); }), "shared");

    auto z = map(triple, shared);
    where = z.local().data();
    auto u = map(triple, std::move(z));
    require(u.local().data() == where, "map");
    auto v = std::move(u) + b;
    require(v.local().data() == where, "sum");
    auto w = std::move(v) * 2.0;
    require(w.local().data() == where, "scale");
    require_equal(rank.denoted(w), array(12, [](std::size_t i) { return 2 * (9 * integer(i, 1) + integer(i % 2, 2)); }),
                  "all of it");
    const auto square = std::move(w) * w;  // NOLINT(bugprone-use-after-move): an operand may be itself
    require(square.size() == 12, "itself");
  });
}

TEST_CASE("a const rvalue keeps its elements: of a const tensor, or of a function that returns one") {
  on_grid({1, 2}, [](const Rank& rank) {
    const Cut x = rank.integers<Cut>({2, 3, 2}, 1), b = rank.integers<Cut>({2, 3, 2}, 2);
    const std::vector<double> before(x.local().begin(), x.local().end());
    const auto kept = [&] { return std::equal(before.begin(), before.end(), x.local().begin(), x.local().end()); };
    const double* where = x.local().data();
    require(map([](double v) { return 3 * v; }, std::move(x)).local().data() != where && kept(), "map");
    require((std::move(x) + b).local().data() != where && kept(), "sum");
    require((std::move(x) * b).local().data() != where && kept(), "product");
    require((std::move(x) * 2).local().data() != where && kept(), "scale");
  });
}

TEST_CASE("bf16 and integers; functions may return wider types") {
  on_grid({1, 2}, [](const Rank& rank) {
    using B = Tensor<bf16, Dims<d0>, On<Shard<d0, tp>>>;
    const auto b = rank.integers<B>({7}, 1);
    const auto wanted = [](auto f) { return array(7, [f](std::size_t i) { return f(integer(i, 1)); }); };
    require_equal(rank.denoted(b + b), wanted([](double x) { return 2 * x; }), "bf16 +");
    require_equal(rank.denoted(b * 0.5), wanted([](double x) { return x / 2; }), "bf16 scaled");
    require_equal(rank.denoted(zip([](float x, float y) { return x - y; }, b, b)), wanted([](double) { return 0.0; }),
                  "bf16 zip");
    require_equal(rank.denoted(map([](float x) { return x + 1; }, b)), wanted([](double x) { return x + 1; }), "map");
    using I = Tensor<std::int32_t, Dims<d0>, On<Shard<d0, tp>>>;
    const auto i = rank.integers<I>({7}, 1);
    require_equal(rank.denoted(i * i + i), wanted([](double x) { return x * x + x; }), "int");
  });
}

template <class E>
void check_wrapping(const Rank& rank) {
  using U = std::make_unsigned_t<E>;
  using X = Tensor<E, Dims<d0>, On<>>;
  X x(rank.mesh, {3}), y(rank.mesh, {3});
  const E most = std::numeric_limits<E>::max(), least = std::numeric_limits<E>::lowest();
  const std::array<E, 3> a{most, least, most}, b{most, static_cast<E>(1), static_cast<E>(7)};
  std::copy(a.begin(), a.end(), x.mutable_local().begin());
  std::copy(b.begin(), b.end(), y.mutable_local().begin());
  const auto sum = x + y, difference = y - x, product = x * y, triple = x * 3, negative = x * -1.0;
  X both = x;
  both += y;
  both -= x;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto u = static_cast<std::uint64_t>(static_cast<U>(a[i])),
               v = static_cast<std::uint64_t>(static_cast<U>(b[i]));
    require(sum.local()[i] == static_cast<E>(static_cast<U>(u + v)), "sum");
    require(difference.local()[i] == static_cast<E>(static_cast<U>(v - u)), "difference");
    require(product.local()[i] == static_cast<E>(static_cast<U>(u * v)), "product");
    require(triple.local()[i] == static_cast<E>(static_cast<U>(3 * u)), "scaled");
    require(negative.local()[i] == static_cast<E>(static_cast<U>(0 - u)), "negative");
    require(both.local()[i] == b[i], "there and back");
  }
  for (const double factor : {0.5, 1e300, -1e19, std::numeric_limits<double>::quiet_NaN()}) {
    require(contains(error_of([&] { static_cast<void>(x * factor); }), "a whole number as the factor of integers"),
            "a factor that would be cut off");
  }
}

TEST_CASE("integers wrap, and no factor is cut off") {
  on_grid({1, 1}, [](const Rank& rank) {
    check_wrapping<std::int8_t>(rank);
    check_wrapping<std::uint8_t>(rank);
    check_wrapping<std::int32_t>(rank);
    check_wrapping<std::uint32_t>(rank);
    check_wrapping<std::int64_t>(rank);
    check_wrapping<std::uint64_t>(rank);
    Tensor<std::int64_t, Dims<>, On<>> x(rank.mesh, {});
    x.mutable_local()[0] = 1;
    constexpr std::int64_t odd = (std::int64_t{1} << 60) + 1;
    require((x * odd).local()[0] == odd, "more digits than a double has");
  });
}

TEST_CASE("operands of other extents or on another mesh are errors") {
  on_grid({1, 2}, [](const Rank& rank) {
    const Cut a(rank.mesh, {2, 3, 4});
    const std::string text = error_of([&] { static_cast<void>(a + T<Dims<d2>>(rank.mesh, {5})); });
    require(contains(text, "operator+") && contains(text, "= 4 as in the first") && contains(text, "= 5 in the second"),
            text);
    const Grid other(rank.mesh.world(), {1, 2});
    require(contains(error_of([&] {
                       static_cast<void>(a * Cut(other, {2, 3, 4}));
                     }),
                     "operands on two meshes"),
            "mesh");
  });
}

}  // namespace
}  // namespace test
