// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/fabric/memory/small.hpp"
#include "meshwise/fabric/plans.hpp"

namespace meshwise::detail {

/// Plans of one move that combines the same part of all inputs into all outputs: the direct all_reduce, which most
/// large calls are. What the general way does with them, in the same order and with the same checks, without its lists:
/// after a move the first-level cache holds little else than data, and every line of a list has to be fetched again.
class MemoryDirect : public MemorySmall {
 public:
  MemoryDirect(std::shared_ptr<MemoryGroup> group, int rank, std::shared_ptr<Agenda> agenda)
      : MemorySmall(std::move(group), rank, std::move(agenda)),
        inputs_(static_cast<std::size_t>(size())),
        outputs_(inputs_.size()) {}

 protected:
  static bool is_direct(const Call& call, const MemoryPlan* plan) {
    return plan != nullptr && plan->part >= 0 && call.regions.contiguous && call.regions.own_bytes == 0;
  }

  /// The whole of such a call. False, with nothing done but that it is entered, if there are buffers that not all ranks
  /// address; else `finished` says whether its move has finished it (see Call::finishing).
  bool run_direct(const Call& call, const MemoryPlan& plan, bool streaming, bool& finished) {
    const Region region = call.regions.locate(call.regions.context, call.shape, Buffer::input, rank(), plan.part);
    const std::size_t count = region.size();
    const std::size_t offset = region.offset * call.element_size;
    publish_call(call, nullptr);
    if (translates_ && is_foreign(buffers(own_))) return false;
    bool foreign = false;
    for (int peer = 0; peer < size(); ++peer) {
      const std::byte* input = static_cast<const std::byte*>(call.input);
      std::byte* output = static_cast<std::byte*>(call.output);
      if (peer != rank()) {
        const Progressed entered{group_->slot(peer), sequence_, 1};
        if (!entered()) wait(peer, entered);
        const Addresses buffers = require(peer);
        foreign = foreign || (translates_ && is_foreign(buffers));
        input = buffers.input;
        output = buffers.output;
      }
      if (foreign) continue;  // only to meet all
      inputs_[static_cast<std::size_t>(peer)] = input + offset;
      outputs_[static_cast<std::size_t>(peer)] = output + offset;
    }
    if (foreign) return false;
    begin_moving();
    const Reduce kernel = plan.finishes ? call.finishing : call.kernel;
    kernel(count, inputs_.data(), size(), outputs_.data(), size(), streaming && !call.shape.in_place);
    publish(last_step, std::memory_order_release);
    end_moving();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const Progressed done{group_->slot(peer), sequence_, 2};
      if (!done()) wait(peer, done);
    }
    const auto others = static_cast<std::uint64_t>(size() - 1);
    traffic().messages += plan.messages;
    traffic().moved += 2 * others * count * call.element_size;
    finished = plan.finishes;
    return true;
  }

 private:
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace meshwise::detail
