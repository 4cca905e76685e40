// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/detail/cyclic.hpp"

#include <doctest/doctest.h>

TEST_CASE("cyclic runs cover consecutive slots in order, in as few runs as can be") {
  for (int slots = 1; slots <= 9; ++slots) {
    for (int first = 0; first < slots; ++first) {
      for (int count = 0; count <= slots; ++count) {
        int covered = 0;
        int runs = 0;
        meshwise::detail::cyclic_runs(slots, first, count, [&](int slot, int offset, int length) {
          CHECK(offset == covered);
          CHECK(slot == (first + offset) % slots);
          CHECK(length > 0);
          CHECK(slot + length <= slots);
          covered += length;
          ++runs;
        });
        CHECK(covered == count);
        CHECK(runs == (count == 0 ? 0 : first + count > slots ? 2 : 1));
      }
    }
  }
}
