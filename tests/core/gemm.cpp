// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/gemm.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using meshwise::GemmCall;
using meshwise::detail::GemmTarget;
using Index = std::ptrdiff_t;

/// Small deterministic draws; the values are small integers, so that every order of summation is exact.
struct Draw {
  std::uint64_t state = 1;
  std::uint64_t next() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return state >> 33;
  }
  Index below(Index n) { return static_cast<Index>(next() % static_cast<std::uint64_t>(n)); }
  template <class T, std::size_t N>
  T one_of(const T (&values)[N]) {
    return values[next() % N];
  }
  template <class T>
  std::vector<T> integers(Index count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = static_cast<T>(below(9) - 4);
    return values;
  }
  template <class T>
  std::vector<T> reals(Index count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = static_cast<T>(below(1 << 20)) / static_cast<T>(1 << 19) - T(1);
    return values;
  }
};

std::vector<GemmTarget> targets() {
  std::vector<GemmTarget> all;
  for (const GemmTarget target : {GemmTarget::baseline, GemmTarget::avx2, GemmTarget::avx512}) {
    if (target <= meshwise::detail::best_gemm_target()) all.push_back(target);
  }
  return all;
}

template <class T>
void run(GemmTarget target, const GemmCall<T>& p) {
  meshwise::detail::gemm_strided<T>(
      target, p.m, p.n, p.k, p.alpha, {p.a, p.transpose_a ? 1 : p.lda, p.transpose_a ? p.lda : 1},
      {p.b, p.transpose_b ? 1 : p.ldb, p.transpose_b ? p.ldb : 1}, p.beta, {p.c, p.ldc, 1});
}

template <class T>
void compare_with_loops(Draw& draw, Index m, Index n, Index k) {
  GemmCall<T> p;
  p.transpose_a = draw.below(2) == 1;
  p.transpose_b = draw.below(2) == 1;
  p.m = m;
  p.n = n;
  p.k = k;
  const T alphas[] = {T(1), T(-2), T(0.5), T(0)};
  const T betas[] = {T(0), T(1), T(-0.5)};
  p.alpha = draw.one_of(alphas);
  p.beta = draw.one_of(betas);
  const auto leading = [&](Index row) { return (row < 1 ? 1 : row) + draw.below(3); };
  p.lda = leading(p.transpose_a ? m : k);
  p.ldb = leading(p.transpose_b ? k : n);
  p.ldc = leading(n);
  const std::vector<T> a = draw.integers<T>((p.transpose_a ? k : m) * p.lda);
  const std::vector<T> b = draw.integers<T>((p.transpose_b ? n : k) * p.ldb);
  std::vector<T> before = draw.integers<T>(m * p.ldc);
  p.a = a.data();
  p.b = b.data();

  std::vector<T> expected = before;
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      T sum = T(0);
      for (Index s = 0; s < k; ++s) {
        sum += p.a[p.transpose_a ? s * p.lda + i : i * p.lda + s] * p.b[p.transpose_b ? j * p.ldb + s : s * p.ldb + j];
      }
      T& element = expected[static_cast<std::size_t>(i * p.ldc + j)];
      element = p.alpha * sum + p.beta * element;
    }
  }
  if (p.beta == T(0)) {  // C must not be read, the gaps between its rows must not be written
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) {
        before[static_cast<std::size_t>(i * p.ldc + j)] = std::numeric_limits<T>::quiet_NaN();
      }
    }
  }
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  for (const GemmTarget target : targets()) {
    CAPTURE(static_cast<int>(target));
    std::vector<T> c = before;
    p.c = c.data();
    run(target, p);
    CHECK(c == expected);
  }
  std::vector<T> c = before;
  p.c = c.data();
  meshwise::plain_gemm()(p);
  CHECK(c == expected);
}

TEST_CASE("the plain product equals the loops, on every instruction set") {
  Draw draw;
  const Index sizes[] = {0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 64, 65};
  for (int i = 0; i < 250; ++i) {
    compare_with_loops<float>(draw, draw.one_of(sizes), draw.one_of(sizes), draw.one_of(sizes));
    compare_with_loops<double>(draw, draw.one_of(sizes), draw.one_of(sizes), draw.one_of(sizes));
  }
}

TEST_CASE("sizes beyond one block") {
  Draw draw{7};
  const Index sizes[][3] = {{150, 40, 300}, {300, 1030, 5}, {3, 1100, 520}, {1100, 3, 260}, {1000, 7, 64},
                            {65537, 1, 3},  {1, 65537, 2},  {2, 3, 65537},  {145, 33, 257}, {8, 1000, 8}};
  for (const auto& size : sizes) {
    compare_with_loops<float>(draw, size[0], size[1], size[2]);
    compare_with_loops<double>(draw, size[0], size[1], size[2]);
  }
}

