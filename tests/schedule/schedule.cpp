// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/schedule.hpp"

#include <doctest/doctest.h>

#include "meshwise/schedule/message_plan.hpp"
#include "meshwise/schedule/plan.hpp"
#include "meshwise/schedule/verify.hpp"

using namespace meshwise;

TEST_CASE("a schedule written by hand is a value that verify judges like any other") {
  // Two ranks add their vectors: each pulls the other's half and stores it at both.
  Schedule schedule;
  schedule.shape = Shape{Operation::all_reduce, 2, 0, false};
  Round round;
  for (int block = 0; block < 2; ++block) {
    round.push_back(Move{block,
                         block,
                         {Piece{0, Buffer::input, block}, Piece{1, Buffer::input, block}},
                         {Piece{0, Buffer::output, block}, Piece{1, Buffer::output, block}}});
  }
  schedule.rounds.push_back(round);
  const Verdict good = verify(schedule);
  CHECK(good.fault == Fault::none);
  CHECK(good.left_fold_in_rank_order);

  // The same with a contribution that is counted twice, and with one that is missing.
  Schedule twice = schedule;
  twice.rounds[0][0].from.push_back(Piece{1, Buffer::input, 0});
  CHECK(verify(twice).fault != Fault::none);
  Schedule missing = schedule;
  missing.rounds[0][1].from.pop_back();
  CHECK(verify(missing).fault != Fault::none);
}

TEST_CASE("shapes, pieces and waits compare by value") {
  CHECK(Shape{Operation::broadcast, 4, 1, false} == Shape{Operation::broadcast, 4, 1, false});
  CHECK(!(Shape{Operation::broadcast, 4, 1, false} == Shape{Operation::broadcast, 4, 2, false}));
  CHECK(Piece{1, Buffer::scratch, 2, 3} == Piece{1, Buffer::scratch, 2, 3});
  CHECK(!(Piece{1, Buffer::scratch, 2, 3} == Piece{1, Buffer::scratch, 2, 1}));
  CHECK(Wait{1, 2} == Wait{1, 2});
  CHECK(MessagePlan{}.steps.empty());
}
