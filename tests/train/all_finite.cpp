// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/all_finite.hpp"

#include <doctest/doctest.h>

#include "../parallel/support.hpp"

namespace {

using namespace test;

template <class E, class... Ps>
using Matrix = Tensor<E, Dims<hidden, ffn>, Layout<Grid, Ps...>>;

template <class T>
concept can_ask = requires(AllFinite<Grid> all, const T x) {
  all.add(x);
};
static_assert(can_ask<Matrix<float, Shard<ffn, tp>>>);
static_assert(!can_ask<Matrix<float, Partial<dp>>>, "whether a sum overflows is known after it was taken");

/// What every rank is told of a tensor whose element number `at` is `bad`.
template <class T>
void told(const Grid& mesh, double bad, std::size_t at, bool expected) {
  using E = typename T::element;
  const auto x = generate<T>(mesh, {5, 7}, [&](const auto& i) { return static_cast<E>(i.linear == at ? bad : 0.5); });
  require(AllFinite<Grid>(mesh).add(random<T>(mesh, {3, 2}, 1)).add(x).agreed() == expected, "the same on every rank");
}

}  // namespace

TEST_CASE("all finite: one bad element on any rank is one for all, in every element and layout") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}, Ranks{9, 1}}) {
    on_grid(ranks, [](const Grid& mesh) {
      for (const std::size_t at : {0U, 17U, 34U}) {
        for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
          told<Matrix<double>>(mesh, bad, at, false);
          told<Matrix<float, Shard<ffn, tp>>>(mesh, bad, at, false);
          told<Matrix<fp16, Shard<hidden, dp>, Shard<ffn, tp>>>(mesh, bad, at, false);
          told<Matrix<bf16, Shard<hidden, dp>>>(mesh, bad, at, false);
        }
        told<Matrix<fp16, Shard<hidden, dp>>>(mesh, 65519, at, true);  // rounds to the largest
        told<Matrix<fp16, Shard<hidden, dp>>>(mesh, 65520, at, false);
        told<Matrix<double>>(mesh, 1e308, at, true);
        told<Matrix<float>>(mesh, -3e38, at, true);
        told<Matrix<float>>(mesh, 1e-45, at, true);
      }
      require(AllFinite<Grid>(mesh).agreed(), "nothing is finite");
      require(AllFinite<Grid>(mesh).add(Matrix<float>(mesh, {0, 7})).agreed(), "and so is no element");
    });
  }
}

TEST_CASE("all finite: one all-reduce over the mesh, as often as asked") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}, Ranks{1, 4}}) {
    on_grid(ranks, [](const Grid& mesh) {
      AllFinite<Grid> all(mesh);
      const Traffic quiet = mesh.world().traffic(), before = mesh.along<dp, tp>().traffic();
      all.add(random<Matrix<float, Shard<ffn, tp>>>(mesh, {5, 7}, 1)).add(random<Matrix<float>>(mesh, {5, 7}, 2));
      require(mesh.world().traffic() == quiet && mesh.along<dp, tp>().traffic() == before, "adding is local");
      require(all.agreed(), "yes");
      const Traffic one = mesh.along<dp, tp>().traffic() - before;
      const auto n = static_cast<std::uint64_t>(mesh.world().size());
      require(one.calls == (n == 1 ? 0 : 1), "one call");
      require(sum_over_ranks(mesh, one.volume) == 2 * (n - 1) * sizeof(std::uint32_t), "of four bytes");
      require(all.agreed(), "still yes");
    });
  }
}
