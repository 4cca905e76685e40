// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "board.hpp"

namespace peers {

/// The ranks of the contestant that is meshwise, as processes of this one; returns when they have ended. Its exit code.
int run_meshwise(Board& board, int seat, bool registered);

}  // namespace peers
