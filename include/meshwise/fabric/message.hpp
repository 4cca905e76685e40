// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/move.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/message_plan.hpp"

namespace meshwise::detail {

/// Runs lowered collectives over an endpoint's send and receive.
///
/// Strided pieces are packed before they are sent and unpacked when they arrive; contiguous ones travel from and to
/// where they lie. Same result, bit for bit, as the memory executor with the same schedule.
/// Cost: the plan's messages; memory for scratch and packing grows to what the largest call needs and is kept.
class Messenger {
 public:
  /// tag: the same on all ranks, different from call to call. deadline: seconds for each wait.
  /// Errors: those of the endpoint.
  void run(Endpoint& endpoint, const Call& call, const MessagePlan& plan, std::uint64_t tag, double deadline) {
    const std::size_t slot = plan.scratch_slots == 0 ? 0 : scratch_slot_bytes(call, blocks(call.shape));
    const std::size_t needed = slot * static_cast<std::size_t>(plan.scratch_slots);
    if (scratch_.size() < needed) scratch_.resize(needed);
    const Addresses own{static_cast<const std::byte*>(call.input), static_cast<std::byte*>(call.output),
                        scratch_.data()};
    const auto addresses = [&own](int) -> const Addresses& { return own; };
    mover_.begin(call, slot);
    for (const MessageStep& step : plan.steps) {
      // Declared before what points into it: on an error the messages are withdrawn first.
      std::vector<std::vector<std::byte>> packed;
      packed.reserve(step.sends.size());
      std::vector<std::unique_ptr<Sending>> sendings;
      for (const Message& message : step.sends) {
        for (int i = 0; i < message.piece.count; ++i) {
          const Place place = find(call, message, i, own, slot);
          if (place.bytes == 0) continue;
          const std::byte* data = place.at;
          if (!place.whole) {
            packed.emplace_back(place.bytes);
            copy(place, packed.back().data(), true);
            data = packed.back().data();
          }
          sendings.push_back(endpoint.post_send(call.verb, message.peer, tag, data, place.bytes, deadline));
        }
      }
      for (const Message& message : step.receives) {
        for (int i = 0; i < message.piece.count; ++i) {
          const Place place = find(call, message, i, own, slot);
          if (place.bytes == 0) continue;
          if (place.whole) {
            endpoint.receive(call.verb, message.peer, tag, place.at, place.bytes, deadline);
          } else {
            staging_.resize(place.bytes);
            endpoint.receive(call.verb, message.peer, tag, staging_.data(), place.bytes, deadline);
            copy(place, staging_.data(), false);
          }
          endpoint.traffic().moved += place.bytes;
        }
        if (message.piece.count > 0) ++endpoint.traffic().messages;
      }
      for (const Move& move : step.moves) mover_.perform(move, addresses, false);
      for (const auto& sending : sendings) sending->wait();
    }
  }

 private:
  /// Where one slot lies at this rank.
  struct Place {
    std::byte* at = nullptr;
    std::size_t bytes = 0;
    std::size_t run = 0;
    std::size_t stride = 0;
    bool whole = true;
  };

  static Place find(const Call& call, const Message& message, int i, const Addresses& own, std::size_t slot_bytes) {
    const std::size_t unit = call.element_size;
    const int slot = message.piece.slot + i;
    Place place;
    if (message.piece.buffer == Buffer::scratch) {
      place.bytes = block_size(call, message.block + i) * unit;
      place.at = own.scratch + static_cast<std::size_t>(slot) * slot_bytes;
      return place;
    }
    const bool input = message.piece.buffer == Buffer::input;
    const Region region =
        call.regions.locate(call.regions.context, call.shape, message.piece.buffer, message.piece.rank, slot);
    place.bytes = region.size() * unit;
    if (place.bytes == 0) return place;
    place.at = (input ? const_cast<std::byte*>(own.input) : own.output) + region.offset * unit;
    place.run = region.run * unit;
    place.stride = region.stride * unit;
    place.whole = region.repeat == 1 || region.stride == region.run;
    return place;
  }

  static void copy(const Place& place, std::byte* packed, bool pack) {
    for (std::size_t done = 0; done < place.bytes; done += place.run) {
      std::byte* at = place.at + done / place.run * place.stride;
      std::memcpy(pack ? packed + done : at, pack ? at : packed + done, place.run);
    }
  }

  Mover mover_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> staging_;
};

}  // namespace meshwise::detail
