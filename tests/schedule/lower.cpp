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
#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/verify.hpp"
#include "proxy.hpp"

using namespace meshwise;

namespace {

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

template <class G>
std::vector<MessagePlan> message_plans(const Shape& shape) {
  std::vector<MessagePlan> result;
  for (int r = 0; r < shape.ranks; ++r) result.push_back(lower<G>(shape, r));
  return result;
}

std::vector<int> scratch_of(const std::vector<MessagePlan>& plans) {
  std::vector<int> result;
  for (const MessagePlan& plan : plans) result.push_back(plan.scratch_slots);
  return result;
}

/// Ranks that exchange messages by rendezvous: data goes from buffer to buffer at some moment at which both ends are
/// posted, in any order between pairs of ranks, in posting order for each pair.
class Exchange {
 public:
  explicit Exchange(const std::vector<MessagePlan>& plans)
      : plans_(plans),
        memory_(plans[0].shape, scratch_of(plans)),
        ranks_(plans.size()),
        sends_(plans.size() * plans.size()),
        receives_(plans.size() * plans.size()) {}

  /// Runs until nothing can happen any more; false for a dead lock, a message whose ends differ, or undefined data.
  bool run(test::Dice& dice) {
    const int p = static_cast<int>(plans_.size());
    for (bool moved = true; moved;) {
      moved = false;
      const int first = dice.roll(p);
      for (int i = 0; i < p; ++i) {
        const int rank = (first + i) % p;
        if (dice.roll(3) == 0) {
          moved = true;  // it would have had its chance
          continue;
        }
        moved = advance(rank) || moved;
        for (const int peer : peers(rank)) {
          while (dice.roll(4) != 0 && transfer(peer, rank)) moved = true;
          if (ready(peer, rank)) moved = true;
        }
      }
      if (done()) return !failed_;
      if (++passes_ > 100000) return false;
    }
    return false;
  }

  const detail::Memory& memory() const { return memory_; }
  std::int64_t blocks_sent() const { return blocks_sent_; }

 private:
  struct Progress {
    std::size_t step = 0;
    bool posted = false;
    bool moved = false;  ///< the local moves of the step are done
    int receives = 0;    ///< in flight
    int sends = 0;
  };
  struct Queue {
    std::vector<const Message*> list;
    std::size_t head = 0;
  };

  std::size_t pair(int from, int to) const { return at(from) * plans_.size() + at(to); }

  bool done() const {
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      if (ranks_[r].step < plans_[r].steps.size()) return false;
    }
    return true;
  }

  /// The ranks from which `rank` waits for messages in its step.
  std::set<int> peers(int rank) const {
    std::set<int> result;
    const Progress& own = ranks_[at(rank)];
    if (!own.posted) return result;
    for (const Message& message : plans_[at(rank)].steps[own.step].receives) result.insert(message.peer);
    return result;
  }

  bool ready(int from, int to) const {
    const Queue& sends = sends_[pair(from, to)];
    const Queue& receives = receives_[pair(from, to)];
    return sends.head < sends.list.size() && receives.head < receives.list.size();
  }

  bool transfer(int from, int to) {
    if (!ready(from, to)) return false;
    Queue& sends = sends_[pair(from, to)];
    Queue& receives = receives_[pair(from, to)];
    const Message& send = *sends.list[sends.head++];
    const Message& receive = *receives.list[receives.head++];
    failed_ = failed_ || send.block != receive.block || send.piece.count != receive.piece.count ||
              send.piece.rank != from || receive.piece.rank != to;
    if (!failed_) move_data(Move{to, send.block, {send.piece}, {receive.piece}});
    --ranks_[at(from)].sends;
    --ranks_[at(to)].receives;
    blocks_sent_ += send.piece.count;
    return true;
  }

  void move_data(const Move& move) {
    for (const Piece& piece : move.from) {
      for (int i = 0; i < piece.count; ++i) {
        const int value = memory_.value(piece, i);
        failed_ = failed_ || value == detail::Symbols::undefined || memory_.symbols.block(value) != move.block + i;
      }
    }
    if (!failed_) memory_.perform(move);
  }

  bool advance(int rank) {
    Progress& own = ranks_[at(rank)];
    const MessagePlan& plan = plans_[at(rank)];
    if (own.step == plan.steps.size()) return false;
    const MessageStep& step = plan.steps[own.step];
    if (!own.posted) {
      for (const Message& message : step.sends) sends_[pair(rank, message.peer)].list.push_back(&message);
      for (const Message& message : step.receives) receives_[pair(message.peer, rank)].list.push_back(&message);
      own.sends = static_cast<int>(step.sends.size());
      own.receives = static_cast<int>(step.receives.size());
      own.posted = true;
      return true;
    }
    if (!own.moved && own.receives == 0) {
      for (const Move& move : step.moves) move_data(move);
      own.moved = true;
      return true;
    }
    if (!own.moved || own.sends != 0) return false;
    ++own.step;
    own.posted = false;
    own.moved = false;
    return true;
  }

  const std::vector<MessagePlan>& plans_;
  detail::Memory memory_;
  std::vector<Progress> ranks_;
  std::vector<Queue> sends_;
  std::vector<Queue> receives_;
  std::int64_t blocks_sent_ = 0;
  int passes_ = 0;
  bool failed_ = false;
};

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

TEST_CASE_TEMPLATE("message plans end as the schedule does, in any order of transfers", G, Direct, Ring, test::Proxy) {
  test::Dice dice{11};
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      if (p > 9 && shape.root != 0 && shape.root != p / 2 && shape.root != p - 1) continue;
      CAPTURE(test::describe(shape));
      const Schedule schedule = materialise<G>(shape);
      const Verdict verdict = verify(schedule);
      const detail::Memory expected = execute(schedule);
      const std::vector<MessagePlan> plans = message_plans<G>(shape);
      for (int trial = 0; trial < (small(shape) ? 6 : 1); ++trial) {
        Exchange exchange(plans);
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

TEST_CASE_TEMPLATE("a round is at most two steps, and a step overlaps nothing in flight", G, Direct, Ring,
                   test::Proxy) {
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
        if (std::string(G::name) == "ring") {
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
  CHECK(!Exchange(plans).run(dice));
}

TEST_CASE("a rank or a shape that does not exist is an error") {
  CHECK_THROWS_AS(lower<Ring>(Shape{Operation::all_reduce, 4, 0, false}, 4), Error);
  CHECK_THROWS_AS(lower<Direct>(Shape{Operation::all_to_all, 4, 0, true}, 0), Error);
}
