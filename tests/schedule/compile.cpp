// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/compile.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
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
std::vector<Plan> plans(const Shape& shape) {
  std::vector<Plan> result;
  for (int r = 0; r < shape.ranks; ++r) result.push_back(compile<G>(shape, r));
  return result;
}

/// Ranks that execute their plans one event at a time: enter, begin a step, end it, leave. Moves are in flight
/// between begin and end; every touch of a buffer that is not there, and every overlap of moves in flight, is a
/// failure, and so are wrong blocks and wrong results.
class Simulation {
 public:
  explicit Simulation(const std::vector<Plan>& plans)
      : plans_(plans),
        shape_(plans[0].shape),
        memory_(shape_, std::vector<int>(plans.size(), plans[0].scratch_slots)),
        progress_(plans.size(), 0),
        in_flight_(plans.size(), 0),
        left_(plans.size(), 0),
        readers_(memory_.places.size(), 0),
        writers_(memory_.places.size(), 0) {}

  /// Whether `rank` has a next event that its waits allow.
  bool enabled(int rank) const {
    if (left_[at(rank)] != 0) return false;
    if (progress_[at(rank)] == 0 || in_flight_[at(rank)] != 0) return true;
    const Plan& plan = plans_[at(rank)];
    const int next = progress_[at(rank)] - 1;
    const std::vector<Wait>& waits =
        next < static_cast<int>(plan.steps.size()) ? plan.steps[at(next)].waits : plan.exit;
    return std::all_of(waits.begin(), waits.end(),
                       [&](const Wait& wait) { return progress_[at(wait.rank)] >= wait.step; });
  }

  void advance(int rank) {
    const Plan& plan = plans_[at(rank)];
    const int next = progress_[at(rank)] - 1;
    if (next < 0) {
      progress_[at(rank)] = 1;
    } else if (next == static_cast<int>(plan.steps.size())) {
      left_[at(rank)] = 1;
    } else if (in_flight_[at(rank)] == 0) {
      begin(plan.steps[at(next)].move);
      in_flight_[at(rank)] = 1;
    } else {
      end(plan.steps[at(next)].move);
      in_flight_[at(rank)] = 0;
      ++progress_[at(rank)];
    }
  }

  /// Runs random events until nothing is enabled; ranks are up to a thousand times slower than others.
  void run(test::Dice& dice) {
    std::vector<int> weights;
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      constexpr int choices[] = {1, 30, 1000};
      weights.push_back(choices[dice.roll(3)]);
    }
    while (true) {
      int total = 0;
      for (int r = 0; r < shape_.ranks; ++r) total += enabled(r) ? weights[at(r)] : 0;
      if (total == 0) return;
      int ticket = dice.roll(total);
      for (int r = 0; r < shape_.ranks; ++r) {
        if (!enabled(r)) continue;
        ticket -= weights[at(r)];
        if (ticket >= 0) continue;
        advance(r);
        break;
      }
    }
  }

  /// Runs everybody as far as possible while `held` does not reach `progress`; if `begun`, its step before is in
  /// flight all the time.
  void hold(int held, int progress, bool begun) {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < shape_.ranks; ++r) {
        while (enabled(r)) {
          if (r == held && progress_[at(r)] == progress - 1 && (!begun || progress == 1 || in_flight_[at(r)] != 0))
            break;
          advance(r);
          moved = true;
        }
      }
    }
  }

  bool finished() const {
    return std::all_of(left_.begin(), left_.end(), [](char left) { return left != 0; });
  }

  /// Whether all ranks left, nothing went wrong on the way, and the contract is met.
  bool good() const {
    if (failed_ || !finished()) return false;
    Verdict verdict;
    detail::check_outputs(shape_, memory_, verdict);
    return verdict.ok();
  }

 private:
  template <class F>
  void each(const std::vector<Piece>& pieces, F f) {
    for (const Piece& piece : pieces) {
      for (int i = 0; i < piece.count; ++i) f(memory_.places.number(piece, i), i);
    }
  }

  void begin(const Move& move) {
    for (const auto* pieces : {&move.from, &move.to}) {
      for (const Piece& piece : *pieces) {
        if (progress_[at(piece.rank)] < 1 || left_[at(piece.rank)] != 0) failed_ = true;
      }
    }
    each(move.from, [&](std::size_t n, int) { failed_ = failed_ || writers_[n] != 0; });
    each(move.to, [&](std::size_t n, int) { failed_ = failed_ || writers_[n] != 0 || readers_[n] != 0; });
    each(move.from, [&](std::size_t n, int) { ++readers_[n]; });
    each(move.to, [&](std::size_t n, int) { ++writers_[n]; });
  }

  void end(const Move& move) {
    each(move.from, [&](std::size_t n, int i) {
      --readers_[n];
      const int value = memory_.slots[n];
      if (value == detail::Symbols::undefined || memory_.symbols.block(value) != move.block + i) failed_ = true;
    });
    each(move.to, [&](std::size_t n, int) { --writers_[n]; });
    for (const auto* pieces : {&move.from, &move.to}) {
      for (const Piece& piece : *pieces) failed_ = failed_ || left_[at(piece.rank)] != 0;
    }
    if (!failed_) memory_.perform(move);
  }

  const std::vector<Plan>& plans_;
  Shape shape_;
  detail::Memory memory_;
  std::vector<int> progress_;
  std::vector<char> in_flight_;
  std::vector<char> left_;
  std::vector<int> readers_;
  std::vector<int> writers_;
  bool failed_ = false;
};

