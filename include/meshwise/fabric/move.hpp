// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/volume.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/schedule/schedule.hpp"

namespace meshwise::detail {

/// The buffers of one rank, as this process can address them.
struct Addresses {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
};

/// Performs moves by load and store, and counts the bytes that cross ranks.
///
/// Cost: a contiguous move is one call of the kernel; a strided one walks all its pieces in step and calls the kernel
/// once for each stretch that is contiguous in all of them. `begin` allocates what moves need, once per number of
/// ranks.
class Mover {
 public:
  /// call: outlives the mover's use of it; `shape.ranks` set. scratch_slot: bytes of one scratch slot.
  void begin(const Call& call, std::size_t scratch_slot) {
    call_ = &call;
    scratch_slot_ = scratch_slot;
    moved_ = 0;
    const auto most = static_cast<std::size_t>(call.shape.ranks);
    walks_.reserve(2 * most);
    from_.reserve(most);
    to_.reserve(most);
  }

  /// Bytes of other ranks read or written since `begin`.
  std::uint64_t moved() const { return moved_; }

  /// addresses(rank): the Addresses of a rank that has entered. streaming: stores may go around the caches.
  /// Errors: `invalid_argument` if the regions of a move differ in size.
  template <class Lookup>
  void perform(const Move& move, const Lookup& addresses, bool streaming) {
    const int count = move.from.front().count;
    for (int i = 0; i < count; ++i) slot(move, i, addresses, streaming);
  }

 private:
  /// A walk through one region, in bytes.
  struct Walk {
    std::byte* at = nullptr;
    std::size_t run = 0;   ///< length of a run
    std::size_t skip = 0;  ///< from the end of a run to the next
    std::size_t left = 0;  ///< of the run at hand

    /// Before a stretch rather than after the last one, which would leave the buffer.
    void enter_run() {
      if (left != 0) return;
      at += skip;
      left = run;
    }
    void advance(std::size_t bytes) {
      at += bytes;
      left -= bytes;
    }
  };

  Region locate(const Piece& piece, int i, int block) const {
    if (piece.buffer == Buffer::scratch) {
      const std::size_t size = block_size(*call_, block);
      return Region{0, size, size, 1};
    }
    return call_->regions.locate(call_->regions.context, call_->shape, piece.buffer, piece.rank, piece.slot + i);
  }

  template <class Lookup>
  void slot(const Move& move, int i, const Lookup& addresses, bool streaming) {
    const std::size_t unit = call_->element_size;
    const std::size_t sources = move.from.size();
    const std::size_t size = locate(move.from.front(), i, move.block + i).size();
    walks_.clear();
    bool whole = true;
    const auto add = [&](const Piece& piece) {
      const Region region = locate(piece, i, move.block + i);
      if (region.size() != size) {
        fail(call_->verb, std::to_string(size) + " elements in every place of block " + std::to_string(move.block + i),
             std::to_string(region.size()) + " on rank " + std::to_string(piece.rank), "make the regions agree");
      }
      if (size == 0) return;
      if (piece.rank != move.by) moved_ += size * unit;
      std::byte* at = base(addresses(piece.rank), piece, i) + region.offset * unit;
      if (region.repeat == 1 || region.stride == region.run) {
        walks_.push_back(Walk{at, size * unit, 0, size * unit});
      } else {
        whole = false;
        walks_.push_back(Walk{at, region.run * unit, (region.stride - region.run) * unit, region.run * unit});
      }
    };
    for (const Piece& piece : move.from) add(piece);
    for (const Piece& piece : move.to) add(piece);
    if (size == 0) return;

    from_.resize(sources);
    to_.resize(move.to.size());
    std::size_t bytes = size * unit;
    if (whole) {
      for (std::size_t w = 0; w < walks_.size(); ++w) point(w, sources);
      apply(bytes, streaming && apart());
      return;
    }
    if (sources == 1) {
      copy_runs(bytes);
      return;
    }
    while (bytes > 0) {
      std::size_t stretch = bytes;
      for (std::size_t w = 0; w < walks_.size(); ++w) {
        walks_[w].enter_run();
        point(w, sources);
        stretch = walks_[w].left < stretch ? walks_[w].left : stretch;
      }
      apply(stretch, false);
      bytes -= stretch;
      for (Walk& walk : walks_) walk.advance(stretch);
    }
  }

  /// One source, runs somewhere: no kernel, whose call would cost more than a short run. Bursts keep the source in the
  /// first-level cache while the destinations take it in turn.
  void copy_runs(std::size_t bytes) {
    constexpr std::size_t burst = std::size_t{16} << 10;
    while (bytes > 0) {
      const std::size_t now = bytes < burst ? bytes : burst;
      Walk after = walks_.front();
      for (std::size_t w = 1; w < walks_.size(); ++w) {
        Walk from = walks_.front();
        for (std::size_t left = now; left > 0;) {
          Walk& to = walks_[w];
          from.enter_run();
          to.enter_run();
          std::size_t stretch = from.left < to.left ? from.left : to.left;
          if (left < stretch) stretch = left;
          std::memcpy(to.at, from.at, stretch);
          from.advance(stretch);
          to.advance(stretch);
          left -= stretch;
        }
        after = from;
      }
      walks_.front() = after;
      bytes -= now;
    }
  }

  std::byte* base(const Addresses& addresses, const Piece& piece, int i) const {
    switch (piece.buffer) {
      case Buffer::input: return const_cast<std::byte*>(addresses.input);
      case Buffer::output: return addresses.output;
      case Buffer::scratch: break;
    }
    return addresses.scratch + static_cast<std::size_t>(piece.slot + i) * scratch_slot_;
  }

  void point(std::size_t walk, std::size_t sources) {
    if (walk < sources) {
      from_[walk] = walks_[walk].at;
    } else {
      to_[walk - sources] = walks_[walk].at;
    }
  }

  /// Whether no destination is a source.
  bool apart() const {
    for (const void* const source : from_) {
      for (const void* const destination : to_) {
        if (source == destination) return false;
      }
    }
    return true;
  }

  void apply(std::size_t bytes, bool streaming) const {
    const auto sources = static_cast<int>(from_.size());
    const auto destinations = static_cast<int>(to_.size());
    if (sources == 1) {
      copy_(bytes, from_.data(), 1, to_.data(), destinations, streaming);
    } else {
      call_->kernel(bytes / call_->element_size, from_.data(), sources, to_.data(), destinations, streaming);
    }
  }

  const Call* call_ = nullptr;
  std::size_t scratch_slot_ = 0;
  std::uint64_t moved_ = 0;
  Reduce copy_ = meshwise::copy_kernel(1);
  std::vector<Walk> walks_;
  std::vector<const void*> from_;
  std::vector<void*> to_;
};

/// Bytes of one scratch slot: the largest block, in whole lines.
inline std::size_t scratch_slot_bytes(const Call& call, int blocks) {
  std::size_t most = 0;
  for (int block = 0; block < blocks; ++block) {
    const std::size_t size = block_size(call, block);
    most = size > most ? size : most;
  }
  return (most * call.element_size + 127) / 128 * 128;
}

}  // namespace meshwise::detail
