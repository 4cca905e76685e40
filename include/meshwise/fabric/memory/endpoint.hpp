// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
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
#include "meshwise/fabric/hold.hpp"
#include "meshwise/fabric/memory/mutex_latch.hpp"
#include "meshwise/fabric/memory/performer.hpp"
#include "meshwise/fabric/memory/succession.hpp"
#include "meshwise/fabric/memory/successor.hpp"

namespace meshwise::detail {

/// One thread's end of a group of threads in one process: collectives in the order of the calls, blocking or started.
class MemoryEndpoint final : public MemoryPerformer {
 public:
  /// speaks: this one speaks for all of the job: says how it has been started, and warns (see Selector).
  MemoryEndpoint(std::shared_ptr<MemoryGroup> group, int rank, bool speaks = false,
                 std::shared_ptr<Agenda> agenda = nullptr)
      : MemoryPerformer(std::move(group), rank, speaks, std::move(agenda)) {
    if (speaks) introduce();
    if (!this->agenda()->driven()) return;
    own_latch_ = std::make_unique<MutexLatch>();
    set_latch(own_latch_.get());
  }

  ~MemoryEndpoint() override {
    {
      const Hold hold(latch());
      if (!queue_.empty()) {
        give_up("a rank left the group before an operation was complete that it had started");
        for (const auto& operation : queue_) operation->endpoint = nullptr;
      }
      leave_agenda();
    }
    set_latch(nullptr);  // nobody else knows of this one any more
  }

  Capabilities capabilities() const override { return {!group_->messages(), true, false}; }

  const MemorySource* memory() const override { return group_->job()->memory(); }

  Job& job() { return *group_->job(); }

  void enroll(void* data, std::size_t bytes) override { group_->job()->enroll(data, bytes); }
  void dismiss(void* data) noexcept override { group_->job()->dismiss(data); }

  std::uint64_t digest(const Call& call) const override { return known(call); }

