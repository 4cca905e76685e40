// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/softmax.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"

namespace test {
namespace {

using Scores = Dims<batch, heads, seq, key<seq>>;
using Turned = Dims<seq, batch, key<seq>>;
template <class E, class D, class... Ps>
using T = Tensor<E, D, On<Ps...>>;
using Vector = std::vector<double>;

/// Soft-max of rows of n numbers, of which valid(row) count, by its definition in long double.
template <class Valid>
Vector softmax_of(const Vector& x, std::size_t n, double factor, const Valid& valid) {
  Vector y(x.size(), 0.0);
  for (std::size_t row = 0; n != 0 && row < x.size() / n; ++row) {
    long double sum = 0;
    for (std::size_t i = 0; i < valid(row); ++i) sum += std::exp(static_cast<long double>(factor * x[row * n + i]));
    for (std::size_t i = 0; i < valid(row); ++i) {
      y[row * n + i] = static_cast<double>(std::exp(static_cast<long double>(factor * x[row * n + i])) / sum);
    }
  }
  return y;
}

TEST_CASE("soft-max and its gradient in every layout of the other dims") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Scores>& extents : {Extents<Scores>{2, 3, 5, 7}, {1, 1, 2, 1}, {2, 0, 3, 3}, {1, 2, 3, 0}}) {
        using Cut = T<double, Scores, Shard<batch, dp>, Shard<heads, tp>>;
        const auto x = rank.reals<Cut>(extents, 1), dp_ = rank.reals<Cut>(extents, 2);
        const std::size_t n = extents[3];
        const auto every = [n](std::size_t) { return n; };
        const Vector vx = rank.denoted(x), vdp = rank.denoted(dp_);
        const auto p = softmax<key<seq>>(x, 1.5);
        require_close(rank.denoted(p), softmax_of(vx, n, 1.5, every), 1e-14, "value");

        // Its Jacobian by difference quotients, one element of x after the other.
        Vector slope(vx.size());
        for (std::size_t i = 0; i < vx.size(); ++i) {
          const std::size_t row = i / n * n;
          const auto loss = [&](double h) {
            Vector one(vx.begin() + static_cast<std::ptrdiff_t>(row),
                       vx.begin() + static_cast<std::ptrdiff_t>(row + n));
            one[i - row] += h;
            const Vector y = softmax_of(one, n, 1.5, every);
            double sum = 0;
            for (std::size_t k = 0; k < n; ++k) sum += y[k] * vdp[row + k];
            return sum;
          };
          slope[i] = (loss(1e-5) - loss(-1e-5)) / 2e-5;
        }
        require_close(rank.denoted(softmax_backward<key<seq>>(dp_, p, 1.5)), slope, 1e-8, "gradient");
      }
    });
  }
}

TEST_CASE("the causal mask counts global positions, whatever shards the queries") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto check = [&](auto kind, const Extents<typename decltype(kind)::is::dims>& extents,
                             std::size_t rows_after) {
        using X = typename decltype(kind)::is;
        constexpr std::size_t q = X::rank == 4 ? 2 : 0;
        const std::size_t n = extents.back(), queries = extents[q];
        const auto seen = [=](std::size_t row) {
          const std::size_t position = row / rows_after % queries + 1;
          return position < n ? position : n;
        };
        const auto x = rank.reals<X>(extents, 1), dy = rank.reals<X>(extents, 2);
        const auto p = causal_softmax<seq>(x, 2.0);
        const Vector wanted = softmax_of(rank.denoted(x), n, 2.0, seen);
        require_close(rank.denoted(p), wanted, 1e-14, "value");
        // The gradient never reaches what was masked.
        const Vector dx = rank.denoted(softmax_backward<key<seq>>(dy, p, 2.0));
        for (std::size_t i = 0; i < dx.size(); ++i) require(i % n < seen(i / n) || dx[i] == 0, "masked gradient");
      };
      using detail::type;
      check(type<T<double, Scores, Shard<batch, dp>, Shard<heads, tp>>>{}, {2, 3, 5, 5}, 1);
      check(type<T<double, Scores, Shard<batch, dp>, Shard<seq, tp>>>{}, {2, 1, 7, 7}, 1);
      check(type<T<double, Scores, Shard<seq, tp, dp>>>{}, {1, 2, 5, 3}, 1);
      check(type<T<double, Scores, Shard<seq, tp>>>{}, {1, 2, 2, 5}, 1);
      check(type<T<double, Turned, Shard<seq, tp>>>{}, {5, 3, 5}, 3);
      check(type<T<double, Scores, Shard<batch, dp>, Shard<seq, Zigzag<tp>>>>{}, {2, 1, 9, 9}, 1);
      check(type<T<double, Scores, Shard<seq, Zigzag<dp>, tp>>>{}, {1, 2, 11, 11}, 1);
      check(type<T<double, Turned, Shard<seq, Striped<tp>, Zigzag<dp>>>>{}, {13, 2, 13}, 2);
      check(type<T<double, Turned, Shard<seq, Chunked<tp>>>>{}, {4, 3, 5}, 3);
      check(type<T<double, Turned, Shard<seq, tp>>>{}, {0, 3, 5}, 3);
    });
  }
}

