// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/streaming.hpp"

#include <doctest/doctest.h>

using namespace meshwise;

TEST_CASE("the footprint counts every input and output once") {
  Call call;
  call.element_size = 4;
  call.count = 100;
  const auto of = [&](Operation operation, bool in_place) {
    call.shape = Shape{operation, 3, 0, in_place};
    return detail::footprint(call);
  };
  char memory[2] = {};
  call.input = memory;
  call.output = memory + 1;
  CHECK(of(Operation::reduce, true) == 1600);  // all ranks say in place, and this one is not
  call.output = memory;
  CHECK(of(Operation::reduce, true) == 1200);
  call.output = memory + 1;
  CHECK(of(Operation::all_reduce, false) == 2400);
  CHECK(of(Operation::all_reduce, true) == 1200);
  CHECK(of(Operation::reduce_scatter, false) == 1600);
  CHECK(of(Operation::reduce_scatter, true) == 1200);
  CHECK(of(Operation::all_gather, false) == 1600);
  CHECK(of(Operation::all_gather, true) == 1200);
  CHECK(of(Operation::broadcast, true) == 1200);
  CHECK(of(Operation::all_to_all, false) == 2400);
  CHECK(of(Operation::inclusive_scan, false) == 2400);
  CHECK(of(Operation::exclusive_scan, true) == 1200);
  CHECK(of(Operation::gather, true) == 800);
  CHECK(of(Operation::scatter, true) == 800);
}

TEST_CASE("the threshold grows with the cores, and is never zero") {
  CHECK(detail::streaming_threshold(1) > 0);
  CHECK(detail::streaming_threshold(2) >= detail::streaming_threshold(1));
}
