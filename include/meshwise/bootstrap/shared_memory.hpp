// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <optional>
#include <string_view>

#include "meshwise/bootstrap/environment.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/fabric/launch_options.hpp"
#include "meshwise/fabric/shared_memory/join.hpp"

namespace meshwise {

/// The fabric of ranks that are processes of one host, for `run`. Fits where meshwise-run has started this process,
/// which is one rank then; and where MESHWISE_FABRIC asks for it by name: without a launcher the process forks all
/// ranks.
struct shared_memory {
  static const char* name() { return "shared_memory"; }

  static bool fits() {
    if (place_from_environment()) return true;
    const char* const forced = std::getenv("MESHWISE_FABRIC");
    return forced != nullptr && std::string_view(forced) == name();
  }

  static int size() {
    const std::optional<Place> place = place_from_environment();
    return place ? place->size : 0;
  }
  static int rank() {
    const std::optional<Place> place = place_from_environment();
    return place ? place->rank : -1;
  }

  /// Under a launcher, once for each process: the descriptors that it has handed down are closed. Else as
  /// `launch_processes`.
  template <class Program>
  static void run(int ranks, const LaunchOptions& options, Program& program) {
    const std::optional<Place> place = place_from_environment();
    if (!place) return launch_processes(ranks, options, program);
    auto call = [&program](Communicator& communicator) { program(communicator); };  // program may be a function
    detail::join_job<>(place->rank, place->size, place->control, place->arenas, options, detail::program_of(call));
  }
};

}  // namespace meshwise
