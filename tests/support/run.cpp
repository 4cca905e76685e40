// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/launch_processes.hpp"

template void meshwise::detail::launch_processes<>(int, const meshwise::ProcessOptions&, meshwise::detail::ProcessBody);
template void meshwise::detail::join_job<>(int, int, int, const std::vector<int>&, const meshwise::LaunchOptions&,
                                           meshwise::detail::Program);