TEST_CASE("scores that would overflow, single keys, in place, floats and bf16") {
  on_grid({1, 1}, [](const Rank& rank) {
    using X = T<float, Dims<d0, d1>>;
    const double huge[] = {3e38, 3e38, -3e38, 1e4, -1e4, 0};
    const auto x = rank.fill<X>({2, 3}, [&](std::size_t i) { return huge[i]; });
    require_equal(rank.denoted(softmax<d1>(x)), {0.5, 0.5, 0, 1, 0, 0}, "overflow");
    require_equal(rank.denoted(softmax<d1>(x, -1.0)), {0, 0, 1, 0, 1, 0}, "a negative factor");
    require_equal(rank.denoted(softmax<d1>(rank.reals<X>({3, 1}))), {1, 1, 1}, "one key");

    auto y = rank.reals<X>({5, 9}, 2);
    const auto wanted = softmax_of(rank.denoted(y), 9, 1.0, [](std::size_t) { return std::size_t{9}; });
    const float* where = y.local().data();
    const X kept = softmax<d1>(y);
    require_close(rank.denoted(kept), wanted, 1e-6, "float");
    X p = softmax<d1>(std::move(y));
    require(p.local().data() == where && p.local()[4] == kept.local()[4], "in place");
    X grad = rank.reals<X>({5, 9}, 3);
    where = grad.local().data();
    const X copy = softmax_backward<d1>(grad, p);
    require(copy.local().data() != where && grad.local()[1] == static_cast<float>(real(1, 3)),
            "an lvalue is left alone");
    require(softmax_backward<d1>(std::move(grad), p).local().data() == where, "gradient in place");

    using B = T<bf16, Dims<d0, d1>>;
    require_close(rank.denoted(softmax<d1>(rank.reals<B>({5, 9}, 2))), wanted, 1.0 / 128, "bf16");
  });
}

TEST_CASE("a gradient of other extents is an error") {
  on_grid({1, 1}, [](const Rank& rank) {
    using X = T<double, Dims<d0, d1>>;
    require(contains(error_of([&] {
                       static_cast<void>(softmax_backward<d1>(X(rank.mesh, {2, 3}), X(rank.mesh, {2, 4})));
                     }),
                     "softmax_backward"),
            "extents");
  });
}

}  // namespace
}  // namespace test

using namespace meshwise;

TEST_CASE("what is masked does not count, whatever it is, and has no probability, even in a row of NaN") {
  test::on_grid({1, 1}, [](const test::Rank& rank) {
    using X = Tensor<float, Dims<seq, key<seq>>, Layout<test::Grid>>;
    constexpr std::size_t n = 11;  // not whole vectors
    for (const float visible : {0.5F, std::nanf("")}) {
      const auto x = rank.fill<X>(
          {n, n}, [&](std::size_t i) { return static_cast<double>(i % n <= i / n ? visible : std::nanf("")); });
      const auto p = causal_softmax<seq>(x);
      for (std::size_t i = 0; i < n * n; ++i) {
        const float found = p.local()[i];
        if (i % n > i / n) {
          CHECK(found == 0.0F);
        } else {
          CHECK((std::isnan(visible) ? std::isnan(found) : found * static_cast<float>(i / n + 1) > 0.999F));
        }
      }
    }
  });
}

TEST_CASE("a NaN makes its row NaN and no other") {
  test::on_grid({1, 1}, [](const test::Rank& rank) {
    using X = Tensor<float, Dims<batch, hidden>, Layout<test::Grid>>;
    X x(rank.mesh, {2, 5});
    x.mutable_local()[0] = std::nanf("");
    const auto p = softmax<hidden>(x);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(std::isnan(p.local()[i]));
      CHECK(p.local()[5 + i] == doctest::Approx(0.2));
    }
  });
}
