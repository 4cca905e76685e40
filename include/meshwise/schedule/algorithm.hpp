// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace meshwise {

/// The algorithms that the library brings, by name. `automatic` leaves the choice to the selector; `custom` is a
/// generator that the caller passes as a type. The values are stable.
enum class Algorithm : std::uint8_t {
  automatic,
  direct,
  ring,
  one_shot,
  two_shot,
  recursive_doubling,
  halving_doubling,
  circulant,
  double_tree,
  bruck,
  pairwise,
  binomial,
  knomial,
  scatter_all_gather,
  torus,
  hierarchical,
  exchange,
  custom,
};

/// How many algorithms there are, `automatic` and `custom` included: their values are 0 to this.
inline constexpr int algorithm_count = static_cast<int>(Algorithm::custom) + 1;

/// The short name of an algorithm, such as "ring"; the same as its generator's.
constexpr const char* algorithm_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::automatic: return "automatic";
    case Algorithm::direct: return "direct";
    case Algorithm::ring: return "ring";
    case Algorithm::one_shot: return "one_shot";
    case Algorithm::two_shot: return "two_shot";
    case Algorithm::recursive_doubling: return "recursive_doubling";
    case Algorithm::halving_doubling: return "halving_doubling";
    case Algorithm::circulant: return "circulant";
    case Algorithm::double_tree: return "double_tree";
    case Algorithm::bruck: return "bruck";
    case Algorithm::pairwise: return "pairwise";
    case Algorithm::binomial: return "binomial";
    case Algorithm::knomial: return "knomial";
    case Algorithm::scatter_all_gather: return "scatter_all_gather";
    case Algorithm::torus: return "torus";
    case Algorithm::hierarchical: return "hierarchical";
    case Algorithm::exchange: return "exchange";
    case Algorithm::custom: return "custom";
  }
  return "unknown";
}

}  // namespace meshwise
