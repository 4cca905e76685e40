// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace meshwise {

/// How ranks that are processes are waited for.
struct ProcessOptions {
  double deadline = 0;    ///< seconds until all have to be at their end, 0 for ever
  double grace = 2;       ///< seconds that the others have, once a rank has failed, to notice it and end by themselves
  double kill_after = 2;  ///< seconds between the SIGTERM that they get then, and SIGKILL
};

}  // namespace meshwise
