// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/volume.hpp"

#include <doctest/doctest.h>

#include "meshwise/collective/detail/arguments.hpp"

using namespace meshwise;

TEST_CASE("summed over the ranks the volume is exact, however uneven the blocks") {
  for (std::size_t p = 1; p <= 9; ++p) {
    for (const std::size_t count : {0U, 1U, 2U, 3U, 5U, 7U, 8U, 64U, 1000U, 65537U}) {
      const auto sum = [&](Operation operation, std::size_t elements) {
        Call call = detail::span_call<double>("test", operation, nullptr, nullptr, elements, CollectiveOptions{});
        call.shape.ranks = static_cast<int>(p);
        call.shape.root = static_cast<int>(p - 1);
        std::uint64_t total = 0;
        for (std::size_t rank = 0; rank < p; ++rank) total += volume(call, static_cast<int>(rank));
        return total;
      };
      CHECK(sum(Operation::all_reduce, count) == 2 * (p - 1) * count * 8);
      CHECK(sum(Operation::reduce_scatter, count) == (p - 1) * count * 8);
      CHECK(sum(Operation::all_gather, count) == (p - 1) * count * 8);
      CHECK(sum(Operation::broadcast, count) == (p - 1) * count * 8);
      CHECK(sum(Operation::all_to_all, count * p) == (p - 1) * p * count * 8);
    }
  }
}

TEST_CASE("blocks are parts that begin at floor(k N / p)") {
  const std::size_t count = 10;
  Call call = detail::span_call<float>("test", Operation::reduce_scatter, nullptr, nullptr, count, CollectiveOptions{});
  call.shape.ranks = 4;
  CHECK(block_size(call, 0) == 2);
  CHECK(block_size(call, 1) == 3);
  CHECK(block_size(call, 2) == 2);
  CHECK(block_size(call, 3) == 3);
  CHECK(detail::rank_part(~std::size_t{0}, 7, 6).end() == ~std::size_t{0});
}
