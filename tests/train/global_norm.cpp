// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/global_norm.hpp"

#include <doctest/doctest.h>

#include "../parallel/support.hpp"

namespace {

using namespace test;

template <class... Ps>
using Matrix = Tensor<double, Dims<hidden, ffn>, Layout<Grid, Ps...>>;

double square(const std::vector<double>& values) { return dot(values, values); }

// A sum that is owed has no norm yet.
template <class T>
concept has_norm = requires(GlobalNorm<Grid> norm, const T x) {
  norm.add(x);
};
static_assert(has_norm<Matrix<Shard<ffn, tp>>>);
static_assert(!has_norm<Matrix<Partial<dp>>>);
static_assert(!has_norm<Matrix<Shard<ffn, tp>, Partial<dp>>>);

/// The norm of one matrix in the layout of Ps, and its square by loops over the distinct elements.
template <class... Ps>
void alone(const Grid& mesh, const Extents<Dims<hidden, ffn>>& extents, GlobalNorm<Grid>& all, double& total,
           std::uint64_t seed) {
  const auto x = random<Matrix<Ps...>>(mesh, extents, seed);
  const double expected = square(whole(random<Matrix<>>(mesh, extents, seed)));
  require_near({GlobalNorm<Grid>(mesh).add(x).norm()}, {std::sqrt(expected)}, 1e-14, "one tensor");
  all.add(x);
  total += expected;
}

}  // namespace

TEST_CASE("global norm: every distinct element once, in every layout, alone and together") {
  Draw draw(5);
  constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 64};
  const int cases = full() ? 300 : 20;
  for (int i = 0; i < cases; ++i) {
    const Ranks ranks = draw.ranks();
    const Extents<Dims<hidden, ffn>> extents{draw.of(sizes), draw.of(sizes)};
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CAPTURE(extents[0]);
    CAPTURE(extents[1]);
    const auto check = [&](const Grid& mesh) {
      GlobalNorm<Grid> all(mesh);
      double total = 0;
      alone<>(mesh, extents, all, total, 1);
      alone<Shard<hidden, dp>>(mesh, extents, all, total, 2);
      alone<Shard<ffn, tp>>(mesh, extents, all, total, 3);
      alone<Shard<hidden, tp>>(mesh, extents, all, total, 4);
      alone<Shard<hidden, dp>, Shard<ffn, tp>>(mesh, extents, all, total, 5);
      alone<Shard<ffn, dp>, Shard<hidden, tp>>(mesh, extents, all, total, 6);
      require_near({all.norm()}, {std::sqrt(total)}, 1e-14, "all tensors");
      // One dim over both axes, in both orders: the whole of it is the same.
      const double expected = std::sqrt(square(whole(random<Matrix<>>(mesh, extents, 7))));
      const auto major = random<Matrix<Shard<ffn, dp, tp>>>(mesh, extents, 7);
      const auto minor = random<Matrix<Shard<ffn, tp, dp>>>(mesh, extents, 7);
      require_near({GlobalNorm<Grid>(mesh).add(major).norm()}, {expected}, 1e-14, "dp, tp");
      require_near({GlobalNorm<Grid>(mesh).add(minor).norm()}, {expected}, 1e-14, "tp, dp");
    };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}

TEST_CASE("global norm: one small all-reduce over the mesh, the same bits on every rank, as often as asked") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}, Ranks{4, 2}, Ranks{1, 5}}) {
    std::vector<double> norms(static_cast<std::size_t>(ranks.data * ranks.tensor));
    on_grid(ranks, [&](const Grid& mesh) {
      GlobalNorm<Grid> norm(mesh);
      const Traffic quiet = mesh.along<tp>().traffic();
      norm.add(random<Matrix<Shard<ffn, tp>>>(mesh, {5, 7}, 1)).add(random<Matrix<>>(mesh, {5, 7}, 2));
      require(mesh.along<tp>().traffic() == quiet, "adding is local");
      double first = 0;
      const Traffic over_dp = mesh.along<dp>().traffic(), before = mesh.along<dp, tp>().traffic();
      const Traffic over_tp = traffic_of<tp>(mesh, [&] { first = norm.norm(); });
      const Traffic once = mesh.along<dp, tp>().traffic() - before;
      const auto n = static_cast<std::uint64_t>(mesh.world().size());
      require(once.calls == (n == 1 ? 0 : 1), "over the mesh");
      if (mesh.size<dp>() > 1 && mesh.size<tp>() > 1) {
        require(over_tp.calls == 0 && mesh.along<dp>().traffic() == over_dp, "not axis by axis");
      }
      require(norm.norm() == first, "asking changes nothing");
      require(sum_over_ranks(mesh, once.volume) == 2 * (n - 1) * GlobalNorm<Grid>::bytes, "bytes");
      norms[static_cast<std::size_t>(mesh.world().rank())] = first;
    });
    for (double n : norms) CHECK(n == norms[0]);
    CHECK(norms[0] > 1);
  }
}

