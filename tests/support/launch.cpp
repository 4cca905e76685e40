// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/thread/launch.hpp"

template void meshwise::detail::launch_threads<>(int, const meshwise::LaunchOptions&, meshwise::detail::Program);