/// What each rank knows of the others' progress, directly and through others: vector clocks along the waits.
class Knowledge {
 public:
  explicit Knowledge(const std::vector<Plan>& plans) : plans_(plans), known_(plans.size()) {}

  /// What `rank` knows when it has done the waits before step `step`, or before its exit.
  const std::vector<int>& before(int rank, int step) {
    const Plan& plan = plans_[at(rank)];
    auto& mine = known_[at(rank)];
    while (static_cast<int>(mine.size()) <= step) {
      const int s = static_cast<int>(mine.size());
      std::vector<int> clock = s > 0 ? mine[at(s - 1)] : std::vector<int>(plans_.size(), 0);
      clock[at(rank)] = s + 1;
      const auto& waits = s < static_cast<int>(plan.steps.size()) ? plan.steps[at(s)].waits : plan.exit;
      for (const Wait& wait : waits) {
        clock[at(wait.rank)] = std::max(clock[at(wait.rank)], wait.step);
        if (wait.step < 2) continue;
        const std::vector<int> theirs = before(wait.rank, wait.step - 2);
        for (std::size_t q = 0; q < clock.size(); ++q) clock[q] = std::max(clock[q], theirs[q]);
      }
      mine.push_back(clock);
    }
    return mine[at(step)];
  }

 private:
  const std::vector<Plan>& plans_;
  std::vector<std::vector<std::vector<int>>> known_;
};

/// The same schedules, with every other rank as a partner.
template <class G>
struct Crowd : G {
  static constexpr std::vector<int> partners(const Shape& shape, int rank, int) {
    return detail::others(shape.ranks, rank);
  }
};

constexpr std::size_t waits_of(const Plan& plan) {
  std::size_t count = plan.exit.size();
  for (const Step& step : plan.steps) count += step.waits.size();
  return count;
}

// A direct all_reduce waits for everybody's entry and for everybody's last move, and for nothing else.
static_assert(compile<Direct>(Shape{Operation::all_reduce, 8, 0, false}, 3).steps[0].waits.size() == 7);
static_assert(compile<Direct>(Shape{Operation::all_reduce, 8, 0, false}, 3).exit.size() == 7);
static_assert(waits_of(compile<Direct>(Shape{Operation::all_reduce, 8, 0, true}, 3)) == 14);
static_assert(compile<Ring>(Shape{Operation::all_reduce, 1, 0, true}, 0).steps.empty());
static_assert(waits_of(compile<Ring>(Shape{Operation::all_reduce, 1, 0, false}, 0)) == 0);
static_assert(compile<Ring>(Shape{Operation::all_reduce, 8, 0, false}, 3).steps[1].waits[0] == Wait{2, 2});

}  // namespace

TEST_CASE_TEMPLATE("plans hold the rank's moves in order and lean waits", G, Direct, Ring, test::Proxy) {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      for (int r = 0; r < p; ++r) {
        const Plan plan = compile<G>(shape, r);
        CHECK(plan.shape == shape);
        CHECK(plan.rank == r);
        CHECK(plan.scratch_slots == G::scratch_slots(shape));
        std::size_t next = 0;
        for (int k = 0; k < G::rounds(shape); ++k) {
          for (const Move& move : G::by(shape, r, k)) {
            REQUIRE(next < plan.steps.size());
            CHECK(plan.steps[next].move.from == move.from);
            CHECK(plan.steps[next].move.to == move.to);
            CHECK(plan.steps[next].move.block == move.block);
            CHECK(plan.steps[next].move.by == r);
            ++next;
          }
        }
        CHECK(next == plan.steps.size());
        std::vector<int> seen(at(p), 0);
        const auto lean = [&](const std::vector<Wait>& waits) {
          for (const Wait& wait : waits) {
            REQUIRE((wait.rank >= 0 && wait.rank < p));
            CHECK(wait.rank != r);
            CHECK(wait.step > seen[at(wait.rank)]);
            seen[at(wait.rank)] = wait.step;
          }
        };
        for (const Step& step : plan.steps) lean(step.waits);
        lean(plan.exit);
      }
    }
  }
}

