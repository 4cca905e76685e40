// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/random.hpp"

namespace meshwise {

/// When the data of a delayed operation moves.
enum class Landing : std::uint8_t {
  late,     ///< when the time has come: a buffer that was reused before shows as a wrong result
  at_once,  ///< as soon as the ranks are there, but completion is reported late: what is written over results shows
  mixed,    ///< drawn for each operation and rank
};

/// How late operations complete: alpha + beta * bytes seconds after they were entered, and up to `jitter` more.
///
/// bytes: the volume of a collective on this rank (see collective/volume.hpp), the size of a message. The operations of
/// one communicator share a link: their bytes follow each other, their alphas overlap, and they complete in the order
/// in which they were begun; those of different communicators do not wait for each other, so that jitter shuffles them,
/// differently on each rank. Groups of one, and messages to oneself, are not delayed.
struct Delays {
  double alpha = 0;                 ///< seconds per operation
  double beta = 0;                  ///< seconds per byte
  double jitter = 0;                ///< seconds; uniform, drawn anew for each operation and rank
  std::uint64_t seed = 0;           ///< of what is drawn: the same draws in every run
  Landing landing = Landing::late;  ///< on all ranks alike, or not
};

namespace detail {

inline void require_delays(const char* verb, const Delays& delays, int rank = -1) {
  const auto require = [&](const char* name, double value) {
    if (value >= 0 && value < 1e9) return;
    fail(verb, std::string(name) + " >= 0 seconds and below 1e9", std::to_string(value), "choose another delay", rank);
  };
  require("alpha", delays.alpha);
  require("beta", delays.beta);
  require("jitter", delays.jitter);
}

/// The link of one endpoint: when its operations are due, and how they land.
class DelayLine {
 public:
  DelayLine(const Delays& delays, std::uint64_t seed) : delays_(delays), seed_(seed) {}

  struct Draw {
    std::int64_t due = 0;  ///< nanoseconds of the monotonic clock, or of a virtual one
    bool at_once = false;
  };

  Draw next(std::uint64_t bytes, std::int64_t now = monotonic_nanoseconds()) {
    ++number_;
    free_ = std::max(now, free_) + nanoseconds(delays_.beta * static_cast<double>(bytes));
    last_ = std::max(last_, free_ + nanoseconds(delays_.alpha + delays_.jitter * uniform(seed_, 2 * number_)));
    return {last_, delays_.landing == Landing::at_once ||
                       (delays_.landing == Landing::mixed && random_bits(seed_, 2 * number_ + 1) % 2 == 0)};
  }

 private:
  static std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9); }

  Delays delays_;
  std::uint64_t seed_;
  std::uint64_t number_ = 0;
  std::int64_t free_ = 0;  ///< when the link has sent everything
  std::int64_t last_ = 0;  ///< when the last operation is due
};

}  // namespace detail
}  // namespace meshwise
