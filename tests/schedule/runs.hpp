// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dice.hpp"
#include "meshwise/schedule/compile.hpp"
#include "meshwise/schedule/generator.hpp"
#include "meshwise/schedule/lower.hpp"
#include "rendezvous.hpp"
#include "simulation.hpp"

namespace meshwise::test {

/// Whether the plans of all ranks, compiled for shared memory, work in `trials` random interleavings.
template <Generator G>
bool runs_on_memory(const G& generator, const Shape& shape, int lanes, Dice& dice, int trials) {
  std::vector<Plan> plans;
  for (int r = 0; r < shape.ranks; ++r) plans.push_back(compile(generator, shape, r, lanes));
  for (int trial = 0; trial < trials; ++trial) {
    Simulation simulation(plans);
    simulation.run(dice);
    if (!simulation.good()) return false;
  }
  return true;
}

/// Whether the plans of all ranks, lowered to messages, work in `trials` random orders of transfer.
template <Generator G>
bool runs_on_messages(const G& generator, const Shape& shape, int lanes, Dice& dice, int trials) {
  std::vector<MessagePlan> plans;
  for (int r = 0; r < shape.ranks; ++r) plans.push_back(lower(generator, shape, r, lanes));
  for (int trial = 0; trial < trials; ++trial) {
    Rendezvous rendezvous(plans);
    if (!rendezvous.run(dice) || !rendezvous.good()) return false;
  }
  return true;
}

/// Both. What the tests of every generator ask for every shape of a few ranks.
template <Generator G>
bool runs(const G& generator, const Shape& shape, int lanes, Dice& dice, int trials = 3) {
  return runs_on_memory(generator, shape, lanes, dice, trials) &&
         runs_on_messages(generator, shape, lanes, dice, trials);
}

}  // namespace meshwise::test
