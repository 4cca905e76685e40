// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.hpp"
#include "point.hpp"
#include "stage.hpp"
#include "work.hpp"

namespace harness {

/// How the input is found by a call.
enum class State { warm, rewritten, cold };

/// The most times that `measure` notes for one point.
std::size_t times_needed(const Options& options);

/// Measures one form of a point, and checks it. Called by all ranks alike, with a work that differs only in what is
/// theirs; all get the same. Input and output are overwritten.
///
/// Single calls: all ranks meet, each takes the time around its own call, and the slowest one's counts, so that it ends
/// when the last rank has its result. Calls shorter than a microsecond are timed several at a time, since reading the
/// clock is not free.
Timing measure(Stage& stage, meshwise::Communicator& world, const Work& work, const Options& options, State state);

}  // namespace harness
