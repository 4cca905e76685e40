// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/lower.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "all_shapes.hpp"
#include "dice.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/one_shot.hpp"
#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/two_shot.hpp"
#include "meshwise/schedule/verify.hpp"
#include "proxy.hpp"
#include "rendezvous.hpp"

using namespace meshwise;
using test::at;
using test::Rendezvous;
using test::scratch_of;

namespace {

template <class G>
std::vector<MessagePlan> message_plans(const Shape& shape, int lanes = 1) {
  std::vector<MessagePlan> result;
  for (int r = 0; r < shape.ranks; ++r) result.push_back(lower<G>(shape, r, lanes));
  return result;
}

/// What a schedule leaves in memory when its rounds are executed in order.
detail::Memory execute(const Schedule& schedule) {
  detail::Memory memory(schedule.shape, std::vector<int>(at(schedule.shape.ranks), schedule.scratch_slots));
  for (const Round& round : schedule.rounds) {
    for (const Move& move : round) memory.perform(move);
  }
  return memory;
}

/// Whether nothing in a step overlaps anything that may be in flight at the same time.
bool disjoint(const Shape& shape, const detail::Places& places, int rank, const MessageStep& step) {
  std::set<std::size_t> sent;
  std::set<std::size_t> received;
  bool fine = true;
  for (const Message& message : step.sends) {
    fine = fine && message.piece.rank == rank && message.peer != rank && places.contains(message.piece);
    for (int i = 0; i < message.piece.count; ++i) sent.insert(places.number(message.piece, i));
  }
  for (const Message& message : step.receives) {
    fine = fine && message.piece.rank == rank && message.peer != rank && places.contains(message.piece);
    for (int i = 0; i < message.piece.count; ++i) {
      fine = fine && received.insert(places.number(message.piece, i)).second;
      fine = fine && sent.count(places.number(message.piece, i)) == 0;
      if (message.piece.buffer == Buffer::input) fine = fine && writable_input(shape, rank, message.piece.slot + i);
    }
  }
  for (const Move& move : step.moves) {
    for (const Piece& piece : move.from) fine = fine && piece.rank == rank && places.contains(piece);
    for (const Piece& piece : move.to) {
      fine = fine && piece.rank == rank && places.contains(piece);
      for (int i = 0; i < piece.count; ++i) fine = fine && sent.count(places.number(piece, i)) == 0;
    }
  }
  return fine;
}

constexpr bool small(const Shape& shape) { return shape.ranks <= 9; }

// A pull is one step at both ends and needs no scratch; a combination needs one slot for each foreign source.
static_assert(lower<Ring>(Shape{Operation::all_gather, 4, 0, true}, 1).steps.size() == 3);
static_assert(lower<Ring>(Shape{Operation::all_gather, 4, 0, true}, 1).scratch_slots == 0);
static_assert(lower<Ring>(Shape{Operation::all_reduce, 4, 0, false}, 1).scratch_slots == 1);
static_assert(lower<Direct>(Shape{Operation::all_reduce, 8, 0, false}, 1).steps.size() == 2);
static_assert(lower<Direct>(Shape{Operation::all_reduce, 8, 0, false}, 1).scratch_slots == 7);
static_assert(lower<Direct>(Shape{Operation::all_reduce, 1, 0, true}, 0).steps.empty());

}  // namespace

TEST_CASE_TEMPLATE("message plans end as the schedule does, in any order of transfers", G, Direct, Ring, OneShot,
                   TwoShot, test::Proxy) {
  test::Dice dice{11};
  for (int p = 1; p <= 33; p += p < 9 ? 1 : 8) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      if (p > 9 && shape.root != 0 && shape.root != p / 2 && shape.root != p - 1) continue;
      CAPTURE(test::describe(shape));
      const Schedule schedule = materialise<G>(shape);
      const Verdict verdict = verify(schedule);
      const detail::Memory expected = execute(schedule);
      const std::vector<MessagePlan> plans = message_plans<G>(shape);
      for (int trial = 0; trial < (small(shape) ? 4 : 1); ++trial) {
        Rendezvous exchange(plans);
        REQUIRE(exchange.run(dice));
        // Every piece on a foreign rank is one message: what memory reads and writes across ranks.
        CHECK(exchange.blocks_sent() == verdict.read.total + verdict.written.total);
        Verdict result;
        detail::check_outputs(shape, exchange.memory(), result);
        REQUIRE_MESSAGE(result.ok(), text(result.fault));
        CHECK(result.left_fold_in_rank_order == verdict.left_fold_in_rank_order);
        bool same = true;
        const auto& symbols = exchange.memory().symbols;
        for (int r = 0; r < p; ++r) {
          for (int s = 0; s < output_slots(shape, r); ++s) {
            const int wanted = expected.value(Piece{r, Buffer::output, s, 1}, 0);
            const int found = exchange.memory().value(Piece{r, Buffer::output, s, 1}, 0);
            same = same && symbols.left_fold(found) == expected.symbols.left_fold(wanted);
            same = same && symbols.contributors(found) == expected.symbols.contributors(wanted);
          }
          for (int s = 0; s < input_slots(shape, r); ++s) {
            if (writable_input(shape, r, s)) continue;
            const int found = exchange.memory().value(Piece{r, Buffer::input, s, 1}, 0);
            same = same && symbols.contributors(found) == std::vector<int>{r};
          }
        }
        CHECK(same);
      }
    }
  }
}

