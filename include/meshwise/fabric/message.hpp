// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/move.hpp"
#include "meshwise/fabric/region_walk.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/message_plan.hpp"

namespace meshwise::detail {

/// Runs lowered collectives over an endpoint's send and receive, one at a time, to the end or as far as they get.
///
/// All pieces that one rank sends to another in one step are one message. A message that lies in one stretch travels
/// from and to where it lies; others are packed and unpacked. Same result, bit for bit, as the memory executor with the
/// same schedule.
/// Cost: the plan's messages; memory for scratch and packing grows to what the largest call needs and is kept.
/// Order: `begin`, then `advance` until it returns true or throws. After an error `drop` makes sure that nobody reads
/// the buffers any more.
class Messenger {
 public:
  /// call, plan: outlive the run. tag: the same on all ranks, different from call to call. deadline: seconds for each
  /// wait. finishing: as in MoveOptions.
  /// Errors: `unsupported` for a schedule with scratch if every rank knows its own buffers only.
  void begin(Endpoint& endpoint, const Call& call, const MessagePlan& plan, std::uint64_t tag, double deadline,
             bool finishing) {
    endpoint_ = &endpoint;
    call_ = &call;
    plan_ = &plan;
    tag_ = tag;
    deadline_ = deadline;
    step_ = 0;
    phase_ = Phase::post;
    scratch_layout_ = {};
    if (plan.scratch_slots > 0) {
      if (call.regions.own_bytes > 0) refuse(call, endpoint.rank());
      scratch_layout_ = scratch_layout(call, blocks(call.shape), plan.lanes);
      const std::size_t needed = scratch_layout_.slot * static_cast<std::size_t>(plan.scratch_slots);
      if (scratch_.size() < needed) scratch_.resize(needed);
    }
    own_ = Addresses{static_cast<const std::byte*>(call.input), static_cast<std::byte*>(call.output), scratch_.data(),
                     call.regions.context};
    bundle_of_.assign(static_cast<std::size_t>(call.shape.ranks), none);
    mover_.begin(call, MoveOptions{scratch_layout_.slot, plan.lanes, finishing, scratch_layout_.lane});
  }

  /// blocking: waits for what is missing, else returns false. True: complete. Errors: those of the endpoint.
  template <bool blocking>
  bool advance() {
    const auto addresses = [this](int) -> const Addresses& { return own_; };
    for (; step_ < plan_->steps.size(); ++step_, phase_ = Phase::post) {
      const MessageStep& step = plan_->steps[step_];
      if (phase_ == Phase::post) {
        post(step);
        phase_ = Phase::receive;
      }
      if (phase_ == Phase::receive) {
        if (!receive<blocking>()) return false;
        for (const Move& move : step.moves) mover_.perform(move, step.lane, addresses, false);
        phase_ = Phase::settle;
      }
      for (; !sendings_.empty(); sendings_.pop_back()) {
        if constexpr (blocking) {
          sendings_.back()->wait();
        } else {
          if (!sendings_.back()->test()) return false;
        }
      }
    }
    return true;
  }

  /// Withdraws what is on its way, or waits until it has been read.
  void drop() noexcept { sendings_.clear(); }

 private:
  enum class Phase { post, receive, settle };
  static constexpr int none = -1;

  /// A stretch of a message, where it lies at this rank.
  struct Stretch {
    RegionWalk walk;
    std::size_t bytes = 0;
    int next = none;  ///< the following one of the same message, in `stretches_`
  };

  /// One message of a step.
  struct Bundle {
    int peer = 0;
    std::size_t bytes = 0;
    int head = none;  ///< in `stretches_`
    int tail = none;
    std::size_t packed = 0;  ///< where it lies in `packed_`, if it is not in one stretch
  };

  [[noreturn]] static void refuse(const Call& call, int rank) {
    Report report;
    report.code = Code::unsupported;
    report.operation = call.verb;
    report.rank = rank;
    report.expected = "a schedule without scratch, where every rank knows its own buffers only";
    report.found = "one with scratch";
    report.remedy = "choose the direct algorithm";
    throw Error(std::move(report));
  }

  void post(const MessageStep& step) {
    stretches_.clear();
    packed_bytes_ = 0;
    collect(step.sends, step.lane, leaving_);
    collect(step.receives, step.lane, arriving_);
    if (packed_.size() < packed_bytes_) packed_.resize(packed_bytes_);
    sendings_.reserve(leaving_.size());
    for (const Bundle& bundle : leaving_) {
      const std::byte* data = place(bundle);
      if (!direct(bundle)) copy(bundle, true);
      sendings_.push_back(endpoint_->post_send(call_->verb, bundle.peer, tag_, data, bundle.bytes, deadline_));
    }
  }

  template <bool blocking>
  bool receive() {
    std::size_t missing = 0;
    for (std::size_t k = 0; k < arriving_.size(); ++k) {
      const Bundle bundle = arriving_[k];
      if constexpr (blocking) {
        endpoint_->receive(call_->verb, bundle.peer, tag_, place(bundle), bundle.bytes, deadline_);
      } else if (!endpoint_->try_receive(call_->verb, bundle.peer, tag_, place(bundle), bundle.bytes)) {
        arriving_[missing++] = bundle;
        continue;
      }
      if (!direct(bundle)) copy(bundle, false);
      endpoint_->traffic().moved += bundle.bytes;
      ++endpoint_->traffic().messages;
    }
    arriving_.resize(missing);
    return missing == 0;
  }

