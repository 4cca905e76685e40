// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/transition_kind.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace meshwise;

static_assert(communicates(Transition::all_reduce) && communicates(Transition::reduce_scatter) &&
              communicates(Transition::all_gather) && communicates(Transition::all_to_all) &&
              communicates(Transition::exchange));
static_assert(!communicates(Transition::slice) && !communicates(Transition::keep_first) &&
              !communicates(Transition::pad) && !communicates(Transition::equal));

TEST_CASE("volumes are those of the table, and nothing in a group of one") {
  for (const int n : {1, 2, 3, 9}) {
    for (const double bytes : {0.0, 8.0, 1e9}) {
      CHECK(transition_volume(Transition::all_reduce, n, bytes) == 2 * (n - 1) * bytes);
      CHECK(transition_volume(Transition::reduce_scatter, n, bytes) == (n - 1) * bytes);
      CHECK(transition_volume(Transition::all_gather, n, bytes) == (n - 1) * bytes);
      CHECK(transition_volume(Transition::all_to_all, n, bytes) == doctest::Approx((n - 1) * bytes / n));
      CHECK(transition_volume(Transition::exchange, n, bytes) == doctest::Approx((n - 1) * bytes / n));
      for (const Transition t : {Transition::slice, Transition::keep_first, Transition::pad, Transition::equal}) {
        CHECK(transition_volume(t, n, bytes) == 0);
      }
    }
  }
  // all_reduce is reduce_scatter and all_gather.
  CHECK(transition_volume(Transition::all_reduce, 5, 100) ==
        transition_volume(Transition::reduce_scatter, 5, 100) + transition_volume(Transition::all_gather, 5, 100));
}

TEST_CASE("transitions have names") {
  CHECK(std::string(transition_name(Transition::all_reduce)) == "all_reduce");
  CHECK(std::string(transition_name(Transition::exchange)) == "exchange");
  CHECK(std::string(transition_name(Transition::slice)) == "slice");
  CHECK(std::string(transition_name(Transition::pad)) == "pad");
  CHECK(std::string(transition_name(Transition::equal)) == "equal");
}

}  // namespace
