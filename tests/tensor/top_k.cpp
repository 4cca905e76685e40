// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/top_k.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "choices.hpp"

namespace test {
namespace {

using namespace choices;

template <class D, class X>
concept can_top_k = requires(const X& x) {
  top_k<D>(x, 1);
};
template <class D, class X>
concept can_distribute = requires(const X& x) {
  distributed_top_k<D>(x, 1);
};
static_assert(can_top_k<d1, Doubles<Cube, Shard<d0, dp>>> && can_top_k<d0, Doubles<Cube, Shard<d1, dp, tp>>>);
static_assert(!can_top_k<d1, Doubles<Cube, Shard<d1, tp>>> && can_distribute<d1, Doubles<Cube, Shard<d1, tp>>>);
static_assert(!can_top_k<d1, Doubles<Cube, Partial<tp>>> && !can_distribute<d1, Doubles<Cube, Partial<tp>>>);
static_assert(!can_top_k<hidden, Doubles<Cube>> && !can_distribute<hidden, Doubles<Cube>>);

double number(std::size_t position, std::uint64_t salt) {
  switch (random_bits(salt, position) % 9) {
    case 0: return std::numeric_limits<double>::quiet_NaN();
    case 1: return -std::numeric_limits<double>::infinity();
    case 2: return std::numeric_limits<double>::infinity();
    default: return std::fmod(integer(position, salt), 4.0) + 0.5;
  }
}

double finite(double v) { return std::isnan(v) ? 1e9 : std::isinf(v) ? std::copysign(1e8, v) : v; }

/// The first k of each row along dim d by a stable sort: values (NaN as 1e9) and indices.
std::array<std::vector<double>, 2> sorted(const std::vector<double>& x, const std::array<std::size_t, 3>& e,
                                          std::size_t d, std::size_t k) {
  std::size_t rows = 1;
  for (std::size_t i = 0; i < 3; ++i) rows *= i == d ? 1 : e[i];
  std::array<std::vector<double>, 2> result{std::vector<double>(rows * k), std::vector<double>(rows * k)};
  each_row(x, e, d, [&](const std::vector<double>& row, const auto& place) {
    std::vector<std::pair<double, std::size_t>> ranked;
    for (const double value : row) ranked.emplace_back(finite(value), ranked.size());
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t j = 0; j < k; ++j) {
      result[0][place(j, k)] = ranked[j].first;
      result[1][place(j, k)] = static_cast<double>(ranked[j].second);
    }
  });
  return result;
}

std::vector<double> finite(std::vector<double> values) {
  for (double& v : values) v = finite(v);
  return values;
}

template <class D, class X>
void check_along(const Rank& rank, const X& x, const std::vector<double>& all, const std::array<std::size_t, 3>& e,
                 std::size_t d, std::size_t k) {
  const std::string what = name_of<D>() + ", k = " + std::to_string(k);
  const auto wanted = sorted(all, e, d, k);
  const auto found = distributed_top_k<D>(x, k);
  using L = typename decltype(found.values)::layout;
  static_assert(std::is_same_v<detail::shard_axes<L, best<D>>, detail::list<>> && !detail::has_partial<L>);
  require(found.values.extents()[d] == k && found.indices.extents() == found.values.extents(), "extents");
  require_equal(finite(rank.denoted(found.values)), wanted[0], "values along " + what);
  require_equal(rank.denoted(found.indices), wanted[1], "indices along " + what);
  if constexpr (can_top_k<D, X>) {
    const auto local = top_k<D>(x, k);
    require_equal(finite(rank.denoted(local.values)), wanted[0], "local values along " + what);
    require_equal(rank.denoted(local.indices), wanted[1], "local indices along " + what);
  }
}

template <class... Ps>
void check(const Rank& rank, const Extents<Cube>& extents, std::uint64_t salt) {
  const std::array<std::size_t, 3> e{extents[0], extents[1], extents[2]};
  const auto value = [salt](std::size_t i) { return number(i, salt); };
  const auto x = rank.fill<Doubles<Cube, Ps...>>(extents, value);
  const std::vector<double> all = array(x.size(), value);
  const auto some = [&]<class D>(detail::type<D>, std::size_t d) {
    // More than a part holds, everything, and nothing are among them.
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}, e[d] / 2, e[d]}) {
      if (k <= e[d]) check_along<D>(rank, x, all, e, d, k);
    }
  };
  some(detail::type<d0>{}, 0);
  some(detail::type<d1>{}, 1);
  some(detail::type<d2>{}, 2);
}

