// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/delaying/transfer.hpp"

#include <doctest/doctest.h>

using namespace meshwise;

TEST_CASE("notes of messages that have come are found by sender and tag, until they are removed") {
  detail::DueNotes notes;
  CHECK(notes.find(0, 0) == nullptr);
  for (int from = 0; from < 3; ++from) {
    for (std::uint64_t tag = 0; tag < 3; ++tag) notes.add(from, tag, from * 10 + static_cast<std::int64_t>(tag));
  }
  notes.remove(1, 1);
  notes.remove(7, 7);
  for (int from = 0; from < 3; ++from) {
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
      const std::int64_t* const due = notes.find(from, tag);
      REQUIRE((due == nullptr) == (from == 1 && tag == 1));
      if (due != nullptr) CHECK(*due == from * 10 + static_cast<std::int64_t>(tag));
    }
  }
}

TEST_CASE("naps end when it is time") {
  const detail::DelayedRank rank({}, 0);
  const std::int64_t due = monotonic_nanoseconds() + 1'000'000;
  int naps = 0;
  while (rank.nap(due)) ++naps;
  CHECK(naps > 0);
  CHECK(monotonic_nanoseconds() >= due);
  CHECK(!rank.nap(due));
}

TEST_CASE("a nap on a virtual clock is over at once, and it is time") {
  VirtualClock clock;
  const detail::DelayedRank rank({}, 0, &clock);
  const std::int64_t due = clock.now() + 3'600'000'000'000;
  CHECK(rank.nap(due));
  CHECK(rank.now() == due);
  CHECK(!rank.nap(due));
}

TEST_CASE("every endpoint of every rank draws for itself, and the same in every run") {
  detail::DelayedRank one({}, 0), same({}, 0), other({}, 1);
  for (int k = 0; k < 4; ++k) {
    const std::uint64_t seed = one.next_seed();
    CHECK(seed == same.next_seed());
    CHECK(seed != other.next_seed());
    CHECK(seed != detail::DelayedRank({}, 0).next_seed() + (k == 0 ? 1 : 0));
  }
}
