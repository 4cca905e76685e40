// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/memory/performer.hpp"

namespace meshwise::detail {

/// One thread's end of a group of threads in one process: collectives in the order of the calls, blocking or started.
class MemoryEndpoint final : public MemoryPerformer {
 public:
  /// speaks: this one may write a warning to stderr (see Selector).
  MemoryEndpoint(std::shared_ptr<MemoryGroup> group, int rank, bool speaks = false,
                 std::shared_ptr<Agenda> agenda = nullptr)
      : MemoryPerformer(std::move(group), rank, speaks, std::move(agenda)) {}

  ~MemoryEndpoint() override {
    if (queue_.empty()) return;
    give_up("a rank left the group before an operation was complete that it had started");
    for (const auto& operation : queue_) operation->endpoint = nullptr;
  }

  Capabilities capabilities() const override { return {!group_->messages(), true, false}; }

  const MemorySource* memory() const override { return group_->job()->memory(); }

  std::uint64_t digest(const Call& call) const override { return known(call); }

  bool run(const Call& call) override {
    while (!queue_.empty()) drive<true>();
    try {
      if (is_known_small(call) || is_small(call)) {
        run_small(call);
        return true;
      }
    } catch (...) {
      end_group();
    }
    return run_plan(call, plan(call));
  }

  Owned<Running> start(const Call& call) override {
    auto operation = std::make_shared<Begun>();
    operation->call = call;
    operation->windowed = is_small(call);
    if (!operation->windowed) plan(operation->call, &operation->handles);
    auto result = std::make_unique<Started>(operation);
    queue_.push_back(operation);
    operation->endpoint = this;
    advance_started();
    return result;
  }

  Owned<Endpoint> split(int color, int key) override {
    const Traffic before = traffic();
    try {
      auto result = divide(color, key);
      traffic() = before;  // only what the program asked for counts
      return result;
    } catch (const std::bad_alloc&) {
      Report problem = report(Code::out_of_memory, rank());
      problem.found = "no memory for a new group";
      stop(problem);
    }
  }

 private:
  bool run_plan(const Call& call, const CallPlan& steps) {
    bool finished = false;
    if (!is_direct(call, steps.memory)) {
      begin(call, steps);
    } else {
      try {
        if (run_direct(call, *steps.memory, streams(call, *steps.memory), finished)) return finished;
        begin_entered(call, steps);
      } catch (...) {
        end_group();
      }
    }
    try {
      advance<true>();
    } catch (...) {
      end_group();
    }
    return conclude();
  }

  /// A started operation, which the endpoint performs and the caller's Started waits for.
  struct Begun {
    Call call;
    Handles handles;
    Waiting waiting;
    MemoryEndpoint* endpoint = nullptr;  ///< null once it has gone
    bool windowed = false;
    bool entered = false;
    bool complete = false;
    bool finished = false;
  };

  class Started final : public Running {
   public:
    explicit Started(std::shared_ptr<Begun> operation) : operation_(std::move(operation)) {}
    ~Started() override {
      if (!operation_->complete && operation_->endpoint != nullptr) operation_->endpoint->forget(operation_.get());
    }

    bool test() override {
      if (operation_->complete) return true;
      MemoryEndpoint& end = endpoint();
      end.advance_started();
      if (!operation_->complete && !end.agenda()->empty()) end.agenda()->advance();
      // A loop of tests would keep the others from running for the rest of its time slice.
      if (!operation_->complete && end.group_->job()->crowded()) sched_yield();
      return operation_->complete;
    }

    void wait() override {
      while (!operation_->complete) endpoint().drive<true>();
    }

    bool finished() const override { return operation_->finished; }

   private:
    MemoryEndpoint& endpoint() const {
      if (operation_->endpoint == nullptr) {
        Report problem;
        problem.code = Code::aborted;
        problem.operation = operation_->call.verb;
        problem.found = "the communicator went before the operation was complete";
        problem.remedy = "wait for what was started before the communicator is destroyed";
        throw Error(std::move(problem));
      }
      return *operation_->endpoint;
    }

    std::shared_ptr<Begun> operation_;
  };

  /// For the time in which a started operation is driven: waits of other calls come back as they were.
  class Driving {
   public:
    explicit Driving(MemoryEndpoint& endpoint) : endpoint_(endpoint), waiting_(endpoint.waiting_) {
      endpoint_.set_background(false);
    }
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;
    ~Driving() {
      endpoint_.waiting_ = waiting_;
      endpoint_.set_background(!endpoint_.queue_.empty());
    }

