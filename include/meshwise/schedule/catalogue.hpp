// SPDX-License-Identifier: Apache-2.0
#pragma once

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
#include "meshwise/topology/topology.hpp"

namespace meshwise {

/// The generators of the library by name, those with parameters fitted to a topology.
///
/// Lifetime: what `find` returns may refer to the catalogue, which therefore stays where it is.
class Catalogue {
 public:
  explicit Catalogue(const Topology& topology)
      : torus_{topology.torus_dims()}, hierarchical_(begins(topology)), levels_(!topology.levels().empty()) {}
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  /// The generator of an algorithm; empty for `automatic` and `custom`, for `torus` if the topology is none, and for
  /// `hierarchical` if it has no levels. `knomial` has radix 4. Cost: a few instructions.
  AnyGenerator find(Algorithm algorithm) const {
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
      case Algorithm::binomial: return AnyGenerator::of<Binomial>();
      case Algorithm::knomial: return AnyGenerator::of<Knomial<4>>();
      case Algorithm::scatter_all_gather: return AnyGenerator::of<ScatterAllGather>();
      case Algorithm::torus: return torus_.dims.empty() ? AnyGenerator() : AnyGenerator(torus_);
      case Algorithm::hierarchical: return levels_ ? AnyGenerator(hierarchical_) : AnyGenerator();
      case Algorithm::exchange: return AnyGenerator::of<Exchange>();
      case Algorithm::automatic:
      case Algorithm::custom: break;
    }
    return {};
  }

 private:
  static std::vector<std::vector<int>> begins(const Topology& topology) {
    std::vector<std::vector<int>> result;
    for (const Level& level : topology.levels()) result.push_back(level.begins);
    return result;
  }

  Torus torus_;
  Hierarchical hierarchical_;
  bool levels_;
};

}  // namespace meshwise
