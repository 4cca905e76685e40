// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace meshwise {

/// How ranks that are processes are waited for.
struct ProcessOptions {
  double deadline = 0;  ///< seconds until all have to be at their end, 0 for ever
  /// Seconds that the others have, once a rank has failed, to notice it and end by themselves, or one of them to call
  /// shrink: whoever goes on so is not ended. Programs that shrink and may compute for longer without a call need more.
  double grace = 2;
  double kill_after = 2;  ///< seconds between the SIGTERM that they get then, and SIGKILL
};

}  // namespace meshwise
