// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/activation.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"

namespace test {
namespace {

template <class E, class... Ps>
using T = Tensor<E, Dims<d0, d1>, On<Ps...>>;

double gelu_of(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
double slope_of(double x) { return (gelu_of(x + 1e-5) - gelu_of(x - 1e-5)) / 2e-5; }
double argument(std::size_t i) { return 6 * real(i, 1); }

TEST_CASE("the value is the formula's and the slope is its difference quotient, in every layout") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Dims<d0, d1>>& extents : {Extents<Dims<d0, d1>>{5, 7}, {2, 1}, {0, 3}}) {
        using Cut = T<double, Shard<d0, dp>, Shard<d1, tp>>;
        const Cut x = rank.fill<Cut>(extents, argument);
        const Cut dy = rank.reals<Cut>(extents, 2);
        require_close(rank.denoted(gelu(x)), array(x.size(), [](std::size_t i) { return gelu_of(argument(i)); }), 1e-14,
                      "value");
        require_close(rank.denoted(gelu_backward(dy, x)),
                      array(x.size(), [](std::size_t i) { return slope_of(argument(i)) * real(i, 2); }), 1e-8,
                      "gradient");
      }
    });
  }
}

TEST_CASE("a gradient that is still a Partial sum stays one") {
  on_grid({1, 3}, [](const Rank& rank) {
    const auto x = rank.fill<T<double>>({4, 3}, argument);
    const auto dy = rank.reals<T<double, Partial<tp>>>({4, 3}, 2);
    const T<double, Partial<tp>> dx = gelu_backward(dy, x);
    require_close(rank.denoted(dx), array(12, [](std::size_t i) { return slope_of(argument(i)) * real(i, 2); }), 1e-8,
                  "gradient");
  });
}

TEST_CASE("float and bf16 are as accurate as they can be; large arguments are x or 0") {
  on_grid({1, 1}, [](const Rank& rank) {
    const auto wanted = array(1000, [](std::size_t i) { return gelu_of(argument(i)); });
    const auto f = rank.fill<T<float>>({1000, 1}, argument);
    require_close(rank.denoted(gelu(f)), wanted, 1e-6, "float");
    require_close(rank.denoted(gelu(rank.fill<T<bf16>>({1000, 1}, argument))), wanted, 1.0 / 64, "bf16");
    const auto slope = array(1000, [](std::size_t i) { return slope_of(argument(i)); });
    const auto ones = rank.fill<T<float>>({1000, 1}, [](std::size_t) { return 1.0; });
    require_close(rank.denoted(gelu_backward(ones, f)), slope, 2e-6, "slope");
    const double ends[] = {-1e4, -30, 30, 1e4};
    const auto far = rank.fill<T<float>>({4, 1}, [&](std::size_t i) { return ends[i]; });
    require_equal(rank.denoted(gelu(far)), {0, 0, 30, 1e4}, "far");
    require_equal(rank.denoted(gelu_backward(rank.fill<T<float>>({4, 1}, [](std::size_t) { return 1.0; }), far)),
                  {0, 0, 1, 1}, "far slopes");
  });
}

TEST_CASE("relu and its gradient, whole, cut and as a Partial sum; NaN stays") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Dims<d0, d1>>& extents : {Extents<Dims<d0, d1>>{5, 7}, {2, 1}, {0, 3}}) {
        using Cut = T<double, Shard<d0, dp>, Shard<d1, tp>>;
        const Cut x = rank.fill<Cut>(extents, argument);
        const auto wanted = [&](auto f) { return array(x.size(), [&](std::size_t i) { return f(argument(i), i); }); };
        require_equal(rank.denoted(relu(x)), wanted([](double v, std::size_t) { return v > 0 ? v : 0; }), "value");
        const auto slope = wanted([](double v, std::size_t i) { return v > 0 ? integer(i, 2) : 0; });
        require_equal(rank.denoted(relu_backward(rank.integers<Cut>(extents, 2), x)), slope, "gradient");
        require_equal(rank.denoted(relu_backward(rank.integers<Cut>(extents, 2), relu(x))), slope, "from the result");
        const T<double, Partial<tp>> owed =
            relu_backward(rank.integers<T<double, Partial<tp>>>(extents, 2), rank.fill<T<double>>(extents, argument));
        require_equal(rank.denoted(owed), slope, "owed");
      }
    });
  }
  on_grid({1, 1}, [](const Rank& rank) {
    const auto odd = rank.fill<T<float>>({1, 1}, [](std::size_t) { return std::nan(""); });
    require(std::isnan(relu(odd).local()[0]), "NaN");
  });
}

TEST_CASE("an rvalue is written in place") {
  on_grid({1, 1}, [](const Rank& rank) {
    auto x = rank.fill<T<double>>({4, 3}, argument);
    const double* where = x.local().data();
    const auto kept = gelu(x);
    require(kept.local().data() != where && x.local()[3] == argument(3), "an lvalue is left alone");
    const auto y = gelu(std::move(x));
    require(y.local().data() == where && y.local()[3] == kept.local()[3], "an rvalue is not");
  });
}

}  // namespace
}  // namespace test
