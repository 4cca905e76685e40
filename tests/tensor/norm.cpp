// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/norm.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class D, class... Ps>
using T = Tensor<double, D, On<Ps...>>;

template <class X>
concept can_norm = requires(const X& x) {
  norm(x);
  sum_of_squares(x);
};
static_assert(can_norm<T<Square>> && can_norm<T<Square, Shard<d0, dp, tp>>> && can_norm<Tensor<int, Dims<>, On<>>>);
static_assert(!can_norm<T<Square, Partial<tp>>> && !can_norm<T<Square, Shard<d0, dp>, Partial<tp, Max>>>);

template <class... Ps>
double check(const Rank& rank, std::size_t m, std::size_t n) {
  const auto x = rank.integers<T<Square, Ps...>>({m, n}, 1);
  double squares = 0;
  for (std::size_t i = 0; i < m * n; ++i) squares += integer(i, 1) * integer(i, 1);
  require_equal(rank.denoted(sum_of_squares(x)), {squares}, "squares");
  const double found = norm(x);
  require(found == std::sqrt(squares), "norm");
  return found;
}

TEST_CASE("every distinct element once, in every layout, uneven and empty parts; the same bits on every rank") {
  for (const GridSize size : all_grids) {
    std::vector<std::vector<double>> norms(static_cast<std::size_t>(size.dp * size.tp));
    on_grid(size, [&](const Rank& rank) {
      std::vector<double>& mine = norms[static_cast<std::size_t>(rank.mesh.world().rank())];
      Draw draw(37);
      for (int i = 0; i < 5; ++i) {
        const std::size_t m = draw.size(), n = draw.size();
        check<>(rank, m, n);
        check<Shard<d0, dp>>(rank, m, n);
        check<Shard<d1, tp>>(rank, m, n);
        check<Shard<d0, dp>, Shard<d1, tp>>(rank, m, n);
        check<Shard<d1, tp, dp>>(rank, m, n);
        check<Shard<d0, Zigzag<dp>>, Shard<d1, Striped<tp>>>(rank, m, n);
        mine.push_back(norm(rank.reals<T<Square, Shard<d0, dp>, Shard<d1, tp>>>({m, n})));
        mine.push_back(norm(rank.reals<T<Square, Shard<d1, tp>>>({m, n})));
      }
    });
    for (const auto& of_rank : norms) CHECK(of_rank == norms[0]);
  }
}

TEST_CASE("what is owed is what shards the tensor; only these axes communicate") {
  on_grid({2, 2}, [](const Rank& rank) {
    const auto x = rank.integers<T<Square, Shard<d1, tp>>>({3, 4});
    static_assert(std::is_same_v<decltype(sum_of_squares(x)), T<Dims<>, Partial<tp>>>);
    const Traffic dp_before = rank.mesh.along<dp>().traffic(), tp_before = rank.mesh.along<tp>().traffic();
    static_cast<void>(norm(x));
    require((rank.mesh.along<tp>().traffic() - tp_before).calls == 1, "one all-reduce");
    require(rank.mesh.along<dp>().traffic() == dp_before, "none over the replicas");
    static_cast<void>(norm(rank.integers<T<Square>>({3, 4})));
    require((rank.mesh.along<tp>().traffic() - tp_before).calls == 1, "none for a replicated tensor");
  });
}

TEST_CASE("squares of narrow floats and of integers are summed in double; nothing has the norm 0") {
  on_grid({1, 2}, [](const Rank& rank) {
    using F = Tensor<float, Dims<flat>, On<Shard<flat, tp>>>;
    require(std::fabs(norm(rank.fill<F>({4}, [](std::size_t) { return 1e30; })) / 2e30 - 1) < 1e-6, "no overflow");
    using B = Tensor<bf16, Dims<flat>, On<Shard<flat, tp>>>;
    require(norm(rank.fill<B>({1024}, [](std::size_t) { return 1.0; })) == 32, "bf16");
    using I = Tensor<std::int8_t, Dims<flat>, On<Shard<flat, tp>>>;
    require(norm(rank.fill<I>({4}, [](std::size_t) { return -100.0; })) == 200, "int8");
    require(norm(T<Square, Shard<d0, tp>>(rank.mesh, {0, 3})) == 0, "nothing");
    require(norm(rank.fill<T<Dims<>>>({}, [](std::size_t) { return -3.0; })) == 3, "a number");
  });
}

}  // namespace
}  // namespace test
