// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/schedule/settings.hpp"
#include "meshwise/topology/topology.hpp"

namespace meshwise {

/// How ranks are started, whatever they are.
struct LaunchOptions {
  double deadline = 600;   ///< seconds that an operation may wait for others, 0 for ever
  bool foreign = false;    ///< threads: take buffers for memory that only their owners address, as between processes
  bool messages = false;   ///< run collectives over send and receive, as a fabric without shared memory would
  const char* name = "";   ///< the communicator's name in errors
  Topology topology = {};  ///< what the choice of algorithms goes by; left as it is, all ranks reach each other alike
  std::optional<Settings> settings = {};  ///< what is forced; without it, Settings::from_environment()
  /// A thread beside each rank's own goes on with all that the rank has started, so that operations complete, and large
  /// messages of groups are read, while the program computes. Reductions of the program's run on it too. It looks
  /// whether there is something to do as long as anything is in flight, up to every 20 us, and needs a core for what it
  /// does; calls on communicators take a lock each.
  bool progress_thread = false;
};

namespace detail {

/// A program of unknown type: what to call with it and a communicator.
struct Program {
  void (*call)(void* object, Communicator& communicator);
  void* object;
};

/// run: stays where it is while the program is used.
template <class Run>
Program program_of(Run& run) {
  return {[](void* object, Communicator& communicator) { (*static_cast<Run*>(object))(communicator); }, &run};
}

/// The topology of so many ranks, once the options are checked.
inline Topology topology_of(const char* verb, int ranks, const LaunchOptions& options) {
  if (!(options.deadline >= 0)) {
    fail(verb, "a deadline >= 0 seconds (0 waits for ever)", std::to_string(options.deadline),
         "choose another deadline");
  }
  if (options.topology == Topology()) return Topology::flat(ranks);
  if (options.topology.ranks() != ranks) {
    fail(verb, "a topology of " + std::to_string(ranks) + " ranks", std::to_string(options.topology.ranks()),
         "describe the ranks that are started");
  }
  return options.topology;
}

}  // namespace detail
}  // namespace meshwise
