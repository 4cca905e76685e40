// SPDX-License-Identifier: Apache-2.0
#include "meshwise/blas/gemm.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

using meshwise::GemmCall;
using Index = std::ptrdiff_t;

struct Draw {
  std::uint64_t state = 1;
  Index below(Index n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<Index>((state >> 33) % static_cast<std::uint64_t>(n));
  }
  // Small integers: every order of summation is exact, so back ends can be compared bit for bit.
  template <class T>
  std::vector<T> integers(Index count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = static_cast<T>(below(9) - 4);
    return values;
  }
};

template <class T>
bool agrees_with_plain(Draw& draw, Index m, Index n, Index k) {
  GemmCall<T> p;
  p.transpose_a = draw.below(2) == 1;
  p.transpose_b = draw.below(2) == 1;
  p.m = m;
  p.n = n;
  p.k = k;
  p.alpha = static_cast<T>(draw.below(5) - 2);
  p.beta = static_cast<T>(draw.below(3) - 1);
  const auto leading = [&](Index row) { return (row < 1 ? 1 : row) + draw.below(3); };
  p.lda = leading(p.transpose_a ? m : k);
  p.ldb = leading(p.transpose_b ? k : n);
  p.ldc = leading(n);
  const std::vector<T> a = draw.integers<T>((p.transpose_a ? k : m) * p.lda);
  const std::vector<T> b = draw.integers<T>((p.transpose_b ? n : k) * p.ldb);
  std::vector<T> c = draw.integers<T>(m * p.ldc);
  std::vector<T> expected = c;
  p.a = a.data();
  p.b = b.data();
  p.c = expected.data();
  meshwise::plain_gemm()(p);
  p.c = c.data();
  meshwise::blas_gemm()(p);
  return c == expected;
}

TEST_CASE("CBLAS and the plain product agree") {
  meshwise::blas::one_thread_per_rank();
  Draw draw;
  const Index sizes[] = {0, 1, 2, 3, 5, 7, 8, 33, 64};
  const auto size = [&] { return sizes[draw.below(9)]; };
  for (int i = 0; i < 300; ++i) {
    const Index m = size(), n = size(), k = size();
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CHECK(agrees_with_plain<float>(draw, m, n, k));
    CHECK(agrees_with_plain<double>(draw, m, n, k));
  }
  CHECK(agrees_with_plain<float>(draw, 65537, 1, 3));
  CHECK(agrees_with_plain<double>(draw, 1000, 64, 1000));
}

TEST_CASE("what is known about the library is consistent") {
  // OpenBLAS has threads and a name; another library has neither.
  CHECK(meshwise::blas::one_thread_per_rank() == (std::string(meshwise::blas::kernel_name()) != ""));
}

TEST_CASE("many ranks may multiply at once") {
  std::vector<int> failures(4, 0);
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    ranks.emplace_back([rank, &failures] {
      meshwise::blas::one_thread_per_rank();
      Draw draw{rank + 1};
      for (int i = 0; i < 60; ++i) {
        const Index m = 1 + draw.below(200), n = 1 + draw.below(200), k = 1 + draw.below(200);
        const bool same =
            i % 2 == 0 ? agrees_with_plain<float>(draw, m, n, k) : agrees_with_plain<double>(draw, m, n, k);
        failures[rank] += same ? 0 : 1;
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(failures == std::vector<int>(4, 0));
}

TEST_CASE("sizes that CBLAS cannot take are refused") {
  float x = 0;
  const Index big = Index(1) << 31;
  const auto message = [](const GemmCall<float>& call) {
    try {
      meshwise::blas_gemm()(call);
    } catch (const meshwise::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message({false, false, 1, 1, 1, 1, &x, 1, &x, 1, 0, &x, big}).find("ldc = 2147483648") != std::string::npos);
  CHECK(message({false, false, 1, 1, -1, 1, &x, 1, &x, 1, 0, &x, 1}).find("k = -1") != std::string::npos);
  CHECK(message({false, false, 1, 2, 1, 1, &x, 1, &x, 1, 0, &x, 2}).find("ldb = 1") != std::string::npos);
}

}  // namespace
