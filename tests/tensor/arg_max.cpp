// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/arg_max.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "choices.hpp"
#include "meshwise/tensor/lookup.hpp"
#include "meshwise/tensor/reductions.hpp"

namespace test {
namespace {

using namespace choices;

template <class D, class X>
concept can_arg_max = requires(const X& x) {
  arg_max<D>(x);
};
template <class D, class X>
concept can_distribute = requires(const X& x) {
  distributed_arg_max<D>(x);
};
static_assert(can_arg_max<d1, Doubles<Cube, Shard<d0, dp>>> && can_arg_max<d0, Doubles<Cube, Shard<d1, dp, tp>>>);
static_assert(!can_arg_max<d1, Doubles<Cube, Shard<d1, tp>>> && can_distribute<d1, Doubles<Cube, Shard<d1, tp>>>);
static_assert(!can_arg_max<d1, Doubles<Cube, Partial<tp>>> && !can_distribute<d1, Doubles<Cube, Partial<tp>>>);
static_assert(!can_distribute<d1, Doubles<Cube, Shard<d1, dp>, Partial<tp, Max>>>);
static_assert(!can_arg_max<hidden, Doubles<Cube>> && !can_distribute<hidden, Doubles<Cube>>);

/// Whether a comes before b in an order written down here: by class of number, then by value.
bool larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  if (a == 0 && b == 0) return !std::signbit(a) && std::signbit(b);
  return a > b;
}

/// The index of the first largest element along dim d of an array.
std::vector<double> first_largest(const std::vector<double>& x, const std::array<std::size_t, 3>& extents,
                                  std::size_t d) {
  std::vector<double> result;
  choices::each_row(x, extents, d, [&](const std::vector<double>& row, const auto&) {
    std::size_t best = 0;
    for (std::size_t j = 1; j < row.size(); ++j) best = larger(row[j], row[best]) ? j : best;
    result.push_back(static_cast<double>(best));
  });
  return result;
}

/// Few different values, so that there are many ties; some of them special.
double special(std::size_t position, std::uint64_t salt) {
  switch (random_bits(salt, position) % 13) {
    case 0: return std::numeric_limits<double>::quiet_NaN();
    case 1: return std::numeric_limits<double>::infinity();
    case 2: return 0.0;
    default: return std::fmod(integer(position, salt), 3.0) * (position % 2 == 0 ? 1.0 : -0.0);
    case 3:
    case 4:
    case 5:
    case 6: return -std::numeric_limits<double>::infinity();
    case 7: return -0.0;
  }
}

/// All three dims of x, whose layout shards anything, against loops.
template <class... Ps>
void check(const Rank& rank, const Extents<Cube>& extents, std::uint64_t salt) {
  const std::array<std::size_t, 3> e{extents[0], extents[1], extents[2]};
  for (const bool ties : {false, true}) {
    const auto x = rank.fill<Doubles<Cube, Ps...>>(
        extents, [&](std::size_t i) { return ties ? special(i, salt) : real(i, salt); });
    const std::vector<double> all =
        array(x.size(), [&](std::size_t i) { return ties ? special(i, salt) : real(i, salt); });
    const auto one = [&]<class D>(detail::type<D>, std::size_t d) {
      if (e[d] == 0 && e[(d + 1) % 3] * e[(d + 2) % 3] != 0) {
        require(contains(error_of([&] { static_cast<void>(distributed_arg_max<D>(x)); }), "at least one element"),
                "none");
        return;
      }
      const auto found = distributed_arg_max<D>(x);
      using L = typename decltype(found)::layout;
      static_assert(std::is_same_v<detail::shard_axes<L, D>, detail::list<>> && !detail::has_partial<L>);
      require_equal(rank.denoted(found), first_largest(all, e, d), "distributed " + name_of<D>());
      if constexpr (can_arg_max<D, Doubles<Cube, Ps...>>) {
        const auto local = arg_max<D>(x);
        static_assert(std::is_same_v<decltype(local), decltype(found)>);
        require_equal(rank.denoted(local), first_largest(all, e, d), "local " + name_of<D>());
      }
    };
    one(detail::type<d0>{}, 0);
    one(detail::type<d1>{}, 1);
    one(detail::type<d2>{}, 2);
  }
}

TEST_CASE("global indices, ties to the lowest, over layouts and sizes, uneven and empty parts included") {
  for (const GridSize size : grids) {
    on_grid(size, [](const Rank& rank) {
      over_layouts(rank, 23, full() ? 40 : 5, [&]<class... Ps>(const Extents<Cube>& extents, std::uint64_t salt) {
        check<Ps...>(rank, extents, salt);
      });
    });
  }
}

TEST_CASE("NaN is above everything and the first one wins; what is picked there is the maximum") {
  on_grid({1, 3}, [](const Rank& rank) {
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> rows[] = {{1, nan, infinity, nan, 2},
                                        {-infinity, -infinity, -infinity, -infinity, -infinity},
                                        {-0.0, 0.0, -0.0, 0.0, -0.0},
                                        {infinity, 3, infinity, 4, 5},
                                        {nan, nan, nan, nan, nan}};
    const double wanted[] = {1, 0, 1, 0, 0};
    using X = Doubles<Dims<d0, d1>, Shard<d1, tp>>;
    const auto x = rank.fill<X>({5, 5}, [&](std::size_t i) { return rows[i / 5][i % 5]; });
    const auto at = distributed_arg_max<d1>(x);
    require_equal(rank.denoted(at), std::vector<double>(wanted, wanted + 5), "indices");
    const auto picked = convert<Replicate<tp>>(pick<d1>(x, at));
    const auto top = convert<Replicate<tp>>(max<d1>(x));
    for (std::size_t i = 0; i < 5; ++i) {
      const double a = picked.local()[i], b = top.local()[i];
      require(std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a + 0.0) == std::signbit(b + 0.0), "picked");
    }
  });
}

