// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "point.hpp"

namespace harness {

/// The figures of some points as an HTML table that unfolds. open: it is unfolded.
std::string page_table(const std::vector<const Point*>& points, bool open);

}  // namespace harness
