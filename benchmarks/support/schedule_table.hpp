// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/any_generator.hpp"
#include "meshwise/schedule/bruck.hpp"
#include "meshwise/schedule/circulant.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/double_tree.hpp"
#include "meshwise/schedule/exchange.hpp"
#include "meshwise/schedule/halving_doubling.hpp"
#include "meshwise/schedule/hierarchical.hpp"
#include "meshwise/schedule/knomial.hpp"
#include "meshwise/schedule/one_shot.hpp"
#include "meshwise/schedule/pairwise.hpp"
#include "meshwise/schedule/recursive_doubling.hpp"
#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/scatter_all_gather.hpp"
#include "meshwise/schedule/torus.hpp"
#include "meshwise/schedule/two_shot.hpp"
#include "schedule_counts.hpp"
#include "schedule_formulas.hpp"

namespace meshwise::table {

/// What the generators with parameters are made of for one number of ranks. Stays where it is.
class Parameters {
 public:
  explicit Parameters(int ranks)
      : torus_{{torus_of(ranks).first, torus_of(ranks).second}},
        hierarchical_({nodes_of(ranks)}),
        routes_(routes_of(ranks)) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  AnyGenerator generator(Algorithm algorithm) const {
    switch (algorithm) {
      case Algorithm::direct: return AnyGenerator::of<Direct>();
      case Algorithm::ring: return AnyGenerator::of<Ring>();
      case Algorithm::one_shot: return AnyGenerator::of<OneShot>();
      case Algorithm::two_shot: return AnyGenerator::of<TwoShot>();
      case Algorithm::recursive_doubling: return AnyGenerator::of<RecursiveDoubling>();
      case Algorithm::halving_doubling: return AnyGenerator::of<HalvingDoubling>();
      case Algorithm::circulant: return AnyGenerator::of<Circulant>();
      case Algorithm::double_tree: return AnyGenerator::of<DoubleTree>();
      case Algorithm::bruck: return AnyGenerator::of<Bruck>();
      case Algorithm::pairwise: return AnyGenerator::of<Pairwise>();
      case Algorithm::binomial: return AnyGenerator::of<Knomial<2>>();
      case Algorithm::knomial: return AnyGenerator::of<Knomial<4>>();
      case Algorithm::scatter_all_gather: return AnyGenerator::of<ScatterAllGather>();
      case Algorithm::torus: return AnyGenerator(torus_);
      case Algorithm::hierarchical: return AnyGenerator(hierarchical_);
      case Algorithm::exchange: return AnyGenerator::of<Exchange>();
      case Algorithm::automatic:
      case Algorithm::custom: break;
    }
    return {};
  }

  /// The shape that the formulas speak of.
  Shape shape(Operation operation, int ranks) const {
    Shape result{operation, ranks, 0, rooted(operation), nullptr};
    if (operation == Operation::exchange) result.routes = &routes_;
    return result;
  }

 private:
  Torus torus_;
  Hierarchical hierarchical_;
  Routes routes_;
};

/// Ours minus the formula's.
struct Difference {
  std::int64_t rounds = 0;
  std::int64_t blocks = 0;
  bool expected = false;  ///< it is none, or the one that the formula explains

  bool none() const { return rounds == 0 && blocks == 0; }
};

constexpr std::int64_t blocks_of(const Counts& counts, const Formula& formula) {
  return formula.measure == Measure::path ? counts.path : counts.busiest;
}

constexpr Difference compare(const Counts& counts, const Formula& formula) {
  Difference difference;
  difference.rounds = counts.rounds - formula.rounds;
  difference.blocks = blocks_of(counts, formula) - formula.blocks;
  difference.expected = difference.rounds == formula.more_rounds && difference.blocks >= formula.at_least &&
                        difference.blocks <= formula.at_most;
  return difference;
}

inline constexpr Operation operations[] = {
    Operation::all_reduce,     Operation::reduce_scatter, Operation::all_gather, Operation::broadcast,
    Operation::all_to_all,     Operation::reduce,         Operation::gather,     Operation::scatter,
    Operation::inclusive_scan, Operation::exclusive_scan, Operation::exchange};

}  // namespace meshwise::table
