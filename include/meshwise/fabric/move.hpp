// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/volume.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/region_walk.hpp"
#include "meshwise/schedule/schedule.hpp"

namespace meshwise::detail {

/// The buffers of one rank, as this process can address them, and its context if contexts differ.
struct Addresses {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
  const void* context = nullptr;
};

/// How a Mover is to read the moves of one call. All ranks must say the same.
struct MoveOptions {
  std::size_t scratch_slot = 0;  ///< bytes from one scratch slot to the next
  int lanes = 1;
  bool finishing = false;        ///< combine the contributions of all ranks with the finishing kernel
  std::size_t scratch_lane = 0;  ///< bytes from one lane's part of a scratch slot to the next; see ScratchLayout
};

/// The words for a block of which one rank sends another number of elements than the other one expects.
inline void describe_unequal_ends(Report& problem, int from, std::size_t sent, int to, std::size_t expected) {
  const std::string sender = std::to_string(from), receiver = std::to_string(to);
  problem.expected = "as many elements at both ends";
  problem.found = "rank " + sender + " sends " + std::to_string(sent) + " elements to rank " + receiver +
                  ", which expects " + std::to_string(expected);
  problem.remedy = "make send_counts[" + receiver + "] on rank " + sender + " and receive_counts[" + sender +
                   "] on rank " + receiver + " equal";
}

/// Performs moves by load and store, and counts the bytes that cross ranks.
///
/// Cost: slots of one move that follow each other in every piece are one call of the kernel; strided ones walk all
/// their pieces in step and call the kernel once for each stretch that is contiguous in all of them. `begin` allocates
/// what moves need, once per number of ranks.
class Mover {
 public:
  /// call: outlives the mover's use of it; `shape.ranks` set.
  void begin(const Call& call, const MoveOptions& options) {
    call_ = &call;
    options_ = options;
    moved_ = 0;
    alike_ = call.regions.contiguous && whole_vectors(call.shape.operation);
    const auto most = static_cast<std::size_t>(call.shape.ranks);
    if (most > room_) make_room(most);
  }

  /// Bytes of other ranks read or written since `begin`.
  std::uint64_t moved() const { return moved_; }

  /// addresses(rank): the Addresses of a rank that has entered. streaming: stores may go around the caches.
  /// Errors: if the regions of a move differ in size, `mismatch` where every rank describes its own buffers, else
  /// `invalid_argument`.
  template <class Lookup>
  void perform(const Move& move, int lane, const Lookup& addresses, bool streaming) {
    if (alike_ && perform_alike(move, lane, addresses, streaming)) return;
    const std::size_t sources = move.from.size();
    const int count = move.from.front().count;
    std::size_t held = 0;  // bytes at from_ and to_ that are still to be moved
    from_.resize(sources);
    to_.resize(move.to.size());
    for (int i = 0; i < count; ++i) {
      bool whole = true;
      const std::size_t bytes = find(move, i, lane, addresses, whole);
      if (bytes == 0) continue;
      if (whole && held > 0 && follows(held)) {
        held += bytes;
        continue;
      }
      if (held > 0) apply(held, streaming && apart());
      held = 0;
      if (whole) {
        point();
        held = bytes;
      } else if (sources == 1) {
        copy_runs(bytes);
      } else {
        combine_runs(bytes);
      }
    }
    if (held > 0) apply(held, streaming && apart());
  }

 private:
  [[gnu::noinline]] void make_room(std::size_t most) {
    walks_.reserve(2 * most);
    from_.reserve(most);
    to_.reserve(most);
    room_ = most;
  }

  /// Whether slot s of every buffer is part s of a vector.
  static bool whole_vectors(Operation operation) {
    return operation == Operation::all_reduce || operation == Operation::reduce || operation == Operation::broadcast ||
           operation == Operation::inclusive_scan || operation == Operation::exclusive_scan;
  }

