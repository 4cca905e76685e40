// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/memory/group.hpp"
#include "meshwise/fabric/memory/slot.hpp"
#include "meshwise/fabric/memory/successor.hpp"

namespace meshwise::detail {

/// How the ranks that are left of a group agree on the one that follows it, as one of them takes part.
///
/// Each has marked itself as shrinking, and touches nobody's memory any more. The lowest of them that lives leads: when
/// each of the others has marked itself, has left or has ended, or when the time is up, it makes the new group and
/// publishes it with the list of its members, by one instruction. What is published first is what all adopt, so that
/// nothing depends on who thinks that it leads: should the leader die, the next one does, and should it fall silent,
/// whoever has waited for it in vain.
class Succession {
 public:
  /// seconds: for the others to come, 0 for ever.
  Succession(MemoryGroup& group, int rank, double seconds)
      : group_(group), rank_(rank), until_(seconds), given_up_(seconds > 0 ? seconds + patience : 0) {}

  /// Waits until the new group is known; null if the job fails before. meanwhile(): called again and again: the others
  /// may be waiting for something else. Errors: std::bad_alloc.
  template <class Meanwhile>
  const Successor* await(const Meanwhile& meanwhile) {
    std::atomic<Successor*>& place = group_.state().successor;
    int quick = 0;
    Backoff backoff = group_.job()->backoff(quick);
    for (;;) {
      if (const Successor* const found = place.load(std::memory_order_acquire)) return found;
      meanwhile();
      if (!backoff.pause()) continue;
      if (group_.job()->failed().load(std::memory_order_acquire) != 0) return nullptr;
      group_.slot(rank_).looked.store(monotonic_nanoseconds(), std::memory_order_relaxed);
      const bool late = until_.expired(), abandoned = given_up_.expired();
      if (abandoned || (leads() && (late || all_settled()))) publish(late);
    }
  }

  /// The new group where this rank has made it, else null.
  std::shared_ptr<MemoryGroup> made() { return std::move(made_); }

 private:
  using State = MemorySlot::State;
  static constexpr double patience = 1;  ///< seconds that others have to lead, and to show that they are not stopped

  State state(int rank) const { return group_.slot(rank).state.load(std::memory_order_acquire); }
  bool takes_part(int rank) const { return state(rank) == State::shrinking && !group_.died(rank); }

  bool leads() const {
    for (int rank = 0; rank < rank_; ++rank) {
      if (takes_part(rank)) return false;
    }
    return true;
  }

  /// Whether nobody can come any more who has not.
  bool all_settled() const {
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (state(rank) < State::shrinking && !group_.died(rank)) return false;
    }
    return true;
  }

  /// late: the time is up; then a rank that has come and shows no life stays outside.
  void publish(bool late) {
    std::vector<int> members;
    const std::int64_t now = monotonic_nanoseconds();
    for (int rank = 0; rank < group_.size(); ++rank) {
      const std::int64_t looked = group_.slot(rank).looked.load(std::memory_order_relaxed);
      const bool silent = late && rank != rank_ && now - looked > static_cast<std::int64_t>(patience * 1e9);
      if (takes_part(rank) && !silent) members.push_back(rank);
    }
    Job& job = *group_.job();
    void* const memory = job.allocate(sizeof(Successor) + members.size() * sizeof(std::int32_t));
    Successor* const mine = new (memory) Successor(members);
    try {
      made_ = group_.part(members);
    } catch (...) {
      job.release(mine);
      throw;
    }
    mine->state = &made_->state();
    Successor* nobody = nullptr;
    if (group_.state().successor.compare_exchange_strong(nobody, mine, std::memory_order_acq_rel)) {
      // Ranks that come later read it, however late: it stays as long as the job.
      return job.bury(mine, [](void*) { return false; });
    }
    made_->state().members.store(0, std::memory_order_release);
    made_ = nullptr;
    job.release(mine);
  }

  MemoryGroup& group_;
  int rank_;
  Deadline until_;
  Deadline given_up_;
  std::shared_ptr<MemoryGroup> made_;
};

}  // namespace meshwise::detail
