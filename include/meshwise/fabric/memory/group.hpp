// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/fabric/memory/inbox.hpp"
#include "meshwise/fabric/memory/job.hpp"
#include "meshwise/fabric/memory/poison.hpp"
#include "meshwise/fabric/memory/slot.hpp"
#include "meshwise/fabric/memory/successor.hpp"
#include "meshwise/fabric/memory/windows.hpp"
#include "meshwise/topology/topology.hpp"

namespace meshwise::detail {

/// What the ranks of one communicator share: this, then a slot and an inbox for each, then notes and windows, in one
/// block of memory that all of them address at the same place. No pointers but into it, no locks, nothing to destroy.
struct GroupState {
  /// Groups that are larger note nothing: texts of errors are a little poorer.
  static constexpr int most_noted = 64;

  int size = 0;
  std::size_t window_capacity = 0;
  std::atomic<int> members{0};                 ///< that have not left; nobody touches this when there are none
  std::atomic<Successor*> successor{nullptr};  ///< the group that follows this one, once it has failed
  Poison poison;

  struct Shape {
    std::size_t slots, inboxes, notes, windows, bytes;  ///< where they begin

    Shape(int size, std::size_t capacity) {
      const auto ranks = static_cast<std::size_t>(size);
      slots = round(sizeof(GroupState));
      inboxes = slots + ranks * sizeof(MemorySlot);
      notes = round(inboxes + ranks * sizeof(PaddedInbox));
      windows = round(notes + (size <= most_noted ? ranks * sizeof(CallNotes::Pages) : 0));
      bytes = windows + Windows::bytes(size, capacity);
    }

   private:
    static std::size_t round(std::size_t bytes) { return (bytes + 127) / 128 * 128; }
  };

  struct alignas(128) PaddedInbox {
    Inbox inbox;
  };

  template <class T>
  T* at(std::size_t offset) {
    return std::launder(reinterpret_cast<T*>(reinterpret_cast<std::byte*>(this) + offset));
  }

  /// Makes one in new memory of the job.
  static GroupState* make(Job& job, int size, std::size_t capacity) {
    const Shape shape(size, capacity);
    auto* const memory = static_cast<std::byte*>(job.allocate(shape.bytes));
    auto* const state = new (memory) GroupState;
    state->size = size;
    state->window_capacity = capacity;
    state->members.store(size, std::memory_order_relaxed);
    for (int rank = 0; rank < size; ++rank) {
      const auto place = static_cast<std::size_t>(rank);
      CallNotes::Pages* pages = nullptr;
      if (size <= most_noted) pages = new (memory + shape.notes + place * sizeof(CallNotes::Pages)) CallNotes::Pages;
      new (memory + shape.slots + place * sizeof(MemorySlot)) MemorySlot(pages);
      new (memory + shape.inboxes + place * sizeof(PaddedInbox)) PaddedInbox;
    }
    Windows(memory + shape.windows, size, capacity, true);
    return state;
  }
};

static_assert(std::is_trivially_destructible_v<MemorySlot> && std::is_trivially_destructible_v<Poison> &&
              std::is_trivially_destructible_v<Inbox>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<void*>::is_always_lock_free);

/// One rank's, or one process', view of a group.
class MemoryGroup {
 public:
  /// A new group. topology: of as many ranks as the group has. members: their ranks in the job, by rank; empty: the
  /// same. Whoever makes it sees to it that all attach or that the job ends.
  static std::shared_ptr<MemoryGroup> make(const std::shared_ptr<Job>& job, Topology topology, bool messages,
                                           std::vector<int> members = {}) {
    const int size = topology.ranks();
    const std::size_t capacity = messages ? 0 : Windows::useful(size, job->crowded());
    GroupState* const state = GroupState::make(*job, size, capacity);
    std::shared_ptr<MemoryGroup> group;
    try {
      group = attach(job, *state, std::move(topology), messages, std::move(members));
    } catch (...) {
      job->release(state);
      throw;
    }
    group->maker_ = true;
    return group;
  }

  /// The view of a group that another rank has made.
  static std::shared_ptr<MemoryGroup> attach(const std::shared_ptr<Job>& job, GroupState& state, Topology topology,
                                             bool messages, std::vector<int> members = {}) {
    return std::make_shared<MemoryGroup>(job, state, std::move(topology), messages, std::move(members));
  }

  /// A new group of some ranks of this one, in the order that they are to have.
  std::shared_ptr<MemoryGroup> part(const std::vector<int>& ranks) const {
    return make(job_, topology_.subset(ranks), messages_, world_ranks(ranks));
  }

  /// The view of one that another rank has made so.
  std::shared_ptr<MemoryGroup> part(const std::vector<int>& ranks, GroupState& state) const {
    return attach(job_, state, topology_.subset(ranks), messages_, world_ranks(ranks));
  }

  MemoryGroup(std::shared_ptr<Job> job, GroupState& state, Topology topology, bool messages, std::vector<int> members)
      : job_(std::move(job)),
        state_(state),
        topology_(std::move(topology)),
        members_(std::move(members)),
        messages_(messages),
        slots_(state.at<MemorySlot>(GroupState::Shape(state.size, state.window_capacity).slots)),
        inboxes_(state.at<GroupState::PaddedInbox>(GroupState::Shape(state.size, state.window_capacity).inboxes)),
        windows_(state.at<std::byte>(GroupState::Shape(state.size, state.window_capacity).windows), state.size,
                 state.window_capacity, false) {}
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  /// The memory is its maker's to release, once all members have left.
  ~MemoryGroup() {
    if (maker_)
      job_->bury(&state_, [](void* state) {
        return static_cast<GroupState*>(state)->members.load(std::memory_order_acquire) == 0;
      });
  }

  const std::shared_ptr<Job>& job() const { return job_; }
  GroupState& state() { return state_; }
  int size() const { return state_.size; }
  const Topology& topology() const { return topology_; }
  bool messages() const { return messages_; }
  Poison& poison() { return state_.poison; }
  MemorySlot& slot(int rank) { return slots_[static_cast<std::size_t>(rank)]; }
  Inbox& inbox(int rank) { return inboxes_[static_cast<std::size_t>(rank)].inbox; }
  Windows& windows() { return windows_; }

  /// The rank in the job of a rank in the group.
  int world_rank(int rank) const { return members_.empty() ? rank : members_[static_cast<std::size_t>(rank)]; }

  /// Whether the process of a rank has ended without a word.
  bool died(int rank) const { return job_->died(world_rank(rank)); }

  /// How it ended; see Job::ending.
  std::string ending(int rank) const { return job_->ending(world_rank(rank)); }

 private:
  std::vector<int> world_ranks(const std::vector<int>& ranks) const {
    std::vector<int> result;
    for (const int rank : ranks) result.push_back(world_rank(rank));
    return result;
  }

  std::shared_ptr<Job> job_;
  GroupState& state_;
  Topology topology_;
  std::vector<int> members_;
  bool messages_;
  bool maker_ = false;
  MemorySlot* slots_;
  GroupState::PaddedInbox* inboxes_;
  Windows windows_;
};

}  // namespace meshwise::detail
