// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/memory/cores.hpp"
#include "meshwise/fabric/memory/job.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise::detail {

/// The largest number of ranks that `launch` starts.
inline constexpr int most_threads = 4096;

/// What the ranks of one `launch` share.
class ThreadJob final : public Job {
 public:
  /// settings: what is forced upon the selectors of all groups; read once, so that all ranks choose alike.
  /// foreign: what ranks bring is taken for memory that only they address, as between processes.
  explicit ThreadJob(int ranks, const Settings& settings = {}, bool foreign = false)
      : ThreadJob(ranks, usable_cores(), settings, foreign) {}
  ~ThreadJob() override { release_all(); }

  const std::atomic<std::uint32_t>& failed() const override { return failed_; }

  Report cause() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cause_;
  }

  void fail(int rank, const std::exception_ptr& error) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      failures_.push_back(Failure{error, is_echo(error)});
      if (failures_.size() == 1) cause_ = failure_of(rank, text_of(error));
    } catch (...) {
      // Without memory for the text the code alone must do.
      cause_.code = Code::aborted;
    }
    failed_.store(1, std::memory_order_release);
  }

  void* allocate(std::size_t bytes) override { return ::operator new(bytes, alignment); }
  void release(void* memory) noexcept override { ::operator delete(memory, alignment); }

  const void* reach(const void* data, std::size_t) override { return one_process() ? data : nullptr; }

  /// Throws the first cause, if any rank failed: the earliest failure that is not the echo of another one.
  void rethrow() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Failure& failure : failures_) {
      if (!failure.echo) std::rethrow_exception(failure.error);
    }
    if (!failures_.empty()) std::rethrow_exception(failures_.front().error);
  }

 private:
  static constexpr std::align_val_t alignment{128};

  struct Failure {
    std::exception_ptr error;
    bool echo = false;  ///< it says that somebody else has failed or left
  };

  ThreadJob(int ranks, int cores, const Settings& settings, bool foreign)
      : Job(cores, ranks > cores, !foreign, settings) {}

  static bool is_echo(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& known) {
      return known.code() == Code::aborted || known.code() == Code::peer_left || !known.report().origin.empty();
    } catch (...) {
      return false;
    }
  }

  mutable std::mutex mutex_;
  std::atomic<std::uint32_t> failed_{0};
  std::vector<Failure> failures_;
  Report cause_;
};

}  // namespace meshwise::detail
