// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/bench/operations.hpp"

#include <doctest/doctest.h>

namespace {

using harness::bus_factor;
using harness::extent_of;
using harness::least_bytes;
using harness::Verb;

TEST_CASE("names are found again") {
  for (int k = 0; k < harness::verb_count; ++k) {
    Verb verb{};
    CHECK(harness::parse_verb(harness::verb_name(static_cast<Verb>(k)), verb));
    CHECK(static_cast<int>(verb) == k);
  }
  Verb verb = Verb::gather;
  CHECK(!harness::parse_verb("allreduce", verb));
  CHECK(verb == Verb::gather);
}

TEST_CASE("bus factors are those of nccl-tests") {
  CHECK(bus_factor(Verb::all_reduce, 4) == 1.5);
  CHECK(bus_factor(Verb::all_reduce, 1) == 0);
  for (const Verb verb : {Verb::reduce_scatter, Verb::all_gather, Verb::gather, Verb::scatter, Verb::all_to_all}) {
    CHECK(bus_factor(verb, 4) == 0.75);
  }
  for (const Verb verb : {Verb::broadcast, Verb::reduce, Verb::send_recv}) CHECK(bus_factor(verb, 8) == 1);
}

TEST_CASE("extents are near the size that was asked for, with equal blocks that are not empty") {
  CHECK(extent_of(Verb::all_reduce, 1000, 4, 3).count == 250);
  CHECK(extent_of(Verb::all_reduce, 1, 8, 3).whole == 1);
  CHECK(extent_of(Verb::all_gather, 1000, 4, 3).count == 83);
  CHECK(extent_of(Verb::all_gather, 1000, 4, 3).whole == 249);
  CHECK(extent_of(Verb::all_to_all, 8, 4, 8).whole == 8);
  CHECK(extent_of(Verb::barrier, 1000, 4, 3).whole == 0);
}

// Counted by hand for two ranks that hold 100 bytes each.
TEST_CASE("the least that has to be moved") {
  CHECK(least_bytes(Verb::all_reduce, 100, 2, false) == 400);      // two read, two written
  CHECK(least_bytes(Verb::reduce_scatter, 100, 2, false) == 300);  // two read, two halves written
  CHECK(least_bytes(Verb::reduce, 100, 2, false) == 300);
  CHECK(least_bytes(Verb::broadcast, 100, 2, true) == 200);
  CHECK(least_bytes(Verb::all_gather, 100, 2, false) == 300);
  CHECK(least_bytes(Verb::all_gather, 100, 2, true) == 200);  // each reads and writes the other's half
  CHECK(least_bytes(Verb::gather, 100, 2, false) == 200);
  CHECK(least_bytes(Verb::gather, 100, 2, true) == 100);
  CHECK(least_bytes(Verb::all_to_all, 100, 2, false) == 400);
}

}  // namespace
