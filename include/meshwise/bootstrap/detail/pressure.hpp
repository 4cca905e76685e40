// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>

#include "meshwise/core/deadline.hpp"

namespace meshwise::detail {

/// A moment to come, or none.
class Moment {
 public:
  Moment() = default;
  /// seconds from now; beyond thirty years: none.
  static Moment in(double seconds) {
    Moment moment;
    if (seconds < 1e9) moment.at_ = monotonic_nanoseconds() + static_cast<std::int64_t>(seconds * 1e9);
    return moment;
  }

  bool set() const { return at_ != 0; }
  bool come() const { return set() && monotonic_nanoseconds() >= at_; }
  /// Shortens what poll may wait, in milliseconds, so that the moment is not missed. -1: for ever.
  void limit(int& milliseconds) const {
    if (!set()) return;
    const std::int64_t left = (at_ - monotonic_nanoseconds() + 999'999) / 1'000'000;
    const int wait = left < 0 ? 0 : left > 60'000 ? 60'000 : static_cast<int>(left);
    if (milliseconds < 0 || wait < milliseconds) milliseconds = wait;
  }

 private:
  std::int64_t at_ = 0;
};

/// How ranks are brought to their end: time to do it themselves, SIGTERM, some more time, SIGKILL.
class Pressure {
 public:
  Pressure(double grace, double kill_after) : grace_(grace), kill_after_(kill_after) {}

  bool begun() const { return stage_ != Stage::none; }
  /// Whether they have been sent a signal: how they end from then on says nothing about them.
  bool sent() const { return stage_ == Stage::asked || stage_ == Stage::killed; }
  /// Even SIGKILL has not helped for long.
  bool hopeless() const { return stage_ == Stage::killed && next_.come(); }

  void begin() {
    if (!urgent_ && !sent()) enter(Stage::grace, grace_);
  }
  /// Without grace, whatever is postponed from now on.
  void ask() {
    urgent_ = true;
    enter(Stage::grace, 0);
  }
  /// If the time of grace is up, it begins again.
  void postpone() {
    if (stage_ == Stage::grace && next_.come() && !urgent_) enter(Stage::grace, grace_ < least ? least : grace_);
  }

  /// The signal that is due now, each once: 0, SIGTERM or SIGKILL.
  int due() {
    if (!next_.come()) return 0;
    if (stage_ == Stage::grace) {
      enter(Stage::asked, kill_after_);
      return SIGTERM;
    }
    if (stage_ == Stage::asked) {
      kill();
      return SIGKILL;
    }
    return 0;
  }

  /// SIGKILL is sent at once, by the caller.
  void kill() { enter(Stage::killed, patience); }

  void limit(int& milliseconds) const { next_.limit(milliseconds); }

 private:
  enum class Stage { none, grace, asked, killed };
  static constexpr double patience = 10;
  static constexpr double least = 0.1;

  void enter(Stage stage, double seconds) {
    stage_ = stage;
    next_ = Moment::in(seconds);
  }

  double grace_;
  double kill_after_;
  Stage stage_ = Stage::none;
  bool urgent_ = false;
  Moment next_;
};

}  // namespace meshwise::detail
