// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/fabric/launch_options.hpp"
#include "meshwise/fabric/thread/launch.hpp"

namespace meshwise {

/// The fabric of ranks that are threads of this process, for `run`. Fits everywhere.
struct thread {
  static const char* name() { return "thread"; }
  static bool fits() { return true; }

  /// As `launch`.
  template <class Program>
  static void run(int ranks, const LaunchOptions& options, Program& program) {
    launch(ranks, options, program);
  }
};

}  // namespace meshwise