  /// A move whose pieces are all the same slot of a vector: one formula tells where that is in all of them. Returns
  /// false, with nothing done, if it is another one.
  template <class Lookup>
  bool perform_alike(const Move& move, int lane, const Lookup& addresses, bool streaming) {
    const Piece& piece = move.from.front();
    if (piece.count != 1 || piece.buffer == Buffer::scratch) return false;
    const Region region = locate(piece, 0, move.block, addresses);
    if (region.repeat != 1) return false;
    const std::size_t unit = call_->element_size;
    const Range part = lane_part(region.size(), unit, lane, options_.lanes);
    const std::size_t offset = (region.offset + part.begin) * unit;
    const std::size_t bytes = part.size * unit;
    if (bytes == 0) return false;  // null is a fine address there
    if (from_.size() != move.from.size()) from_.resize(move.from.size());
    if (to_.size() != move.to.size()) to_.resize(move.to.size());
    const int slot = piece.slot, by = move.by;
    std::uint64_t foreign = 0;
    const auto point = [&](const std::vector<Piece>& pieces, auto* places) {
      for (const Piece& one : pieces) {
        if (one.slot != slot || one.buffer == Buffer::scratch) return false;
        const Addresses& there = addresses(one.rank);
        std::byte* const base = one.buffer == Buffer::input ? const_cast<std::byte*>(there.input) : there.output;
        *places++ = base + offset;
        foreign += one.rank != by ? 1 : 0;
      }
      return true;
    };
    if (!point(move.from, from_.data()) || !point(move.to, to_.data())) return false;
    moved_ += foreign * bytes;
    apply(bytes, streaming && apart());
    return true;
  }

  template <class Lookup>
  Region locate(const Piece& piece, int i, int block, const Lookup& addresses) const {
    const Regions& regions = call_->regions;
    if (piece.buffer == Buffer::scratch) {
      const std::size_t size = block_size(*call_, block);
      return Region{0, size, size, 1};
    }
    const void* const context = regions.own_bytes > 0 ? addresses(piece.rank).context : regions.context;
    return regions.locate(context, call_->shape, piece.buffer, piece.rank, piece.slot + i);
  }

  /// Where the lane's part of slot i of every piece lies, in `walks_`; returns its bytes.
  template <class Lookup>
  std::size_t find(const Move& move, int i, int lane, const Lookup& addresses, bool& whole) {
    const std::size_t unit = call_->element_size;
    const int block = move.block + i;
    walks_.clear();
    std::size_t size = 0;
    Range part{0, 0};
    bool first = true;
    // Of most moves all pieces are the same part of a vector: one formula is enough.
    Region common;
    const int known = alike_ && move.from.front().buffer != Buffer::scratch ? move.from.front().slot : -1;
    const auto add = [&](const Piece& piece) {
      const bool same = !first && piece.slot == known && piece.buffer != Buffer::scratch;
      const Region region = same ? common : locate(piece, i, block, addresses);
      if (first) common = region;
      if (first) {
        first = false;
        size = region.size();
        part = lane_part(size, unit, lane, options_.lanes);
      } else if (region.size() != size) {
        refuse(block, size, move.from.front().rank, region.size(), piece.rank);
      }
      if (part.size == 0) return;
      const std::size_t bytes = part.size * unit;
      if (piece.rank != move.by) moved_ += bytes;
      std::byte* const slot = base(addresses(piece.rank), piece, i);
      walks_.push_back(piece.buffer == Buffer::scratch && options_.scratch_lane > 0
                           ? RegionWalk::stretch(slot + static_cast<std::size_t>(lane) * options_.scratch_lane, bytes)
                           : RegionWalk::along(slot, region, unit, part));
      whole = whole && walks_.back().whole(bytes);
    };
    for (const Piece& piece : move.from) add(piece);
    for (const Piece& piece : move.to) add(piece);
    return part.size * unit;
  }

  [[noreturn]] void refuse(int block, std::size_t size, int rank, std::size_t other_size, int other) const {
    Report problem;
    problem.code = call_->regions.own_bytes > 0 ? Code::mismatch : Code::invalid_argument;
    problem.operation = call_->verb;
    problem.ranks = {rank, other};
    if (call_->regions.own_bytes > 0 && call_->shape.operation == Operation::all_to_all) {
      describe_unequal_ends(problem, rank, size, other, other_size);
      throw Error(std::move(problem));
    }
    problem.expected = std::to_string(size) + " elements in every place of block " + std::to_string(block) +
                       ", as on rank " + std::to_string(rank);
    problem.found = std::to_string(other_size) + " on rank " + std::to_string(other);
    problem.remedy =
        call_->regions.own_bytes > 0 ? "let every rank expect what the others send to it" : "make the regions agree";
    throw Error(std::move(problem));
  }

