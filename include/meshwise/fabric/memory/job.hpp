// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/core/yield_cost.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise::detail {

/// For tests of what happens between two steps: called with the number of the operation and where the rank is in it: 0
/// before it enters, 1 when others can see that it has; then the progress that it is about to publish (see
/// schedule/plan.hpp; last_step after the last move, and in calls without moves); message_steps + k after the k-th
/// message that it has sent or received in it.
struct StepHook {
  void (*call)(void* context, std::uint64_t sequence, std::uint64_t step) = nullptr;
  void* context = nullptr;

  static constexpr std::uint64_t message_steps = std::uint64_t{1} << 32;
};

/// What the ranks that address each other's memory have in common, as one process holds it: how they wait, what is
/// forced upon their selectors, where lies what they share, and which of them has failed.
///
/// Threads have one for all ranks; of processes each has its own. From any thread.
class Job {
 public:
  /// crowded: there are more ranks than cores. one_process: every address is good for all ranks. yields: what they
  /// cost, where all ranks find it; null: this is the one that all ranks have.
  Job(int cores, bool crowded, bool one_process, const Settings& settings, YieldCost* yields = nullptr)
      : cores_(cores),
        crowded_(crowded),
        one_process_(one_process),
        settings_(settings),
        yields_(yields != nullptr ? yields : &own_yields_) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  /// Cores that the ranks may use.
  int cores() const { return cores_; }
  bool crowded() const { return crowded_; }

  /// For a wait for another rank. quick: see Backoff.
  Backoff backoff(int& quick) { return Backoff(crowded_, yields_, &quick); }

  /// Lets other ranks run for a moment.
  [[gnu::noinline]] void give_way() {
    Backoff backoff(true, yields_);
    backoff.skip_pauses();
    backoff.pause();
    if (backoff.tired()) backoff.pause();
  }

  bool one_process() const { return one_process_; }
  const Settings& settings() const { return settings_; }
  StepHook& hook() { return hook_; }

  /// Not 0 once a rank has failed, so that all must end.
  virtual const std::atomic<std::uint32_t>& failed() const = 0;

  /// Why, for other ranks' errors; once `failed()`.
  virtual Report cause() const = 0;

  /// Remembers that a rank of the job has failed, and ends all groups. rank: negative where ranks that have left a
  /// group have found it out. Never throws.
  virtual void fail(int rank, const std::exception_ptr& error) noexcept = 0;

  /// To be called when a rank of this process begins to go on without those that have failed.
  virtual void recovers() noexcept {}

  /// What the heaps of this process should get their memory from, so that all ranks address it; null: from anywhere.
  virtual const MemorySource* memory() const { return nullptr; }

  /// Memory that all ranks address at the same place, aligned to 128 bytes; throws std::bad_alloc.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;

  /// Releases memory as soon as `idle(memory)` says that nobody uses it: looked at now and then, and at the end.
  void bury(void* memory, bool (*idle)(void* memory)) noexcept {
    try {
      const std::lock_guard<std::mutex> lock(mutex_);
      graves_.push_back(Grave{memory, idle});
    } catch (...) {
      // Without memory for the note it stays until the job ends.
    }
    sweep();
  }

  void sweep() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::size_t kept = 0;
    for (const Grave& one : graves_) {
      if (one.idle(one.memory)) {
        release(one.memory);
      } else {
        graves_[kept++] = one;
      }
    }
    graves_.resize(kept);
  }

  /// Whether the process of a rank of the job has ended without a word. Cost: may be a system call.
  virtual bool died(int) const { return false; }

  /// How that came, such as "was killed by signal 9"; empty as long as it is not known.
  virtual std::string ending(int) const { return {}; }

  /// The address at which all ranks see own memory; null if they do not.
  virtual const void* reach(const void* data, std::size_t) { return data; }

  /// Makes a buffer of this process one that all ranks address, and undoes that. Where they do anyway there is nothing
  /// to do.
  virtual void enroll(void*, std::size_t) {}
  virtual void dismiss(void*) {}

  /// Whether ranks may read each other's private memory, by request to the system; agreed upon by all.
  virtual bool attaches() const { return false; }

  /// Reads private memory of a rank of the job; false if the system refuses.
  virtual bool read_private(int, void*, const void*, std::size_t) { return false; }

  /// Writes private memory of a rank of the job; false if the system refuses.
  virtual bool write_private(int, void*, const void*, std::size_t) { return false; }

  /// A text that all ranks can read, equal to a literal of this process.
  virtual const char* shared_text(const char* literal) { return literal; }

 protected:
  /// For the destructors of those that know how to release.
  void release_all() noexcept {
    for (const Grave& one : graves_) release(one.memory);
    graves_.clear();
  }

 private:
  struct Grave {
    void* memory;
    bool (*idle)(void* memory);
  };

  int cores_;
  bool crowded_;
  bool one_process_;
  Settings settings_;
  YieldCost* yields_;
  YieldCost own_yields_;
  StepHook hook_;
  std::mutex mutex_;
  std::vector<Grave> graves_;
};

/// The cause that other ranks report when one has failed.
inline Report failure_of(int rank, const std::string& text) {
  Report cause;
  cause.code = Code::aborted;
  cause.found = (rank < 0 ? "ranks left a group: " : "rank " + std::to_string(rank) + " of the job failed: ") + text;
  cause.remedy = "look for the cause there";
  if (rank >= 0) cause.ranks = {rank};
  return cause;
}

/// What an exception says.
inline std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace meshwise::detail
