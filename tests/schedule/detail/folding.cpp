// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/detail/folding.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

using meshwise::detail::Folding;

TEST_CASE("workers stand for consecutive ranks, one or two each, spread evenly") {
  for (int p = 1; p <= 130; ++p) {
    for (const int favourite : {0, 1, p / 2, p - 1}) {
      if (favourite >= p) continue;
      CAPTURE(p);
      CAPTURE(favourite);
      const Folding folding(p, favourite);
      CHECK(folding.size() <= p);
      CHECK(2 * folding.size() > p);
      CHECK(folding.rounds() == (folding.size() == p ? 0 : 1));
      CHECK(folding.first(0) == 0);
      CHECK(folding.first(folding.size()) == p);
      int workers = 0;
      for (int rank = 0; rank < p; ++rank) {
        const int worker = folding.worker(rank);
        CHECK(folding.first(worker) <= rank);
        CHECK(rank < folding.first(worker + 1));
        workers += folding.works(rank) ? 1 : 0;
        CHECK(folding.works(rank) == (folding.rank(worker) == rank));
        if (!folding.paired(rank)) {
          CHECK(folding.works(rank));
          continue;
        }
        const int mate = folding.mate(rank);
        CHECK(folding.mate(mate) == rank);
        CHECK(folding.worker(mate) == worker);
        CHECK(folding.works(mate) != folding.works(rank));
      }
      CHECK(workers == folding.size());
      CHECK(folding.works(favourite));
      for (int width = folding.size(); width > 0; width /= 2) {
        for (int begin = 0; begin < folding.size(); begin += width) {
          const int share = folding.first(begin + width) - folding.first(begin);
          const int floor = static_cast<int>(static_cast<long long>(width) * p / folding.size());
          CHECK(share >= floor);
          CHECK(share <= floor + 1);
        }
      }
    }
  }
}

TEST_CASE("folding counts beyond 32 bits") {
  constexpr int most = 2147483647;
  constexpr Folding folding(most);
  static_assert(folding.steps() == 30);
  static_assert(folding.first(folding.size()) == most);
  static_assert(folding.worker(most - 1) == folding.size() - 1);
}