   private:
    MemoryEndpoint& endpoint_;
    Waiting waiting_;
  };

  void advance_started() {
    while (!queue_.empty() && drive<false>()) {}
  }

  void advance_aside() override {
    struct Aside {
      bool& flag;
      explicit Aside(bool& aside) : flag(aside) { flag = true; }
      ~Aside() { flag = false; }
    } const aside(aside_);
    advance_started();
  }

  /// Goes on with the first operation that is not complete. True: it is now, and has left the queue.
  template <bool blocking>
  bool drive() {
    const Driving driving(*this);
    Begun& operation = *queue_.front();
    if (operation.entered) {
      waiting_ = operation.waiting;
      if (stopped()) {
        drop_messages();
        leave();
      }
    } else {
      if (operation.windowed) {
        begin_small(operation.call);
      } else {
        begin(operation.call, operation.handles.plan());
      }
      operation.entered = true;
    }
    bool done = false;
    guarded([&] { done = operation.windowed ? advance_small<blocking>(operation.call) : advance<blocking>(); });
    operation.waiting = waiting_;
    if (!done) {
      rest();
      return false;
    }
    operation.finished = operation.windowed || conclude();
    operation.complete = true;
    queue_.pop_front();
    return true;
  }

  /// Ends the group because of operations that will not be waited for; then nobody touches their buffers any more.
  void give_up(const char* reason) noexcept {
    abort(reason);
    settle();
    drop_messages();
  }

  void forget(const Begun* operation) noexcept {
    give_up("an operation was given up before it was complete");
    for (auto at = queue_.begin(); at != queue_.end(); ++at) {
      if (at->get() != operation) continue;
      queue_.erase(at);
      break;
    }
    set_background(!queue_.empty());
  }

  Owned<Endpoint> divide(int color, int key) {
    struct Wish {
      std::int32_t color;
      std::int32_t key;
    };
    const auto number = static_cast<std::size_t>(size());
    std::vector<Wish> wishes(number);
    const Wish wish{color, key};
    gather(&wish, wishes.data(), sizeof(Wish));

    std::vector<int> members;
    for (int peer = 0; peer < size() && color >= 0; ++peer) {
      if (wishes[static_cast<std::size_t>(peer)].color == color) members.push_back(peer);
    }
    const auto key_of = [&](int peer) { return wishes[static_cast<std::size_t>(peer)].key; };
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return key_of(a) < key_of(b); });

    // The first member makes the group, the others take it from the slot. What it has made lives until all of them have
    // left, or the job ends.
    std::shared_ptr<MemoryGroup> group;
    const bool makes = color >= 0 && members.front() == rank();
    const bool messages = group_->messages();
    const auto world_ranks = [&] {
      std::vector<int> ranks;
      for (const int member : members) ranks.push_back(group_->world_rank(member));
      return ranks;
    };
    if (makes) {
      group = MemoryGroup::make(group_->job(), group_->topology().subset(members), messages, world_ranks());
      slot_.offer.store(&group->state(), std::memory_order_release);
    }
    gather(nullptr, nullptr, 0);
    std::unique_ptr<MemoryEndpoint> result;
    if (color >= 0) {
      if (!makes) {
        GroupState* const offer = group_->slot(members.front()).offer.load(std::memory_order_acquire);
        group = MemoryGroup::attach(group_->job(), *offer, group_->topology().subset(members), messages, world_ranks());
      }
      const auto mine = std::find(members.begin(), members.end(), rank()) - members.begin();
      result = std::make_unique<MemoryEndpoint>(std::move(group), static_cast<int>(mine), false, agenda());
      result->set_deadline(deadline());
      result->set_axis(axis());
    }
    gather(nullptr, nullptr, 0);
    return result;
  }

  /// One item from each rank to all; of 0 bytes, a barrier.
  void gather(const void* item, void* items, std::size_t bytes) {
    Call call;
    call.verb = "split";
    call.shape = Shape{Operation::all_gather, size(), 0, false};
    call.element_size = bytes;
    call.count = bytes == 0 ? 0 : static_cast<std::uint64_t>(size());
    call.signature = split_signature;
    call.input = item;
    call.output = items;
    call.regions.locate = [](const void*, const Shape&, Buffer buffer, int, int slot) {
      return Region{buffer == Buffer::input ? 0 : static_cast<std::size_t>(slot), 1, 1, 1};
    };
    run(call);
  }

  std::deque<std::shared_ptr<Begun>> queue_;  ///< started and not complete; the first one may have been entered
};

}  // namespace meshwise::detail
