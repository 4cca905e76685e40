// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace meshwise {

/// Which processors the ranks of a launcher may run on.
enum class Bind {
  none,  ///< those that the launcher may run on: threads of a rank, and other jobs, are the system's business
  core   ///< every rank a share of its own, of whole cores as long as there are enough
};

/// How a Launcher starts ranks and what it does when they end.
struct LauncherOptions {
  int ranks = 1;
  bool label = false;       ///< put "[rank] " in front of every line that a rank writes
  bool keep_going = false;  ///< the failure of one rank does not end the others
  Bind bind = Bind::none;
  double grace = 2;                      ///< seconds that the others have, after a failure, to end or to call shrink
  double kill_after = 2;                 ///< seconds between the SIGTERM that they get then, and SIGKILL
  double timeout = 0;                    ///< seconds for the whole job, 0 for ever
  std::vector<std::string> environment;  ///< NAME=VALUE, besides what the launcher's own environment has
  std::string name = "meshwise-run";     ///< in front of the launcher's own lines
};

}  // namespace meshwise
