// SPDX-License-Identifier: Apache-2.0
// One rank of a job of processes meets its fate at one point of one collective, and what all ranks have seen of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/schedule.hpp"

namespace faults {

/// What happens to the victim.
enum class Fate : std::uint8_t {
  none,    ///< it lives: its points are counted
  killed,  ///< SIGKILL
  exits,   ///< _exit in the middle of the call
  throws,  ///< an exception out of the call
  stopped  ///< SIGSTOP, and SIGCONT once the others have given up
};
const char* name_of(Fate fate);

/// By which way data goes.
enum class Way : std::uint8_t {
  memory,   ///< buffers that all ranks address
  foreign,  ///< private buffers
  messages,
  windows,  ///< so small that one rendezvous does
  attached  ///< private buffers, by request to the system
};
const char* name_of(Way way);

/// A collective, and how it is done.
struct Target {
  meshwise::Operation operation = meshwise::Operation::all_reduce;
  meshwise::Algorithm algorithm = meshwise::Algorithm::automatic;
  Way way = Way::memory;
  int ranks = 2;

  std::string text() const;
};

/// All that the ranks can do: every operation by every algorithm that supports it, by every way.
std::vector<Target> targets(int ranks);

/// Steps that the schedule of a target has for a rank; only for `Way::memory`.
int steps_of(const Target& target, int rank);

struct Scenario {
  Target target;
  int victim = 0;
  Fate fate = Fate::none;
  int point = 0;  ///< from 0: before it enters; 1: others can see that it has; then before each step is published

  std::string text() const;
};

/// Runs it. Returns what is wrong, empty if nothing is. met: whether the victim has come to the point. points: how many
/// there are (for Fate::none). late: what is wrong is only that somebody was late, which a busy machine may explain.
std::string play(const Scenario& scenario, bool& met, int& points, bool& late);

}  // namespace faults