TEST_CASE("global norm: the same bits in every layout, on any number of ranks, in any order") {
  double expected = 0;
  const auto floats = []<class... Ps>(const Grid& mesh, std::uint64_t seed, detail::list<Ps...>) {
    using T = Tensor<float, Dims<hidden, ffn>, Layout<Grid, Ps...>>;
    return generate<T>(mesh, {37, 29}, [&](const auto& i) {
      return static_cast<float>(normal(seed, i.linear) * std::exp(8 * normal(seed + 1, i.linear)));
    });
  };
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}, Ranks{4, 2}, Ranks{1, 5}, Ranks{7, 1}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      const auto check = [&](auto first, auto second) {
        const auto a = floats(mesh, 1, first);
        const auto c = floats(mesh, 3, second);
        const double forwards = GlobalNorm<Grid>(mesh).add(a).add(c).norm();
        require(GlobalNorm<Grid>(mesh).add(c).add(a).norm() == forwards, "order");
        if (mesh.world().size() == 1) {
          expected = forwards;
        } else {
          require(forwards == expected, "one rank has the same bits");
        }
      };
      check(detail::list<>{}, detail::list<>{});
      check(detail::list<Shard<hidden, dp>>{}, detail::list<>{});
      check(detail::list<Shard<hidden, dp>, Shard<ffn, tp>>{}, detail::list<Shard<hidden, Striped<tp>>>{});
      check(detail::list<Shard<ffn, dp, tp>>{}, detail::list<Shard<hidden, Zigzag<dp>>>{});
      // Flat buckets: each rank counts a run of the elements.
      const auto a = floats(mesh, 1, detail::list<>{}), c = floats(mesh, 3, detail::list<>{});
      const auto part = [&](std::span<const float> x) {
        const Range own = split(x.size(), static_cast<std::size_t>(mesh.world().size()),
                                static_cast<std::size_t>(mesh.world().rank()));
        return x.subspan(own.begin, own.size);
      };
      require(GlobalNorm<Grid>(mesh).add_elements(part(a.local())).add_elements(part(c.local())).norm() == expected,
              "a flat bucket");
    });
  }
  CHECK(expected > 0);
}

TEST_CASE("global norm: one element that is no number, on one rank, makes the norm so on all") {
  const auto norm_of = [](double bad) {
    std::vector<double> norms(6);
    on_grid({2, 3}, [&](const Grid& mesh) {
      const auto x = generate<Matrix<Shard<hidden, dp>, Shard<ffn, tp>>>(
          mesh, {5, 7}, [&](const auto& i) { return i.linear == 33 ? bad : 1.0; });
      norms[static_cast<std::size_t>(mesh.world().rank())] = GlobalNorm<Grid>(mesh).add(x).norm();
    });
    return norms;
  };
  for (const double n : norm_of(-HUGE_VAL)) CHECK(n == HUGE_VAL);
  for (const double n : norm_of(std::nan(""))) CHECK(std::isnan(n));
  for (const double n : norm_of(1e200)) CHECK(n == HUGE_VAL);  // its square is
}

TEST_CASE("global norm: nothing added is zero, float squares are summed in double") {
  on_grid({2, 2}, [](const Grid& mesh) {
    require(GlobalNorm<Grid>(mesh).norm() == 0, "nothing");
    using F = Tensor<float, Dims<flat>, Layout<Grid, Shard<flat, tp>>>;
    const auto large = generate<F>(mesh, {3}, [](const auto&) { return 1e30F; });
    require_near({GlobalNorm<Grid>(mesh).add(large).norm() / 1e30}, {std::sqrt(3.0)}, 1e-6, "no overflow in float");
    using Scalar = Tensor<float, Dims<>, Layout<Grid>>;
    Scalar three(mesh, {}), four(mesh, {});
    three.mutable_local()[0] = 3;
    four.mutable_local()[0] = 4;
    require(GlobalNorm<Grid>(mesh).add(three).add(four).norm() == 5, "scalars");
  });
}
