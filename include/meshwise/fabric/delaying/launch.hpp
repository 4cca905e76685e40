// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/fabric/delaying/delayed.hpp"
#include "meshwise/fabric/delaying/delays.hpp"
#include "meshwise/fabric/thread/launch.hpp"

namespace meshwise {

/// `launch`, with a slow network between the threads: `program` gets a communicator that is `delayed`.
///
/// ranks, options, program: as for `launch`. delays: see Delays. Errors: those of both.
template <class F>
void launch_delayed(int ranks, const LaunchOptions& options, const Delays& delays, F&& program) {
  detail::require_delays("launch_delayed", delays);
  launch(ranks, options, [&](Communicator& communicator) {
    communicator = delayed(std::move(communicator), delays);
    program(communicator);
  });
}

/// The same with default options.
template <class F>
void launch_delayed(int ranks, const Delays& delays, F&& program) {
  launch_delayed(ranks, LaunchOptions{}, delays, std::forward<F>(program));
}

}  // namespace meshwise