  std::byte* base(const Addresses& addresses, const Piece& piece, int i) const {
    switch (piece.buffer) {
      case Buffer::input: return const_cast<std::byte*>(addresses.input);
      case Buffer::output: return addresses.output;
      case Buffer::scratch: break;
    }
    return addresses.scratch + static_cast<std::size_t>(piece.slot + i) * options_.scratch_slot;
  }

  /// Takes the places of `walks_` as those of the next stretch.
  void point() {
    const std::size_t sources = from_.size();
    for (std::size_t w = 0; w < sources; ++w) from_[w] = walks_[w].at;
    for (std::size_t w = sources; w < walks_.size(); ++w) to_[w - sources] = walks_[w].at;
  }

  /// Whether `walks_` go on everywhere where the stretch of `held` bytes ends.
  bool follows(std::size_t held) const {
    const std::size_t sources = from_.size();
    for (std::size_t w = 0; w < walks_.size(); ++w) {
      const void* const begin = w < sources ? from_[w] : to_[w - sources];
      if (walks_[w].at != static_cast<const std::byte*>(begin) + held) return false;
    }
    return true;
  }

  void combine_runs(std::size_t bytes) {
    while (bytes > 0) {
      std::size_t stretch = bytes;
      for (RegionWalk& walk : walks_) {
        walk.enter_run();
        stretch = walk.left < stretch ? walk.left : stretch;
      }
      point();
      apply(stretch, false);
      bytes -= stretch;
      for (RegionWalk& walk : walks_) walk.advance(stretch);
    }
  }

  /// One source, runs somewhere: no kernel, whose call would cost more than a short run. Bursts keep the source in the
  /// first-level cache while the destinations take it in turn.
  void copy_runs(std::size_t bytes) {
    constexpr std::size_t burst = std::size_t{16} << 10;
    while (bytes > 0) {
      const std::size_t now = bytes < burst ? bytes : burst;
      RegionWalk after = walks_.front();
      for (std::size_t w = 1; w < walks_.size(); ++w) {
        RegionWalk from = walks_.front();
        for (std::size_t left = now; left > 0;) {
          RegionWalk& to = walks_[w];
          from.enter_run();
          to.enter_run();
          std::size_t stretch = from.left < to.left ? from.left : to.left;
          if (left < stretch) stretch = left;
          if (to.at != from.at) std::memcpy(to.at, from.at, stretch);
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
      return;
    }
    const Reduce kernel = options_.finishing && sources == call_->shape.ranks ? call_->finishing : call_->kernel;
    kernel(bytes / call_->element_size, from_.data(), sources, to_.data(), destinations, streaming);
  }

  const Call* call_ = nullptr;
  MoveOptions options_;
  std::uint64_t moved_ = 0;
  bool alike_ = false;
  Reduce copy_ = meshwise::copy_kernel(1);
  std::size_t room_ = 0;  ///< ranks that there is memory for
  List<RegionWalk> walks_;
  List<const void*> from_;
  List<void*> to_;
};

/// Where things lie in scratch memory.
///
/// If all blocks are equal, consecutive slots are contiguous as they are in a vector, and lanes cut a slot as they cut
/// a block. Otherwise a slot holds blocks of different sizes one after the other, which lanes cut in different places:
/// so that no lane is in the way of another, each has a place of its own in the slot, as large as its largest part.
struct ScratchLayout {
  std::size_t slot = 0;  ///< bytes from one slot to the next
  std::size_t lane = 0;  ///< bytes from one lane's part of a slot to the next; 0: as in the block
};

inline ScratchLayout scratch_layout(const Call& call, int blocks, int lanes) {
  std::size_t most = 0;
  bool equal = true;
  for (int block = 0; block < blocks; ++block) {
    const std::size_t size = block_size(call, block);
    equal = equal && (block == 0 || size == most);
    most = size > most ? size : most;
  }
  if (equal) return {most * call.element_size, 0};
  std::size_t part = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    const std::size_t size = lane_part(most, call.element_size, lane, lanes).size;
    part = size > part ? size : part;
  }
  const std::size_t bytes = (part * call.element_size + 127) / 128 * 128;
  return {bytes * static_cast<std::size_t>(lanes), bytes};
}

}  // namespace meshwise::detail
