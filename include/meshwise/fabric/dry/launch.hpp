// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/fabric/dry/dry.hpp"
#include "meshwise/fabric/thread/launch.hpp"

namespace meshwise {

/// `launch`, without data: `program` gets a communicator that is `dry`. ranks, options, program: as for `launch`.
template <class F>
void launch_dry(int ranks, const LaunchOptions& options, F&& program) {
  launch(ranks, options, [&](Communicator& communicator) {
    communicator = dry(std::move(communicator));
    program(communicator);
  });
}

/// The same with default options.
template <class F>
void launch_dry(int ranks, F&& program) {
  launch_dry(ranks, LaunchOptions{}, std::forward<F>(program));
}

}  // namespace meshwise
