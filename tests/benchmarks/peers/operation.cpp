// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/peers/operation.hpp"

#include <doctest/doctest.h>

#include <cstddef>

using namespace peers;

TEST_CASE("operations are found by their names, and by no other") {
  for (int one = 0; one < operations; ++one) CHECK(operation_named(operation_names[one]) == one);
  CHECK(operation_named("allreduce") == operations);
  CHECK(operation_named("") == operations);
}

TEST_CASE("vectors that are cut into blocks have one element for each rank at least") {
  for (const int ranks : {2, 3, 8}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{1000}, std::size_t{1} << 20}) {
      for (int one = 0; one < operations; ++one) {
        const auto operation = static_cast<Operation>(one);
        const std::size_t count = count_of(operation, bytes, ranks);
        if (operation == Operation::barrier) {
          CHECK(count == 0);
        } else if (has_blocks(operation)) {
          CHECK(count == block_of(bytes, ranks) * static_cast<std::size_t>(ranks));
          CHECK(count >= static_cast<std::size_t>(ranks));
        } else {
          CHECK(count >= 1);
        }
      }
    }
  }
  CHECK(count_of(Operation::all_reduce, std::size_t{1} << 20, 3) == 1U << 18);
}

TEST_CASE("the bus factor and the least traffic agree with the sums over ranks") {
  CHECK(bus_factor(Operation::all_reduce, 4) == doctest::Approx(1.5));
  CHECK(bus_factor(Operation::all_gather, 4) == doctest::Approx(0.75));
  CHECK(bus_factor(Operation::broadcast, 4) == 1);
  CHECK(least_traffic(Operation::all_reduce, 100, 4) == 800);      // 4 inputs, 4 outputs
  CHECK(least_traffic(Operation::reduce_scatter, 100, 4) == 500);  // 4 inputs, 4 quarters
  CHECK(least_traffic(Operation::all_gather, 100, 4) == 500);
  CHECK(least_traffic(Operation::broadcast, 100, 4) == 400);  // one input, 3 outputs
  CHECK(least_traffic(Operation::gather, 100, 4) == 200);
  CHECK(least_traffic(Operation::barrier, 0, 4) == 0);
}
