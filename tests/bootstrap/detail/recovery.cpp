// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/recovery.hpp"

#include <doctest/doctest.h>

#include "meshwise/fabric/shared_memory/segments.hpp"

using namespace meshwise::detail;

namespace {

struct Watched {
  Segments segments = Segments::create(4);
  Recovery recovery{segments.header(), 4};

  void shrinks(int rank) { segments.header().record(rank).shrinks.fetch_add(1); }
  int going() const {
    int ranks = 0;
    for (int rank = 0; rank < 4; ++rank) ranks += recovery.goes_on(rank) ? 1 : 0;
    return ranks;
  }
};

}  // namespace

TEST_CASE("after a failure those go on that call shrink") {
  Watched job;
  CHECK(job.going() == 0);
  job.recovery.failed(2);
  CHECK(job.going() == 0);
  job.shrinks(0);
  CHECK(job.recovery.goes_on(0));
  CHECK(job.going() == 1);
  job.shrinks(1);
  job.shrinks(3);
  CHECK(job.going() == 3);
}

TEST_CASE("they may be faster than who looks") {
  Watched job;
  job.shrinks(0);
  job.recovery.failed(2);
  CHECK(job.recovery.goes_on(0));
  CHECK(job.going() == 1);
}

TEST_CASE("each failure of a rank that belongs to them asks for another call") {
  Watched job;
  job.recovery.failed(2);
  for (const int rank : {0, 1, 3}) job.shrinks(rank);
  job.recovery.failed(1);
  CHECK(job.going() == 0);
  job.shrinks(3);
  CHECK(job.going() == 1);
}

TEST_CASE("a rank that they went on without may fail later") {
  Watched job;
  job.recovery.failed(2);
  job.shrinks(0);
  job.shrinks(1);
  job.recovery.failed(3);  // was silent
  CHECK(job.going() == 2);
}

TEST_CASE("groups that were made smaller before a failure are no answer to it") {
  Watched job;
  for (int rank = 0; rank < 4; ++rank) job.shrinks(rank);
  job.recovery.failed(2);
  CHECK(job.going() == 0);
}
