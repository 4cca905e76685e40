// SPDX-License-Identifier: Apache-2.0
// Ranks for tests of what lies above the fabric: threads and all they need are compiled once, in launch.cpp.
#pragma once

#include "meshwise/fabric/thread/launch.hpp"

extern template void meshwise::detail::launch_threads<>(int, const meshwise::LaunchOptions&, meshwise::detail::Program);
