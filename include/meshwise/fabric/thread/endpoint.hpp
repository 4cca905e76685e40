// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/message.hpp"
#include "meshwise/fabric/move.hpp"
#include "meshwise/fabric/plans.hpp"
#include "meshwise/fabric/streaming.hpp"
#include "meshwise/fabric/thread/mail.hpp"
#include "meshwise/schedule/contract.hpp"

namespace meshwise::detail {

/// One thread's end of a group of threads in one process: collectives by load and store on everybody's buffers.
class ThreadEndpoint final : public ThreadMail {
 public:
  ThreadEndpoint(std::shared_ptr<ThreadGroup> group, int rank)
      : ThreadMail(std::move(group), rank), threshold_(streaming_threshold(group_->job()->cores())) {}

  Capabilities capabilities() const override { return {!group_->messages(), true, false}; }

  void run(const Call& call) override {
    Call own = call;
    if (own.algorithm == Algorithm::automatic) own.algorithm = Algorithm::direct;
    if (group_->messages()) {
      run_messages(own);
    } else {
      run_memory(own);
    }
  }

  std::unique_ptr<Endpoint> split(int color, int key) override {
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
  void run_memory(const Call& call) {
    // Whatever can fail for lack of memory happens before the others count on this rank.
    const MemoryPlan* const planned = call.count == 0 ? nullptr : &plans_.find(call.shape, call.algorithm, rank());
    std::size_t scratch_slot = 0;
    if (planned != nullptr && planned->plan.scratch_slots > 0) {
      scratch_slot = scratch_slot_bytes(call, blocks(call.shape));
      const std::size_t needed = scratch_slot * static_cast<std::size_t>(planned->plan.scratch_slots);
      if (scratch_.size() < needed) scratch_.resize(needed);
    }
    mover_.begin(call, scratch_slot);
    enter(call, scratch_.data(), planned == nullptr || planned->plan.steps.empty());
    if (planned == nullptr) return meet_all();
    const bool streaming = planned->settled && footprint(call) >= threshold_;
    const auto addresses = [this](int peer) -> const Addresses& { return peers_[static_cast<std::size_t>(peer)]; };
    const std::vector<Step>& steps = planned->plan.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const Wait& wait : steps[i].waits) await(wait.rank, static_cast<std::uint64_t>(wait.step));
      if (group_->poison().set()) leave();
      require_met(steps[i].move);
      try {
        mover_.perform(steps[i].move, addresses, streaming);
      } catch (const Error& error) {
        stop(error.report());
      }
      publish(i + 1 == steps.size() ? last_step : i + 2, std::memory_order_release);
    }
    for (const Wait& wait : planned->plan.exit) await(wait.rank, static_cast<std::uint64_t>(wait.step));
    traffic().messages += planned->messages;
    traffic().moved += mover_.moved();
  }

  void run_messages(const Call& call) {
    const LoweredPlan* const planned = call.count == 0 ? nullptr : &lowered_.find(call.shape, call.algorithm, rank());
    enter(call, nullptr, true);
    if (planned == nullptr) return meet_all();
    messenger_.run(*this, call, planned->plan, internal_tag | sequence_, deadline(call.deadline));
    // Whoever is received from has been compared with; a rank that only sends does it here.
    for (const MessageStep& step : planned->plan.steps) {
      for (const Message& message : step.sends) await(message.peer, 1);
    }
  }

  std::unique_ptr<Endpoint> divide(int color, int key) {
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

    // The first member makes the group. The others take it from the slot, where it stays until all have done so; after
    // an error, as long as this group lives.
    if (color >= 0 && members.front() == rank()) {
      slot_.offer = ThreadGroup::make(group_->job(), static_cast<int>(members.size()), group_->messages());
    }
    gather(nullptr, nullptr, 0);
    std::unique_ptr<ThreadEndpoint> result;
    if (color >= 0) {
      const auto mine = std::find(members.begin(), members.end(), rank()) - members.begin();
      result = std::make_unique<ThreadEndpoint>(group_->slot(members.front()).offer, static_cast<int>(mine));
      result->set_deadline(deadline());
      result->set_axis(axis());
    }
    gather(nullptr, nullptr, 0);
    slot_.offer.reset();
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

  static constexpr std::uint64_t split_signature = 0x73706c6974;  // tells a split from an all_gather

  std::uint64_t threshold_;
  std::vector<std::byte> scratch_;
  Mover mover_;
  Messenger messenger_;
  PlanCache<MemoryPlan> plans_;
  PlanCache<LoweredPlan> lowered_;
};

}  // namespace meshwise::detail
