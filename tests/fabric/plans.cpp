// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/plans.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/ring.hpp"

using namespace meshwise;

namespace {

/// The plan of one of the library's generators, as an endpoint asks for it.
template <class G>
const detail::MemoryPlan& find(detail::PlanCache<detail::MemoryPlan>& cache, const Shape& shape, Algorithm algorithm,
                               int lanes = 1) {
  return *cache.find(shape, algorithm, {}, lanes, 1, [] { return AnyGenerator::of<G>(); });
}

/// A generator whose moves depend on a value that it carries.
struct Detour : Direct {
  int extra = 0;
  int rounds(const Shape&) const { return 1 + extra; }
  std::vector<Move> by(const Shape& shape, int rank, int round) const {
    return round == 0 ? Direct::by(shape, rank, round) : std::vector<Move>{};
  }
};

}  // namespace

TEST_CASE("a plan is made once per kind of call, and the cache is bounded") {
  detail::PlanCache<detail::MemoryPlan> cache;
  const Shape shape{Operation::all_reduce, 4, 0, false};
  const auto* const first = &find<Direct>(cache, shape, Algorithm::direct);
  CHECK(first->plan.steps.size() == 1);
  CHECK(first->messages == 6);
  CHECK(first->settled);
  CHECK(&find<Direct>(cache, shape, Algorithm::direct) == first);
  const auto& ring = find<Ring>(cache, shape, Algorithm::ring);
  CHECK(ring.plan.steps.size() == 6);
  CHECK(!ring.settled);
  CHECK(find<Ring>(cache, shape, Algorithm::ring, 3).plan.steps.size() == 18);
  for (int root = 0; root < 200; ++root) {
    const Shape rooted{Operation::broadcast, 200, root, true};
    CHECK(find<Ring>(cache, rooted, Algorithm::ring).plan.shape == rooted);
  }
  CHECK(find<Direct>(cache, shape, Algorithm::direct).messages == 6);
}

TEST_CASE("a plan outlives the cache for whoever holds it") {
  detail::PlanCache<detail::LoweredPlan>::Handle kept;
  {
    detail::PlanCache<detail::LoweredPlan> cache;
    kept = cache.find(Shape{Operation::all_gather, 3, 0, false}, Algorithm::ring, {}, 1, 2,
                      [] { return AnyGenerator::of<Ring>(); });
  }
  CHECK(kept->plan.rank == 2);
  CHECK(!kept->plan.steps.empty());
}

TEST_CASE("what a generator plans is kept only if the generator stays what it is") {
  detail::PlanCache<detail::MemoryPlan> cache;
  const Shape shape{Operation::all_gather, 4, 0, false};
  const auto never = []() -> AnyGenerator { throw 1; };
  const auto ask = [&](const AnyGenerator& generator) {
    return cache.find(shape, Algorithm::custom, generator, 1, 0, never);
  };
  Detour detour;
  const auto settled = [&] { return ask(AnyGenerator(detour))->settled; };
  CHECK(settled());
  detour.extra = 2;
  CHECK(!settled());
  const auto ring = ask(AnyGenerator::of<Ring>());
  CHECK(ring == ask(AnyGenerator::of<Ring>()));
  CHECK(ring != ask(AnyGenerator::of<Direct>()));
}

TEST_CASE("moves finish a reduction only if every rank's do") {
  const auto of = [](const AnyGenerator& generator, Operation operation, int ranks) {
    return detail::finishes(generator, Shape{operation, ranks, 0, false});
  };
  CHECK(of(AnyGenerator::of<Direct>(), Operation::all_reduce, 5));
  CHECK(of(AnyGenerator::of<Direct>(), Operation::reduce_scatter, 5));
  CHECK(!of(AnyGenerator::of<Direct>(), Operation::all_gather, 5));
  CHECK(!of(AnyGenerator::of<Direct>(), Operation::all_reduce, 1));
  CHECK(!of(AnyGenerator::of<Ring>(), Operation::all_reduce, 3));
  CHECK(of(AnyGenerator::of<Ring>(), Operation::all_reduce, 2));
}

TEST_CASE("foreign pieces are counted once per ordered pair") {
  const Move move{0,
                  0,
                  {{0, Buffer::input, 0, 1}, {1, Buffer::input, 0, 1}, {1, Buffer::input, 1, 1}},
                  {{1, Buffer::output, 0, 1}, {2, Buffer::output, 0, 1}}};
  CHECK(detail::foreign_pieces(move) == 3);
}

TEST_CASE("plans of one move between all inputs and all outputs are known") {
  const auto part = [](const AnyGenerator& generator, Operation operation, int ranks, int rank, int lanes = 1) {
    return detail::MemoryPlan::make(generator, Shape{operation, ranks, 0, false}, rank, lanes, false).part;
  };
  for (const int ranks : {2, 3, 9}) {
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(part(AnyGenerator::of<Direct>(), Operation::all_reduce, ranks, rank) == rank);
    }
  }
  CHECK(part(AnyGenerator::of<Direct>(), Operation::all_reduce, 3, 1, 2) == -1);
  CHECK(part(AnyGenerator::of<Direct>(), Operation::all_reduce, 1, 0) == -1);
  CHECK(part(AnyGenerator::of<Direct>(), Operation::reduce_scatter, 3, 1) == -1);
  CHECK(part(AnyGenerator::of<Direct>(), Operation::all_gather, 3, 1) == -1);
  CHECK(part(AnyGenerator::of<Ring>(), Operation::all_reduce, 2, 1) == -1);
}
