// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "document.hpp"

namespace harness {

/// One HTML page of everything measured, that needs no other file: for every operation, number of ranks and form the
/// bandwidth and the time over the size, a curve for each algorithm and way; a table; what peers took.
std::string page(const Options& options, const Host& host, const Board& board, const PeerResults& peers);

extern const char* const page_style;

}  // namespace harness