TEST_CASE("global indices in order, ties to the lowest, over layouts and sizes, uneven and empty parts included") {
  for (const GridSize size : grids) {
    on_grid(size, [](const Rank& rank) {
      over_layouts(rank, 29, full() ? 30 : 3, [&]<class... Ps>(const Extents<Cube>& extents, std::uint64_t salt) {
        check<Ps...>(rank, extents, salt);
      });
    });
  }
}

TEST_CASE("long rows, few chosen: what a heap keeps is what sorting everything gives") {
  on_grid({1, 3}, [](const Rank& rank) {
    using X = Tensor<float, Dims<batch, vocab>, On<Shard<vocab, tp>>>;
    const auto value = [](std::size_t i) { return std::floor(uniform(7, i) * 100); };  // about ten of a kind per row
    const auto x = rank.fill<X>({3, 1000}, value);
    const auto wanted = sorted(array(3000, value), {3, 1000, 1}, 1, 50);
    const auto found = distributed_top_k<vocab>(x, 50);
    static_assert(
        std::is_same_v<std::remove_const_t<decltype(found.values)>, Tensor<float, Dims<batch, best<vocab>>, On<>>>);
    require_equal(rank.denoted(found.values), wanted[0], "values");
    require_equal(rank.denoted(found.indices), wanted[1], "indices");
  });
}

TEST_CASE("a router: the best experts of every token, each element type") {
  struct experts : dim {};
  on_grid({2, 2}, [](const Rank& rank) {
    const auto check_element = [&]<class E>(detail::type<E>) {
      using X = Tensor<E, Dims<batch, experts>, On<Shard<batch, dp>>>;
      const auto value = [](std::size_t i) { return static_cast<double>(i * 37 % 7); };
      const auto chosen = top_k<experts>(rank.fill<X>({5, 8}, value), 2);
      static_assert(std::is_same_v<decltype(chosen.indices),
                                   Tensor<std::int64_t, Dims<batch, best<experts>>, On<Shard<batch, dp>>>>);
      const auto wanted = sorted(array(40, value), {5, 8, 1}, 1, 2);
      require_equal(rank.denoted(chosen.values), wanted[0], name_of<E>());
      require_equal(rank.denoted(chosen.indices), wanted[1], name_of<E>());
    };
    check_element(detail::type<float>{});
    check_element(detail::type<bf16>{});
    check_element(detail::type<f8e5m2>{});
    check_element(detail::type<std::uint8_t>{});
    check_element(detail::type<std::int32_t>{});
  });
}

TEST_CASE("only candidates move: k values and indices of every row and rank, over the axes that shard the dim") {
  on_grid({2, 2}, [](const Rank& rank) {
    using X = Tensor<float, Dims<d0, d1>, On<Shard<d0, dp>, Shard<d1, tp>>>;
    const auto x = rank.reals<X>({6, 1000});
    Communicator& over_tp = rank.mesh.along<tp>();
    const auto spent = [&](std::size_t k) {
      const Traffic before = over_tp.traffic();
      static_cast<void>(distributed_top_k<d1>(x, k));
      return rank.total(static_cast<double>((over_tp.traffic() - before).volume));
    };
    const Traffic quiet = rank.mesh.along<dp>().traffic();
    // Two groups of two ranks; each rank receives the k candidates of 3 rows from the other one.
    require(spent(5) == 2 * 2 * 3 * 5 * (4 + 8), "k of each");
    require(spent(700) == 2 * 2 * 3 * 500 * (4 + 8), "never more than there are");
    require(spent(0) == 0, "nothing");
    require(rank.mesh.along<dp>().traffic() == quiet, "nothing over the other axis");
  });
}

TEST_CASE("a k beyond the extent is an error that names both") {
  on_grid({1, 2}, [](const Rank& rank) {
    const Doubles<Dims<d0, d1>, Shard<d0, tp>> x(rank.mesh, {3, 4});
    const std::string text = error_of([&] { static_cast<void>(top_k<d1>(x, 5)); });
    require(contains(text, "top_k (rank ") && contains(text, "at most 4") && contains(text, "k = 5"), text);
    require(contains(error_of([&] { static_cast<void>(distributed_top_k<d0>(x, 4)); }), "distributed_top_k"), "name");
    require(top_k<d1>(Doubles<Dims<d0, d1>>(rank.mesh, {0, 4}), 4).values.size() == 0, "no rows");
  });
}

}  // namespace
}  // namespace test
