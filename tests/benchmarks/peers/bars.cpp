// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/peers/bars.hpp"

#include <doctest/doctest.h>

#include <cstddef>

using namespace peers;

namespace {
constexpr std::size_t k = 1024;
constexpr std::size_t m = k * k;
}  // namespace

TEST_CASE("the bar of a point is that of its row and column") {
  CHECK(registered_bar(Operation::all_reduce, 2, 8) == 1.5);
  CHECK(registered_bar(Operation::all_reduce, 4, k) == 1.1);
  CHECK(registered_bar(Operation::all_reduce, 8, 32 * k) == 2.5);
  CHECK(registered_bar(Operation::all_reduce, 4, 256 * k) == 3.5);
  CHECK(registered_bar(Operation::all_reduce_in_place, 4, m) == 6);
  CHECK(registered_bar(Operation::all_reduce_in_place, 2, 8) == registered_bar(Operation::all_reduce, 2, 8));
  CHECK(registered_bar(Operation::reduce, 8, 16 * m) == 3.5);
  CHECK(registered_bar(Operation::broadcast, 8, 64 * m) == 2.3);
  CHECK(registered_bar(Operation::all_to_all, 2, 256 * m) == 1.5);
  CHECK(registered_bar(Operation::send_recv, 2, 32 * k) == 2);
}

TEST_CASE("nothing is asked between the columns, of other numbers of ranks and of other operations") {
  for (const std::size_t bytes : {2 * k, 16 * k, 64 * k, 2 * m, 8 * m, 512 * m}) {
    CHECK(registered_bar(Operation::all_reduce, 2, bytes) == 0);
  }
  CHECK(registered_bar(Operation::all_reduce, 3, 8) == 0);
  CHECK(registered_bar(Operation::send_recv, 4, 8) == 0);
  CHECK(registered_bar(Operation::barrier, 2, 0) == 0);
}

TEST_CASE("with foreign buffers meshwise is never asked to be slower than a peer") {
  for (int one = 0; one < operations; ++one) {
    double before = 1;
    for (std::size_t bytes = 8; bytes <= 256 * m; bytes *= 2) {
      const double bar = foreign_bar(static_cast<Operation>(one), bytes);
      CHECK(bar >= before);
      before = bar;
    }
  }
  CHECK(foreign_bar(Operation::reduce_scatter, 32 * k) == 1.3);
  CHECK(foreign_bar(Operation::reduce_scatter, m) == 1.8);
  CHECK(foreign_bar(Operation::all_gather, 32 * k) == 1.1);
  CHECK(foreign_bar(Operation::gather, 64 * m) == 1.0);
}

TEST_CASE("a point fails only if all of its interval is below the bar, and the memory could do more") {
  CHECK(judge(0, 0.1, 0) == Verdict::none);
  CHECK(judge(2, 2.0, 0) == Verdict::passes);
  CHECK(judge(2, 1.99, 84.9) == Verdict::fails);
  CHECK(judge(2, 1.99, 85) == Verdict::at_the_limit);
  CHECK(judge(2, 3, 99) == Verdict::passes);
}
