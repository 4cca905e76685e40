// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "../bench/statistics.hpp"
#include "operation.hpp"

namespace peers {

/// A point of the comparison: the best peer and meshwise on one kind of buffers.
struct Point {
  Operation operation = Operation::barrier;
  int ranks = 0;
  std::size_t bytes = 0;
  bool rewritten = false;
  bool foreign = false;

  std::string peer;            ///< the best one's setting; empty if there is none
  double peer_us = 0;          ///< its median over all batches
  double us = 0;               ///< meshwise's
  std::vector<double> ratios;  ///< of each pair
  double ratio = 0;            ///< their median
  harness::Interval interval;
  std::string placement;  ///< of all pairs that count
  double round_trip = 0;  ///< nanoseconds, the median over the pairs that count
  int dropped = 0;        ///< pairs that do not
  double limit_gbs = 0;   ///< a copy's rate measured beside it, GB/s read plus written
  double of_limit = 0;    ///< percent of it
  double bar = 0;
  std::vector<std::pair<std::string, double>> scouted;  ///< every peer and its time in us
  std::vector<std::string> notes;
};

}  // namespace peers