TEST_CASE_TEMPLATE("a round is at most two steps, and a step overlaps nothing in flight", G, Direct, Ring, OneShot,
                   TwoShot, test::Proxy) {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const std::vector<MessagePlan> plans = message_plans<G>(shape);
      const detail::Places places(shape, scratch_of(plans));
      for (int r = 0; r < p; ++r) {
        const MessagePlan& plan = plans[at(r)];
        CHECK(plan.shape == shape);
        CHECK(plan.rank == r);
        CHECK(plan.scratch_slots >= G::scratch_slots(shape));
        CHECK(static_cast<int>(plan.steps.size()) <= 2 * G::rounds(shape));
        // A ring pulls, so that a round is one step; an exclusive scan pushes what it has just combined.
        if (std::string(G::name) == "ring" && shape.operation != Operation::exclusive_scan) {
          CHECK(static_cast<int>(plan.steps.size()) <= G::rounds(shape));
          CHECK(plan.scratch_slots <= G::scratch_slots(shape) + 1);
        }
        for (const MessageStep& step : plan.steps) {
          CHECK(!(step.sends.empty() && step.receives.empty() && step.moves.empty()));
          CHECK(disjoint(shape, places, r, step));
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("lanes run the same steps one round apart, and end as the contract wants", G, Direct, Ring, OneShot,
                   TwoShot, test::Proxy) {
  test::Dice dice{5};
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      for (const int lanes : {2, 3, 5}) {
        const std::vector<MessagePlan> plans = message_plans<G>(shape, lanes);
        for (int r = 0; r < p; ++r) {
          const MessagePlan single = lower<G>(shape, r);
          CHECK((plans[at(r)].lanes == lanes && plans[at(r)].scratch_slots == single.scratch_slots));
          REQUIRE(plans[at(r)].steps.size() == single.steps.size() * at(lanes));
          std::vector<std::size_t> next(at(lanes), 0);
          bool same = true;
          for (const MessageStep& step : plans[at(r)].steps) {
            const MessageStep& model = single.steps[next[at(step.lane)]++];
            same = same && step.sends == model.sends && step.receives == model.receives &&
                   step.moves.size() == model.moves.size();
            // No lane is ahead of the one before it.
            for (int lane = 1; lane < lanes; ++lane) same = same && next[at(lane)] <= next[at(lane - 1)];
          }
          CHECK(same);
        }
        Rendezvous exchange(plans);
        REQUIRE(exchange.run(dice));
        CHECK(exchange.good());
      }
    }
  }
}

TEST_CASE_TEMPLATE("one plan serves a rooted operation in and out of place", G, Direct, Ring, OneShot) {
  // Made for in place, used out of place: only the root knows which it is.
  test::Dice dice{9};
  for (int p = 1; p <= 6; ++p) {
    for (const Operation operation : {Operation::reduce, Operation::gather, Operation::scatter}) {
      for (int root = 0; root < p; ++root) {
        const Shape in_place{operation, p, root, true};
        if (!G::supports(in_place)) continue;
        CAPTURE(test::describe(in_place));
        std::vector<MessagePlan> plans = message_plans<G>(in_place);
        for (MessagePlan& plan : plans) plan.shape.in_place = false;
        Rendezvous exchange(plans);
        REQUIRE(exchange.run(dice));
        CHECK(exchange.good());
      }
    }
  }
}

TEST_CASE("the exchange of the test finds a dead lock") {
  // Two ranks that both receive first: under rendezvous nobody can go on.
  const Shape shape{Operation::all_gather, 2, 0, true};
  std::vector<MessagePlan> plans = message_plans<Ring>(shape);
  for (MessagePlan& plan : plans) {
    REQUIRE(plan.steps.size() == 1);
    MessageStep sends;
    std::swap(sends.sends, plan.steps[0].sends);
    plan.steps.push_back(sends);
  }
  test::Dice dice{3};
  CHECK(!Rendezvous(plans).run(dice));
}

TEST_CASE("a rank or a shape that does not exist is an error") {
  CHECK_THROWS_AS(lower<Ring>(Shape{Operation::all_reduce, 4, 0, false}, 4), Error);
  CHECK_THROWS_AS(lower<Direct>(Shape{Operation::all_to_all, 4, 0, true}, 0), Error);
  CHECK_THROWS_AS(lower<Ring>(Shape{Operation::all_reduce, 4, 0, false}, 0, 0), Error);
}