  /// Gathers the messages of one direction by peer, in the order in which the pieces of each peer come.
  void collect(const std::vector<Message>& messages, int lane, List<Bundle>& bundles) {
    bundles.clear();
    for (const Message& message : messages) {
      int& index = bundle_of_[static_cast<std::size_t>(message.peer)];
      if (index == none) {
        index = static_cast<int>(bundles.size());
        bundles.push_back(Bundle{message.peer});
      }
      Bundle& bundle = bundles[static_cast<std::size_t>(index)];
      for (int i = 0; i < message.piece.count; ++i) add(bundle, message, i, lane);
    }
    std::size_t kept = 0;
    for (const Bundle& bundle : bundles) {
      bundle_of_[static_cast<std::size_t>(bundle.peer)] = none;
      // Where ranks describe their own buffers the other end may expect something: it must see that this is empty.
      if (bundle.bytes == 0 && call_->regions.own_bytes == 0) continue;
      bundles[kept] = bundle;
      if (!direct(bundle)) {
        bundles[kept].packed = packed_bytes_;
        packed_bytes_ += (bundle.bytes + 63) / 64 * 64;
      }
      ++kept;
    }
    bundles.resize(kept);
  }

  /// Adds the lane's part of one slot to a message.
  void add(Bundle& bundle, const Message& message, int i, int lane) {
    const std::size_t unit = call_->element_size;
    const int slot = message.piece.slot + i;
    std::byte* base = nullptr;
    Region region;
    if (message.piece.buffer == Buffer::scratch) {
      const std::size_t size = block_size(*call_, message.block + i);
      region = Region{0, size, size, 1};
      base = own_.scratch + static_cast<std::size_t>(slot) * scratch_layout_.slot;
    } else {
      region = call_->regions.locate(own_.context, call_->shape, message.piece.buffer, message.piece.rank, slot);
      base = message.piece.buffer == Buffer::input ? const_cast<std::byte*>(own_.input) : own_.output;
    }
    const Range part = lane_part(region.size(), unit, lane, plan_->lanes);
    if (part.size == 0) return;
    const std::size_t bytes = part.size * unit;
    const bool own_place = message.piece.buffer == Buffer::scratch && scratch_layout_.lane > 0;
    const RegionWalk walk =
        own_place ? RegionWalk::stretch(base + static_cast<std::size_t>(lane) * scratch_layout_.lane, bytes)
                  : RegionWalk::along(base, region, unit, part);
    bundle.bytes += bytes;
    if (bundle.tail != none) {
      Stretch& last = stretches_[static_cast<std::size_t>(bundle.tail)];
      if (last.walk.whole(last.bytes) && walk.whole(bytes) && last.walk.at + last.bytes == walk.at) {
        last.bytes += bytes;
        last.walk = RegionWalk{last.walk.at, last.bytes, 0, last.bytes};
        return;
      }
    }
    const int index = static_cast<int>(stretches_.size());
    stretches_.push_back(Stretch{walk, bytes, none});
    (bundle.tail == none ? bundle.head : stretches_[static_cast<std::size_t>(bundle.tail)].next) = index;
    bundle.tail = index;
  }

  bool direct(const Bundle& bundle) const {
    if (bundle.head != bundle.tail) return false;
    return bundle.head == none || stretches_[static_cast<std::size_t>(bundle.head)].walk.whole(bundle.bytes);
  }

  std::byte* place(const Bundle& bundle) {
    if (bundle.head == none) return nullptr;
    return direct(bundle) ? stretches_[static_cast<std::size_t>(bundle.head)].walk.at : packed_.data() + bundle.packed;
  }

  void copy(const Bundle& bundle, bool pack) {
    std::byte* packed = packed_.data() + bundle.packed;
    for (int k = bundle.head; k != none; k = stretches_[static_cast<std::size_t>(k)].next) {
      const Stretch& stretch = stretches_[static_cast<std::size_t>(k)];
      stretch.walk.copy(packed, stretch.bytes, pack);
      packed += stretch.bytes;
    }
  }

  Endpoint* endpoint_ = nullptr;
  const Call* call_ = nullptr;
  const MessagePlan* plan_ = nullptr;
  std::uint64_t tag_ = 0;
  double deadline_ = 0;
  std::size_t step_ = 0;
  Phase phase_ = Phase::post;
  ScratchLayout scratch_layout_;
  Addresses own_;
  Mover mover_;
  List<std::byte> scratch_;
  List<std::byte> packed_;
  std::size_t packed_bytes_ = 0;  ///< of the step at hand
  List<Stretch> stretches_;
  List<Bundle> leaving_;
  List<Bundle> arriving_;          ///< those that have not arrived
  List<int> bundle_of_;            ///< by peer, while messages are gathered
  List<Owned<Sending>> sendings_;  ///< after what they point into: destroyed first
};

}  // namespace meshwise::detail
