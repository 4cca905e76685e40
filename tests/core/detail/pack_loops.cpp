// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/pack_loops.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <vector>

using namespace meshwise;
using namespace meshwise::detail;

namespace {

/// The result of a kernel for each of the widths.
template <class A, class Kernel>
std::vector<A> with_all_widths(const Kernel& kernel) {
  std::vector<A> results{kernel(Width<16>{}), kernel(Width<32>{})};
  in_packs([&](auto width) { results.push_back(kernel(width)); });
  return results;
}

}  // namespace

TEST_CASE_TEMPLATE("every element counts once, whatever the length and the width", E, float, double, bf16) {
  using A = accumulate_t<E>;
  for (std::size_t n = 0; n < 140; ++n) {
    std::vector<E> x(n);
    A sum(0), top(-5);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<E>(static_cast<float>((i * 7 + n) % 16) - 8.0F);
      sum += static_cast<A>(x[i]) * static_cast<A>(x[i]);
      if (top < -static_cast<A>(x[i])) top = -static_cast<A>(x[i]);
    }
    for (const A found : with_all_widths<A>([&](auto width) {
           return sum_packs<A>(
               width, n, [](const auto& a, const auto& b) { return a * b; }, x.data(), x.data());
         })) {
      CHECK(found == sum);
    }
    for (const A found : with_all_widths<A>([&](auto width) {
           return max_packs<A>(
               width, n, A(-5), [](const auto& a) { return -a; }, x.data());
         })) {
      CHECK(found == top);
    }
  }
}

TEST_CASE("sums have the same bits in every width: their order is that of the lanes") {
  for (const std::size_t n : {std::size_t{7}, std::size_t{8}, std::size_t{33}, std::size_t{1000}}) {
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = 1.0F / static_cast<float>(i + 1);
    const auto found =
        with_all_widths<float>([&](auto width) { return sum_packs<float>(width, n, Itself{}, x.data()); });
    for (const float sum : found) CHECK(sum == found[0]);
  }
}

TEST_CASE("what is beyond the end of a reduction does not count, whatever the function makes of it") {
  const std::vector<float> ones(5, 1.0F);
  for (const float sum : with_all_widths<float>([&](auto width) {
         return sum_packs<float>(
             width, ones.size(), [](const auto& x) { return x / x; }, ones.data());
       })) {
    CHECK(sum == 5.0F);
  }
  for (const float top : with_all_widths<float>([&](auto width) {
         return max_packs<float>(
             width, ones.size(), -9.0F, [](const auto& x) { return -x; }, ones.data());
       })) {
    CHECK(top == -1.0F);
  }
}

TEST_CASE_TEMPLATE("a map in place or into another array, of elements of another type too", E, float, double, bf16) {
  using A = accumulate_t<E>;
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<E> x(n, static_cast<E>(3.0F)), y(n + 1, static_cast<E>(-1.0F));
    const std::vector<float> z(n, 0.5F);
    in_packs([&](auto width) {
      map_packs(
          width, y.data(), n, [](const auto& a, const auto& b) { return a + b; }, x.data(), z.data());
      map_packs(
          width, x.data(), n, [](const auto& a) { return a * a; }, x.data());
    });
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(static_cast<A>(x[i]) == A(9));
      CHECK(static_cast<A>(y[i]) == A(3.5));
    }
    CHECK(static_cast<A>(y[n]) == A(-1));
  }
}