  bool run(const Call& call) override {
    const Hold hold(latch());
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
    const Hold hold(latch());
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
    const Hold hold(latch());
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

  Owned<Endpoint> shrink(double seconds) override {
    const Hold hold(latch());
    waiting_ = Waiting{"shrink", false, Deadline(), 0, 0};
    if (shrunk_) {
      fail("shrink", "one call for each communicator", "a second one",
           "shrink the communicator that the first one gave", rank());
    }
    shrunk_ = true;
    group_->job()->recovers();
    set_background(false);
    give_up("called shrink", "");
    try {
      return succeed(deadline(seconds));
    } catch (...) {
      slot_.state.store(State::left, std::memory_order_seq_cst);  // the others need not count on this one
      try {
        throw;
      } catch (const std::bad_alloc&) {
        Report problem = report(Code::out_of_memory, rank());
        problem.axis = axis();
        problem.found = "no memory for a new group";
        throw Error(std::move(problem));
      }
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
    bool finished = false;
    std::atomic<bool> complete{false};  ///< what is written before, and the results, are seen by who sees this
  };

  class Started final : public Running {
   public:
    explicit Started(std::shared_ptr<Begun> operation) : operation_(std::move(operation)) {}
    ~Started() override {
      if (!complete() && operation_->endpoint != nullptr) operation_->endpoint->forget(operation_.get());
    }

    bool test() override {
      if (complete()) return true;
      MemoryEndpoint& end = endpoint();
      if (const TryHold hold(end.latch()); hold) {
        end.advance_started();
        if (!complete() && end.others_wait()) end.agenda()->advance();
      }
      // A loop of tests would keep the others from running for the rest of its time slice.
      if (!complete() && end.group_->job()->crowded()) end.group_->job()->give_way();
      return complete();
    }

    void wait() override {
      if (complete()) return;
      MemoryEndpoint& end = endpoint();
      const Hold hold(end.latch());
      while (!complete()) end.drive<true>();
    }

    bool finished() const override { return operation_->finished; }

   private:
    bool complete() const { return operation_->complete.load(std::memory_order_acquire); }

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
      endpoint_.set_driving(true);
    }
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;
    ~Driving() {
      endpoint_.waiting_ = waiting_;
      endpoint_.set_driving(false);
      endpoint_.set_background(!endpoint_.queue_.empty());
    }

   private:
    MemoryEndpoint& endpoint_;
    Waiting waiting_;
  };

  void advance_started() {
    while (!queue_.empty() && drive<false>()) {}
  }

  bool advance_aside() override {
    if (driving()) return false;
    struct Aside {
      bool& flag;
      explicit Aside(bool& aside) : flag(aside) { flag = true; }
      ~Aside() { flag = false; }
    } const aside(aside_);
    const std::uint64_t before = footsteps();
    try {
      advance_started();
    } catch (...) {
      set_background(false);
      throw;
    }
    return footsteps() != before;
  }

  /// Grows with whatever comes about here.
  std::uint64_t footsteps() const {
    return slot_.progress.load(std::memory_order_relaxed) + traffic().messages + completed_;
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
    ++completed_;
    const std::shared_ptr<Begun> first = std::move(queue_.front());
    queue_.pop_front();
    first->complete.store(true, std::memory_order_release);
    return true;
  }

  /// Ends the group because of operations that will not be waited for; then nobody touches their buffers any more.
  void give_up(const char* reason) noexcept { give_up("called abort: ", reason); }
  void give_up(const char* what, const char* reason) noexcept {
    find_deaths();
    abort(what, reason);
    settle();
    drop_messages();
  }

  void forget(const Begun* operation) noexcept {
    const Hold hold(latch());
    if (operation->complete.load(std::memory_order_relaxed)) return;
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
    if (makes) {
      group = group_->part(members);
      slot_.offer.store(&group->state(), std::memory_order_release);
    }
    gather(nullptr, nullptr, 0);
    std::unique_ptr<MemoryEndpoint> result;
    if (color >= 0) {
      if (!makes) {
        GroupState* const offer = group_->slot(members.front()).offer.load(std::memory_order_acquire);
        group = group_->part(members, *offer);
      }
      result = member_of(std::move(group), members, generation());
    }
    gather(nullptr, nullptr, 0);
    return result;
  }

  /// This rank's end of a group of some ranks of this one.
  std::unique_ptr<MemoryEndpoint> member_of(std::shared_ptr<MemoryGroup> group, const std::vector<int>& members,
                                            int generation) {
    const auto mine = std::find(members.begin(), members.end(), rank()) - members.begin();
    auto result = std::make_unique<MemoryEndpoint>(std::move(group), static_cast<int>(mine), false, agenda());
    result->set_deadline(deadline());
    result->set_axis(axis());
    result->set_generation(generation);
    result->announce("has joined");
    return result;
  }

  /// A dead rank is the cause of an error rather than what is done about it.
  void find_deaths() noexcept {
    try {
      for (int peer = 0; peer < size() && !group_->poison().set(); ++peer) {
        if (!group_->died(peer)) continue;
        Report problem = absence(peer, ending_of(peer));
        problem.expected = "rank " + std::to_string(peer) + " to live";
        put(std::move(problem));
      }
    } catch (...) {
      // Without memory for the text the call alone must do.
    }
  }

  /// What `shrink` does once this rank touches nobody's memory any more.
  std::unique_ptr<MemoryEndpoint> succeed(double seconds) {
    slot_.looked.store(monotonic_nanoseconds(), std::memory_order_relaxed);
    slot_.state.store(State::shrinking, std::memory_order_seq_cst);
    Succession succession(*group_, rank(), seconds);
    const Successor* const next = succession.await([this] {
      if (others_wait()) agenda()->advance();
    });
    Report problem = report(Code::aborted, rank());
    if (next == nullptr) {
      problem = group_->job()->cause();
      problem.operation = waiting_.verb;
      problem.rank = rank();
      problem.axis = axis();
      throw Error(std::move(problem));
    }
    const std::vector<int> members = next->members(size());
    if (std::find(members.begin(), members.end(), rank()) != members.end()) {
      auto group = succession.made();
      return member_of(group ? std::move(group) : group_->part(members, *next->state), members, generation() + 1);
    }
    problem.axis = axis();
    problem.ranks = {rank()};
    problem.found =
        "rank " + std::to_string(rank()) + " is not part of the new generation: it came too late, or was silent";
    problem.remedy = "let the ranks that come early wait longer (shrink(seconds)), or end this one";
    throw Error(std::move(problem));
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

  /// Afterwards nobody goes on with anything here any more.
  void leave_agenda() noexcept {
    set_background(false);
    expect_nothing();
  }

  bool shrunk_ = false;
  std::deque<std::shared_ptr<Begun>> queue_;  ///< started and not complete; the first one may have been entered
  std::uint64_t completed_ = 0;               ///< operations that were started
  std::unique_ptr<MutexLatch> own_latch_;     ///< only where there is a progress thread
};

}  // namespace meshwise::detail