TEST_CASE_TEMPLATE("plans are right in every interleaving", G, Direct, Ring, test::Proxy) {
  test::Dice dice{7};
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const std::vector<Plan> all = plans<G>(shape);
      for (int trial = 0; trial < 60; ++trial) {
        Simulation simulation(all);
        simulation.run(dice);
        REQUIRE(simulation.finished());
        REQUIRE(simulation.good());
      }
    }
  }
}

TEST_CASE_TEMPLATE("no wait can be left out", G, Direct, Ring, test::Proxy) {
  int needed = 0;
  int implied = 0;
  for (int p = 2; p <= 5; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const std::vector<Plan> all = plans<G>(shape);
      for (int r = 0; r < p; ++r) {
        for (std::size_t s = 0; s <= all[at(r)].steps.size(); ++s) {
          const std::size_t waits =
              s < all[at(r)].steps.size() ? all[at(r)].steps[s].waits.size() : all[at(r)].exit.size();
          for (std::size_t w = 0; w < waits; ++w) {
            std::vector<Plan> less = all;
            auto& list = s < less[at(r)].steps.size() ? less[at(r)].steps[s].waits : less[at(r)].exit;
            const Wait wait = list[w];
            list.erase(list.begin() + static_cast<std::ptrdiff_t>(w));
            CAPTURE(r);
            CAPTURE(s);
            CAPTURE(wait.rank);
            CAPTURE(wait.step);
            // What the remaining waits already imply, through other ranks, is allowed to be there twice.
            if (Knowledge(less).before(r, static_cast<int>(s))[at(wait.rank)] >= wait.step) {
              ++implied;
              continue;
            }
            ++needed;
            bool failed = false;
            for (const bool begun : {false, true}) {
              Simulation simulation(less);
              simulation.hold(wait.rank, wait.step, begun);
              simulation.hold(-1, 0, false);
              failed = failed || !simulation.good();
            }
            CHECK(failed);
          }
        }
      }
    }
  }
  CHECK(needed > implied);
}

TEST_CASE_TEMPLATE("naming more partners changes no wait", G, Direct, Ring) {
  const auto sorted = [](std::vector<Wait> waits) {
    std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.rank < b.rank; });
    return waits;
  };
  for (int p = 1; p <= 7; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      CAPTURE(test::describe(shape));
      for (int r = 0; r < p; ++r) {
        const Plan few = compile<G>(shape, r);
        const Plan many = compile<Crowd<G>>(shape, r);
        REQUIRE(few.steps.size() == many.steps.size());
        for (std::size_t s = 0; s < few.steps.size(); ++s) {
          CHECK(sorted(few.steps[s].waits) == sorted(many.steps[s].waits));
        }
        CHECK(sorted(few.exit) == sorted(many.exit));
      }
    }
  }
}

TEST_CASE("a ring waits for its neighbours only, however many ranks there are") {
  const int p = 500;
  const Plan plan = compile<Ring>(Shape{Operation::all_reduce, p, 0, false}, 17);
  CHECK(plan.steps.size() == at(2 * (p - 1)));
  const auto neighbour = [](const Wait& wait) { return wait.rank == 16 || wait.rank == 18; };
  for (const Step& step : plan.steps) CHECK(std::all_of(step.waits.begin(), step.waits.end(), neighbour));
  CHECK(std::all_of(plan.exit.begin(), plan.exit.end(), neighbour));
}

TEST_CASE("a rank or a shape that does not exist is an error") {
  const Shape shape{Operation::all_reduce, 4, 0, false};
  CHECK_THROWS_AS(compile<Ring>(shape, 4), Error);
  CHECK_THROWS_AS(compile<Ring>(shape, -1), Error);
  CHECK_THROWS_AS(compile<Direct>(Shape{Operation::all_to_all, 4, 0, true}, 0), Error);
}

TEST_CASE("a plan of one round costs no more than the ranks it names") {
  // Twice the ranks must not be eight times the work, as a history of all slots would be: this would take minutes.
  const Plan plan = compile<Direct>(Shape{Operation::all_reduce, 4096, 0, false}, 17);
  CHECK(plan.steps.size() == 1);
  CHECK(plan.steps[0].waits.size() == 4095);
  CHECK(plan.exit.size() == 4095);
}
