// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/compile.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../support/sanitized.hpp"
#include "all_shapes.hpp"
#include "dice.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/one_shot.hpp"
#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/two_shot.hpp"
#include "meshwise/schedule/verify.hpp"
#include "proxy.hpp"
#include "simulation.hpp"

using namespace meshwise;
using test::at;
using test::Simulation;

namespace {

template <class G>
std::vector<Plan> plans(const Shape& shape, int lanes = 1) {
  std::vector<Plan> result;
  for (int r = 0; r < shape.ranks; ++r) result.push_back(compile<G>(shape, r, lanes));
  return result;
}

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
// On two lanes the step of round 1 on lane 0 is the second, that of round 0 on lane 1 the third.
static_assert(compile<Ring>(Shape{Operation::all_reduce, 4, 0, false}, 3, 2).steps[1].lane == 0);
static_assert(compile<Ring>(Shape{Operation::all_reduce, 4, 0, false}, 3, 2).steps[2].lane == 1);
static_assert(compile<Ring>(Shape{Operation::all_reduce, 4, 0, false}, 3, 2).steps[3].waits[0] == Wait{2, 3});

}  // namespace

TEST_CASE_TEMPLATE("plans hold the rank's moves in order and lean waits", G, Direct, Ring, OneShot, TwoShot,
                   test::Proxy) {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      for (const int lanes : {1, 2, 5}) {
        CAPTURE(test::describe(shape));
        CAPTURE(lanes);
        bool fine = true;
        for (int r = 0; r < p; ++r) {
          const Plan plan = compile<G>(shape, r, lanes);
          CHECK((plan.shape == shape && plan.rank == r && plan.lanes == lanes));
          CHECK(plan.scratch_slots == G::scratch_slots(shape));
          // By round + lane, then lane, then as the generator lists them.
          std::size_t next = 0;
          for (int sum = 0; sum < G::rounds(shape) + lanes - 1; ++sum) {
            for (int lane = 0; lane < lanes; ++lane) {
              if (sum < lane || sum - lane >= G::rounds(shape)) continue;
              for (const Move& move : G::by(shape, r, sum - lane)) {
                REQUIRE(next < plan.steps.size());
                const Step& step = plan.steps[next++];
                fine = fine && step.lane == lane && step.move.from == move.from && step.move.to == move.to &&
                       step.move.block == move.block && step.move.by == r;
              }
            }
          }
          CHECK(next == plan.steps.size());
          std::vector<int> seen(at(p), 0);
          const auto lean = [&](const std::vector<Wait>& waits) {
            for (const Wait& wait : waits) {
              REQUIRE((wait.rank >= 0 && wait.rank < p));
              fine = fine && wait.rank != r && wait.step > seen[at(wait.rank)];
              seen[at(wait.rank)] = wait.step;
            }
          };
          for (const Step& step : plan.steps) lean(step.waits);
          lean(plan.exit);
        }
        CHECK(fine);
      }
    }
  }
}

TEST_CASE_TEMPLATE("plans are right in every interleaving, on any number of lanes", G, Direct, Ring, OneShot, TwoShot,
                   test::Proxy) {
  test::Dice dice{7};
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      for (int lanes = 1; lanes <= 5; ++lanes) {
        const std::vector<Plan> all = plans<G>(shape, lanes);
        for (int trial = 0; trial < (lanes == 1 ? 10 : 2); ++trial) {
          Simulation simulation(all);
          simulation.run(dice);
          REQUIRE(simulation.finished());
          REQUIRE(simulation.good());
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("no wait can be left out", G, Direct, Ring, OneShot, TwoShot, test::Proxy) {
  int needed = 0;
  int implied = 0;
  for (int p = 2; p <= 5; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape) || (shape.root != 0 && shape.root != p - 2)) continue;
      for (const int lanes : {1, 3}) {
        if (lanes > 1 && p != 3) continue;
        CAPTURE(test::describe(shape));
        CAPTURE(lanes);
        const std::vector<Plan> all = plans<G>(shape, lanes);
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
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      for (int r = 0; r < p; ++r) {
        const int lanes = 1 + (p + r) % 3;
        const Plan few = compile<G>(shape, r, lanes);
        const Plan many = compile<Crowd<G>>(shape, r, lanes);
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
  CHECK_THROWS_AS(compile<Ring>(shape, 0, 0), Error);
  CHECK_THROWS_AS(compile<Ring>(shape, 0, -3), Error);
}

TEST_CASE("a plan of one round costs no more than the ranks it names") {
  // Twice the ranks must not be eight times the work, as a history of all slots would be: this would take minutes.
  const int ranks = 4 * building::most_ranks;
  const Plan plan = compile<Direct>(Shape{Operation::all_reduce, ranks, 0, false}, 17);
  CHECK(plan.steps.size() == 1);
  CHECK(plan.steps[0].waits.size() == test::at(ranks - 1));
  CHECK(plan.exit.size() == test::at(ranks - 1));
}
