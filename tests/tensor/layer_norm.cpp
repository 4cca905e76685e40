// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/layer_norm.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"

namespace test {
namespace {

using Rows = Dims<batch, seq, hidden>;
template <class E, class D, class... Ps>
using T = Tensor<E, D, On<Ps...>>;
using Cut = T<double, Rows, Shard<batch, dp>, Shard<seq, tp>>;
using Parameter = T<double, Dims<hidden>>;
using Vector = std::vector<double>;
constexpr double epsilon = 1e-3;

/// Layer normalisation of rows of n numbers, written down from its definition.
Vector normalised(const Vector& x, const Vector& gain, const Vector& bias) {
  const std::size_t n = gain.size();
  Vector y(x.size());
  for (std::size_t row = 0; n != 0 && row < x.size() / n; ++row) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[row * n + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) variance += std::pow(x[row * n + i] - mean, 2) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      y[row * n + i] = (x[row * n + i] - mean) / std::sqrt(variance + epsilon) * gain[i] + bias[i];
    }
  }
  return y;
}

/// The difference quotients of <normalised(...), dy> with respect to one of its arguments.
template <class F>
Vector slopes(Vector at, const Vector& dy, const F& f) {
  Vector result(at.size());
  const auto loss = [&] {
    const Vector y = f(at);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double before = at[i], h = 1e-5;
    at[i] = before + h;
    const double up = loss();
    at[i] = before - h;
    result[i] = (up - loss()) / (2 * h);
    at[i] = before;
  }
  return result;
}

TEST_CASE("values and gradients against the definition, in every layout") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Rows>& extents : {Extents<Rows>{3, 5, 4}, {1, 2, 7}, {2, 0, 3}, {2, 3, 0}, {2, 2, 1}}) {
        const Extents<Dims<hidden>> width{extents[2]};
        const auto x = rank.reals<Cut>(extents, 1);
        const auto dy = rank.reals<Cut>(extents, 2);
        const auto gain = rank.reals<Parameter>(width, 3);
        const auto bias = rank.reals<Parameter>(width, 4);
        const Vector vx = rank.denoted(x), vdy = rank.denoted(dy), vgain = rank.denoted(gain),
                     vbias = rank.denoted(bias);

        const auto forward = layer_norm(x, gain, bias, epsilon);
        static_assert(std::is_same_v<std::remove_const_t<decltype(forward.y)>, Cut>);
        require_close(rank.denoted(forward.y), normalised(vx, vgain, vbias), 1e-12, "value");
        static_assert(std::is_same_v<typename decltype(forward.mean)::dims, Dims<batch, seq>>);

        const auto backward = layer_norm_backward(dy, x, forward, gain);
        static_assert(std::is_same_v<std::remove_const_t<decltype(backward.x)>, Cut>);
        using Owing = T<double, Dims<hidden>, Partial<dp>, Partial<tp>>;
        static_assert(std::is_same_v<std::remove_const_t<decltype(backward.gain)>, Owing>);
        const auto of = [&](const char* what, const auto& found, const Vector& wanted) {
          require_close(rank.denoted(found), wanted, 1e-7, what);
        };
        of("dx", backward.x, slopes(vx, vdy, [&](const Vector& v) { return normalised(v, vgain, vbias); }));
        of("dgain", backward.gain, slopes(vgain, vdy, [&](const Vector& v) { return normalised(vx, v, vbias); }));
        of("dbias", backward.bias, slopes(vbias, vdy, [&](const Vector& v) { return normalised(vx, vgain, v); }));
      }
    });
  }
}

TEST_CASE("each row has mean 0 and variance 1, whatever its scale and offset") {
  on_grid({1, 2}, [](const Rank& rank) {
    using X = T<float, Dims<seq, hidden>, Shard<seq, tp>>;
    using P = T<float, Dims<hidden>>;
    const auto x = rank.fill<X>({3, 64}, [](std::size_t i) { return 1000.0 + std::pow(10.0, i / 64) * real(i, 1); });
    const auto one = rank.fill<P>({64}, [](std::size_t) { return 1.0; });
    const Vector y = rank.denoted(layer_norm(x, one, P(rank.mesh, {64})).y);
    for (std::size_t row = 0; row < 3; ++row) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        sum += y[row * 64 + i];
        squares += y[row * 64 + i] * y[row * 64 + i];
      }
      require(std::fabs(sum / 64) < 1e-3 && std::fabs(squares / 64 - 1) < 1e-3, "moments");
    }
  });
}

TEST_CASE("bf16 rows keep float statistics; a row alone has none of the other dims") {
  on_grid({1, 1}, [](const Rank& rank) {
    using X = T<bf16, Dims<hidden>>;
    const auto x = rank.integers<X>({9}, 1);
    const auto gain = rank.integers<X>({9}, 2), bias = rank.integers<X>({9}, 3);
    const auto forward = layer_norm(x, gain, bias, epsilon);
    static_assert(std::is_same_v<typename decltype(forward.scale)::element, float>);
    require(forward.mean.size() == 1, "one row");
    require_close(rank.denoted(forward.y), normalised(rank.denoted(x), rank.denoted(gain), rank.denoted(bias)),
                  1.0 / 128, "value");
  });
}

// A parameter that is cut would be read beyond its end.
template <class X, class P>
inline constexpr bool allowed = detail::is_accepted<detail::layer_norm_of<X, P, P>>;
static_assert(allowed<Cut, Parameter> && !allowed<Cut, T<double, Dims<hidden>, Shard<hidden, tp>>>);
static_assert(!allowed<T<double, Rows, Shard<hidden, tp>>, Parameter> && !allowed<Cut, T<float, Dims<hidden>>>);

TEST_CASE("parameters of another width are an error") {
  on_grid({1, 1}, [](const Rank& rank) {
    const Cut x(rank.mesh, {1, 2, 4});
    const Parameter good(rank.mesh, {4}), bad(rank.mesh, {3});
    require(contains(error_of([&] { static_cast<void>(layer_norm(x, bad, bad)); }), "layer_norm"), "gain");
    require(contains(error_of([&] { static_cast<void>(layer_norm(x, good, bad)); }), "hidden = 3 in the second"),
            "bias");
  });
}

}  // namespace
}  // namespace test

using namespace meshwise;

TEST_CASE("the backward refuses what another layer_norm has saved") {
  test::on_grid({1, 1}, [](const test::Rank& rank) {
    using X = Tensor<double, Dims<batch, hidden>, Layout<test::Grid>>;
    using P = Tensor<double, Dims<hidden>, Layout<test::Grid>>;
    const X x(rank.mesh, {4, 8}), larger(rank.mesh, {400, 8});
    const P gain(rank.mesh, {8}), bias(rank.mesh, {8});
    const auto saved = layer_norm(larger, gain, bias);
    CHECK_THROWS_AS(static_cast<void>(layer_norm_backward(x, x, saved, gain)), Error);
  });
}
