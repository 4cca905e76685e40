// SPDX-License-Identifier: Apache-2.0
// For programs whose ranks are threads or processes: both and all they need are compiled once, in launch.cpp and run.cpp.
#pragma once

#include "launch.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"

extern template void meshwise::detail::launch_processes<>(int, const meshwise::ProcessOptions&,
                                                          meshwise::detail::ProcessBody);
extern template void meshwise::detail::join_job<>(int, int, int, const std::vector<int>&,
                                                  const meshwise::LaunchOptions&, meshwise::detail::Program);
