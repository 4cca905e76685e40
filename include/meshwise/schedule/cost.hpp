// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/schedule/any_generator.hpp"
#include "meshwise/schedule/detail/cost_walk.hpp"
#include "meshwise/topology/topology.hpp"

namespace meshwise {

/// What a schedule is expected to take. Nothing but `walked` means anything if the schedule has not been walked.
struct Cost {
  bool walked = false;  ///< false: it has more moves than it was allowed to look at
  double seconds = 0;   ///< until the last rank is done, if all begin at once
  int rounds = 0;       ///< of the schedule, for one lane
  double bytes = 0;     ///< that the busiest rank sends or receives, whichever is more
  double messages = 0;  ///< of all ranks and lanes
};

/// How much `cost` looks at unless told otherwise: about two seconds' worth.
inline constexpr std::int64_t default_walk_budget = std::int64_t{1} << 25;

namespace detail {

inline Cost walk_cost(Flow& flow, CostWalk& walk, std::uint64_t bytes, int lanes, std::int64_t budget) {
  const WalkResult result = walk.run(bytes, lanes, budget);
  Cost cost;
  if (!result.finished) return cost;
  cost.walked = true;
  cost.seconds = result.seconds;
  cost.rounds = flow.rounds();
  cost.bytes = result.most_bytes;
  cost.messages = result.messages;
  return cost;
}

}  // namespace detail

/// Predicts what a schedule takes on a topology: it walks through the rounds and keeps for every rank when it is done.
///
/// bytes: of the vector that is cut in blocks, the larger side of one rank's buffers (all_to_all: the p blocks of one
/// rank; exchange: all blocks); every block counts as an equal part, fractions included, so that predictions never fall
/// when bytes grow. lanes: slices that pass through the schedule one behind the other. budget: pieces to look at.
///
/// Model: moves are messages as `lower` makes them, one for each pair of ranks, round and lane. A message begins when
/// both ends are done with all that comes before, takes the latency of the link where they meet, and then as long as
/// the slowest of what it shares needs for everything that is in flight there in that round: the sender's port, the
/// receiver's port, the uplinks of the groups that it leaves and enters. Sending and receiving go on side by side; a
/// further message at one port costs the link's gap. Combining takes gamma per byte, copying at home nothing. Round k
/// of lane l is in flight with round k + 1 of lane l - 1. On a torus a message takes the bandwidth of all the links
/// that it crosses in the dim in which it goes farthest.
/// Cost: all moves, except of rounds that the generator calls alike, which are leapt over once every rank needs the
/// same time for them: a ring of 100000 ranks takes a few rounds.
/// Errors: `invalid_argument` for a shape that the generator does not support, another number of ranks than the
/// topology's, or less than 1 lane.
inline Cost cost(const AnyGenerator& generator, const Shape& shape, std::uint64_t bytes, const Topology& topology,
                 int lanes = 1, std::int64_t budget = default_walk_budget) {
  detail::require_shape("cost", generator, shape, 0);
  if (topology.ranks() != shape.ranks) {
    fail("cost", "a topology of " + std::to_string(shape.ranks) + " ranks", std::to_string(topology.ranks()),
         "describe the ranks of the group that runs the schedule");
  }
  if (lanes < 1) fail("cost", "at least 1 lane", std::to_string(lanes), "pass 1 for none");
  detail::Flow flow(generator, shape);
  detail::CostWalk walk(flow, topology);
  return detail::walk_cost(flow, walk, bytes, lanes, budget);
}

/// The same for a generator that is known by type.
template <Generator G>
Cost cost(const G& generator, const Shape& shape, std::uint64_t bytes, const Topology& topology, int lanes = 1,
          std::int64_t budget = default_walk_budget) {
  return cost(AnyGenerator(generator), shape, bytes, topology, lanes, budget);
}

}  // namespace meshwise