template <class T>
void split_has_the_same_bits(GemmTarget target) {
  Draw draw{11};
  const Index m = 45, n = 77, k = 300;
  const std::vector<T> a = draw.reals<T>(m * k);
  const std::vector<T> b = draw.reals<T>(k * n);
  const auto at = [](std::vector<T>& v, Index i) { return v.data() + i; };
  GemmCall<T> whole{false, false, m, n, k, T(0.3), a.data(), k, b.data(), n, T(0), nullptr, n};
  std::vector<T> expected(static_cast<std::size_t>(m * n));
  whole.c = expected.data();
  run(target, whole);

  for (const Index rows : {Index(1), Index(2), Index(7), Index(16)}) {
    std::vector<T> c(expected.size());
    for (Index i = 0; i < m; i += rows) {
      GemmCall<T> part = whole;
      part.m = m - i < rows ? m - i : rows;
      part.a = a.data() + i * k;
      part.c = at(c, i * n);
      run(target, part);
    }
    CHECK(c == expected);
  }
  for (const Index columns : {Index(1), Index(3), Index(32), Index(50)}) {
    std::vector<T> c(expected.size());
    for (Index j = 0; j < n; j += columns) {
      GemmCall<T> part = whole;
      part.n = n - j < columns ? n - j : columns;
      part.b = b.data() + j;
      part.c = at(c, j);
      run(target, part);
    }
    CHECK(c == expected);
  }

  std::vector<T> a_turned(a.size()), b_turned(b.size()), c(expected.size());
  for (Index i = 0; i < m; ++i) {
    for (Index s = 0; s < k; ++s) *at(a_turned, s * m + i) = a[static_cast<std::size_t>(i * k + s)];
  }
  for (Index s = 0; s < k; ++s) {
    for (Index j = 0; j < n; ++j) *at(b_turned, j * k + s) = b[static_cast<std::size_t>(s * n + j)];
  }
  GemmCall<T> turned{true, true, m, n, k, T(0.3), a_turned.data(), m, b_turned.data(), k, T(0), c.data(), n};
  run(target, turned);
  CHECK(c == expected);
}

TEST_CASE("an element's bits depend on its row and its column only") {
  for (const GemmTarget target : targets()) {
    CAPTURE(static_cast<int>(target));
    split_has_the_same_bits<float>(target);
    split_has_the_same_bits<double>(target);
  }
}

TEST_CASE("rounding stays within the bound of a sum") {
  Draw draw{3};
  const Index m = 19, n = 37, k = 1000;
  const std::vector<float> a = draw.reals<float>(m * k), b = draw.reals<float>(k * n);
  std::vector<float> c(static_cast<std::size_t>(m * n));
  meshwise::plain_gemm()(GemmCall<float>{false, false, m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n});
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (Index s = 0; s < k; ++s) {
        const double product =
            double(a[static_cast<std::size_t>(i * k + s)]) * double(b[static_cast<std::size_t>(s * n + j)]);
        sum += product;
        magnitude += std::fabs(product);
      }
      CHECK(std::fabs(double(c[static_cast<std::size_t>(i * n + j)]) - sum) <= 6e-8 * double(k) * magnitude);
    }
  }
}

TEST_CASE("nothing is read that does not count") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> c(6, 2.0f);
  meshwise::plain_gemm()(GemmCall<float>{false, false, 2, 3, 0, 1, nullptr, 1, nullptr, 3, 0.5f, c.data(), 3});
  CHECK(c == std::vector<float>(6, 1.0f));
  const std::vector<float> bad(6, nan);
  meshwise::plain_gemm()(GemmCall<float>{false, false, 2, 3, 2, 0, bad.data(), 2, bad.data(), 3, 3, c.data(), 3});
  CHECK(c == std::vector<float>(6, 3.0f));
  c.assign(6, nan);
  meshwise::plain_gemm()(GemmCall<float>{false, false, 2, 3, 0, 1, nullptr, 1, nullptr, 3, 0, c.data(), 3});
  CHECK(c == std::vector<float>(6, 0.0f));
  meshwise::plain_gemm()(GemmCall<float>{false, false, 0, 3, 4, 1, nullptr, 4, nullptr, 3, 0, nullptr, 3});
  meshwise::plain_gemm()(GemmCall<float>{false, false, 3, 0, 4, 1, nullptr, 4, nullptr, 1, 0, nullptr, 1});
}

TEST_CASE("bad sizes are refused with both values") {
  float x[4] = {};
  const auto message = [&](GemmCall<float> call) {
    call.a = call.b = x;
    call.c = x;
    try {
      meshwise::plain_gemm()(call);
    } catch (const meshwise::Error& error) {
      CHECK(error.code() == meshwise::Code::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message({false, false, -1, 1, 1}).find("m = -1") != std::string::npos);
  CHECK(message({false, false, 2, 2, 2, 1, x, 1, x, 2, 0, x, 2}).find("lda >= max(1, 2)") != std::string::npos);
  CHECK(message({false, true, 1, 1, 2, 1, x, 2, x, 1, 0, x, 1}).find("ldb = 1") != std::string::npos);
  CHECK(message({false, false, 1, 2, 1, 1, x, 1, x, 2, 0, x, 0}).find("ldc = 0") != std::string::npos);
}

}  // namespace
