// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/einsum_planner.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace {

using namespace meshwise::detail;
using Index = std::ptrdiff_t;

struct Draw {
  std::uint64_t state = 1;
  Index below(Index n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<Index>((state >> 33) % static_cast<std::uint64_t>(n));
  }
};

EinsumPlan plan(const Labels& a, const Labels& b, const Labels& c, unsigned forced = pack_none) {
  return EinsumPlanner(a, b, c).plan(forced, true);
}

TEST_CASE("adjacent labels merge into one dimension of the product") {
  const Index b = 4, s = 30, h = 64, f = 50;
  const EinsumPlan p = plan(Labels{}.add(0, b, s * h).add(1, s, h).add(2, h, 1), Labels{}.add(2, h, f).add(3, f, 1),
                            Labels{}.add(0, b, s * f).add(1, s, f).add(3, f, 1));
  CHECK(p.products);
  CHECK(p.count == 0);
  CHECK(p.m.extent == b * s);
  CHECK(p.n.extent == f);
  CHECK(p.k.extent == h);
  CHECK(p.lda == h);
  CHECK(p.ldb == f);
  CHECK(p.ldc == f);
  CHECK_FALSE(p.transpose_a);
  CHECK_FALSE(p.transpose_b);
  CHECK_FALSE(p.transpose_c);
}

TEST_CASE("labels that only some operands step through together stay loops") {
  // C has a gap between its batches, so batch and row do not merge; the larger one becomes the rows.
  const Index b = 4, s = 30, h = 64, f = 50;
  const EinsumPlan p = plan(Labels{}.add(0, b, s * h).add(1, s, h).add(2, h, 1), Labels{}.add(2, h, f).add(3, f, 1),
                            Labels{}.add(0, b, s * f + 1).add(1, s, f).add(3, f, 1));
  CHECK(p.products);
  CHECK(p.count == 1);
  CHECK(p.first_sum == 1);
  CHECK(p.loops[0].extent == b);
  CHECK(p.m.extent == s);
}

TEST_CASE("a result whose rows are not contiguous is computed as its transpose") {
  const Index m = 40, n = 30, k = 50;
  const EinsumPlan p =
      plan(Labels{}.add(0, m, k).add(1, k, 1), Labels{}.add(1, k, 1).add(2, n, k), Labels{}.add(0, m, 1).add(2, n, m));
  CHECK(p.products);
  CHECK(p.packed == pack_none);
  CHECK(p.transpose_c);
  CHECK(p.transpose_b);
  CHECK_FALSE(p.transpose_a);
  CHECK(p.ldc == m);
}

TEST_CASE("a copy is made only where it is cheaper than many products") {
  const auto with_batch = [](Index batch, Index size) {
    // The batch is innermost in A.
    return plan(Labels{}.add(0, size, size * batch).add(1, size, batch).add(2, batch, 1),
                Labels{}.add(2, batch, size * size).add(1, size, size).add(3, size, 1),
                Labels{}.add(2, batch, size * size).add(0, size, size).add(3, size, 1));
  };
  const EinsumPlan large = with_batch(4, 64);
  CHECK(large.products);
  CHECK(large.packed == pack_a);
  CHECK(large.m.extent == 64);
  CHECK(large.k.extent == 64);
  CHECK(large.n.extent == 64);
  const EinsumPlan tiny = with_batch(4, 2);
  CHECK_FALSE(tiny.products);
  CHECK(tiny.packed == pack_none);
}

TEST_CASE("forced copies lie so that everything merges") {
  // All operands in awkward orders; packed, it is one product.
  const Index x = 6, y = 7, u = 8, v = 9, f = 10;
  const Labels a = Labels{}.add(0, x, 1).add(2, u, x).add(1, y, x * u).add(3, v, x * u * y);
  const Labels b = Labels{}.add(3, v, 1).add(4, f, v).add(2, u, v * f);
  const Labels c = Labels{}.add(1, y, 1).add(4, f, y).add(0, x, y * f);
  const EinsumPlan p = plan(a, b, c, pack_a | pack_b | pack_c);
  CHECK(p.products);
  CHECK(p.count == 0);
  CHECK(p.m.extent == x * y);
  CHECK(p.k.extent == u * v);
  CHECK(p.n.extent == f);
  CHECK(p.dense_a.count == 4);
}

TEST_CASE("every plan covers the work once, with the sums innermost") {
  Draw draw;
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    Labels a, b, c;
    Index stride_a = 1, stride_b = 1, stride_c = 1;
    Index work = 1;
    const Index count = draw.below(7);
    for (int name = 0; name < count; ++name) {
      const Index extent = 1 + draw.below(20), kind = draw.below(4);
      work *= extent;
      if (kind != 2) a.add(name, extent, stride_a), stride_a *= extent + draw.below(2);
      if (kind != 1) b.add(name, extent, stride_b), stride_b *= extent + draw.below(2);
      if (kind != 3) c.add(name, extent, stride_c), stride_c *= extent + draw.below(2);
    }
    for (unsigned forced = 0; forced < 8; ++forced) {
      const EinsumPlan p = plan(a, b, c, forced);
      CHECK((p.packed & forced) == forced);
      Index covered = p.m.extent * p.n.extent * p.k.extent;
      bool ordered = true;
      for (int loop = 0; loop < p.count; ++loop) {
        covered *= p.loops[loop].extent;
        ordered = ordered && (p.loops[loop].c == 0) == (loop >= p.first_sum);
      }
      CHECK(covered == work);
      CHECK(ordered);
      CHECK(p.m.b == 0);
      CHECK(p.n.a == 0);
      CHECK(p.k.c == 0);
      if (!p.products) continue;
      CHECK(p.lda >= (p.transpose_a ? p.m.extent : p.k.extent));
      CHECK(p.ldb >= (p.transpose_b ? p.k.extent : p.n.extent));
      CHECK(p.ldc >= (p.transpose_c ? p.m.extent : p.n.extent));
    }
  }
}

}  // namespace
