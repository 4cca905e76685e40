// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "elements.hpp"
#include "meshwise/schedule/algorithm.hpp"
#include "operations.hpp"

namespace harness {

/// What was found out about one operation in one form. Times in microseconds.
struct Timing {
  bool measured = false;
  double time = 0;   ///< one call on average, back to back; with cold caches or rewritten input the mean of single ones
  double least = 0;  ///< of single calls, each begun by all ranks together and as long as the slowest rank takes
  double median = 0;
  double low = 0;  ///< an interval that holds the true median with 95 %
  double high = 0;
  double most = 0;   ///< the 99th percentile
  double moved = 0;  ///< bytes that have to be read plus bytes that have to be written
  std::int32_t iterations = 0;
  std::int32_t batch = 1;   ///< calls timed together
  std::int64_t wrong = -1;  ///< elements; -1: not checked
};

/// One row. Plain data: it lies in memory that ranks share with who has started them.
struct Point {
  bool processes = false;
  bool foreign = false;
  bool cold = false;
  bool rewrite = false;
  bool ragged = false;
  bool reproducible = false;
  Verb verb = Verb::all_reduce;
  meshwise::ElementKind element = meshwise::ElementKind::f32;
  Redop redop = Redop::sum;
  meshwise::Algorithm algorithm = meshwise::Algorithm::automatic;
  char chosen[24] = {};  ///< the algorithm that ran where it was the library's choice; empty if there is none
  std::int32_t lanes = 0;
  std::int32_t root = -1;
  std::int32_t ranks = 1;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  double round_trip_before = 0;  ///< nanoseconds
  double round_trip_after = 0;
  double limit = 0;  ///< bytes read plus written per second of a copy that moves as much
  Timing out_of_place, in_place;
};

/// Gigabytes (1e9) per second of one rank's call.
inline double algorithm_bandwidth(const Point& point, double microseconds) {
  return microseconds > 0 ? static_cast<double>(point.size) / microseconds * 1e-3 : 0;
}
inline double bus_bandwidth(const Point& point, double microseconds) {
  return algorithm_bandwidth(point, microseconds) * bus_factor(point.verb, point.ranks);
}

/// Percent of the copy limit at which the median call has moved what it had to.
inline double percent_of_limit(const Point& point, const Timing& timing) {
  return point.limit > 0 && timing.median > 0 ? timing.moved / (timing.median * 1e-6) / point.limit * 100 : 0;
}

inline const char* fabric_name(const Point& point) { return point.processes ? "shared_memory" : "thread"; }
inline const char* buffers_name(const Point& point) { return point.foreign ? "foreign" : "registered"; }
inline const char* cache_name(const Point& point) { return point.cold ? "cold" : point.rewrite ? "rewritten" : "warm"; }

}  // namespace harness
