// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/poison.hpp"
#include "meshwise/fabric/thread/cores.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise::detail {

/// The largest number of ranks that `launch` starts.
inline constexpr int most_threads = 4096;

/// What the ranks of one `launch` share: which of them failed, and the groups that must be told.
class ThreadJob {
 public:
  /// settings: what is forced upon the selectors of all groups; read once, so that all ranks choose alike.
  explicit ThreadJob(int ranks, const Settings& settings = {})
      : cores_(usable_cores()), crowded_(ranks > cores_), settings_(settings) {}

  /// Cores that the process may use.
  int cores() const { return cores_; }

  /// Whether there are more ranks than cores.
  bool crowded() const { return crowded_; }

  const Settings& settings() const { return settings_; }

  /// Aborts a new group together with the job; at once if the job has failed.
  void watch(const std::shared_ptr<Poison>& poison) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failures_.empty()) {
      poison->put(cause_);
      return;
    }
    // Dead entries go when the list would grow: the cost of a group stays constant on average.
    if (groups_.size() == groups_.capacity()) {
      std::size_t kept = 0;
      for (auto& group : groups_) {
        if (!group.expired()) groups_[kept++] = group;
      }
      groups_.resize(kept);
      groups_.reserve(2 * kept + 8);
    }
    groups_.push_back(poison);
  }

  /// Remembers why a rank ended, and aborts all groups. rank: of the job; negative: ranks that have left a group have
  /// found it out.
  void fail(int rank, std::exception_ptr error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failures_.push_back(Failure{error, false});
    std::string text = "an exception that is no std::exception";
    try {
      std::rethrow_exception(error);
    } catch (const Error& known) {
      text = known.what();
      failures_.back().echo =
          known.code() == Code::aborted || known.code() == Code::peer_left || !known.report().origin.empty();
    } catch (const std::exception& known) {
      text = known.what();
    } catch (...) {}
    if (failures_.size() > 1) return;
    cause_.code = Code::aborted;
    cause_.found = (rank < 0 ? "ranks left a group: " : "rank " + std::to_string(rank) + " of the job failed: ") + text;
    cause_.remedy = "look for the cause there";
    if (rank >= 0) cause_.ranks = {rank};
    for (const auto& group : groups_) {
      if (const auto poison = group.lock()) poison->put(cause_);
    }
  }

  /// Throws the first cause, if any rank failed: the earliest failure that is not the echo of another one.
  void rethrow() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Failure& failure : failures_) {
      if (!failure.echo) std::rethrow_exception(failure.error);
    }
    if (!failures_.empty()) std::rethrow_exception(failures_.front().error);
  }

 private:
  struct Failure {
    std::exception_ptr error;
    bool echo = false;  ///< it says that somebody else has failed or left
  };

  mutable std::mutex mutex_;
  int cores_;
  bool crowded_;
  Settings settings_;
  std::vector<std::weak_ptr<Poison>> groups_;
  std::vector<Failure> failures_;
  Report cause_;
};

}  // namespace meshwise::detail