TEST_CASE("every element type") {
  on_grid({2, 2}, [](const Rank& rank) {
    const auto check_element = [&]<class E>(detail::type<E>) {
      using X = Tensor<E, Dims<d0, d1>, On<Shard<d1, tp>>>;
      const auto value = [](std::size_t i) { return static_cast<double>((i * 5) % 7); };
      const auto x = rank.fill<X>({3, 9}, value);
      require_equal(rank.denoted(distributed_arg_max<d1>(x)), first_largest(array(27, value), {3, 9, 1}, 1),
                    name_of<E>());
      require_equal(rank.denoted(arg_max<d0>(x)), first_largest(array(27, value), {3, 9, 1}, 0), name_of<E>());
    };
    check_element(detail::type<float>{});
    check_element(detail::type<bf16>{});
    check_element(detail::type<fp16>{});
    check_element(detail::type<f8e4m3>{});
    check_element(detail::type<std::int8_t>{});
    check_element(detail::type<std::uint64_t>{});
  });
}

TEST_CASE("only candidates move: two all-reduces over the axes that shard the dim, none over others") {
  on_grid({2, 2}, [](const Rank& rank) {
    using X = Tensor<float, Dims<d0, d1>, On<Shard<d0, dp>, Shard<d1, tp>>>;
    const auto x = rank.reals<X>({6, 1000});
    Communicator& over_tp = rank.mesh.along<tp>();
    const Traffic before = over_tp.traffic(), quiet = rank.mesh.along<dp>().traffic();
    const auto at = distributed_arg_max<d1>(x);
    const Traffic spent = over_tp.traffic() - before;
    require(spent.calls == 2, "two all-reduces");
    // 3 rows here: 2 (n - 1) / n L of a float and of an int64 each, n = 2.
    require(rank.total(static_cast<double>(spent.volume)) == 2 * 2 * 1 * 3 * (4 + 8),
            "of a value and an index per row");
    require(rank.mesh.along<dp>().traffic() == quiet, "nothing else");
    static_assert(std::is_same_v<decltype(at)::layout, On<Shard<d0, dp>>>);
    const Traffic local = over_tp.traffic();
    static_cast<void>(arg_max<d0>(convert<Replicate<dp>>(x)));
    require(over_tp.traffic() == local, "the local form is local");
  });
}

TEST_CASE("a dim without elements is an error, an empty result is not") {
  on_grid({1, 2}, [](const Rank& rank) {
    const Doubles<Dims<d0, d1>, Shard<d0, tp>> x(rank.mesh, {3, 0});
    const std::string text = error_of([&] { static_cast<void>(arg_max<d1>(x)); });
    require(contains(text, "arg_max (rank ") && contains(text, "at least one element along "), text);
    require(contains(error_of([&] { static_cast<void>(distributed_arg_max<d1>(x)); }), "distributed_arg_max"), "name");
    require(distributed_arg_max<d0>(x).size() == 0, "no rows");
  });
}

}  // namespace
}  // namespace test
