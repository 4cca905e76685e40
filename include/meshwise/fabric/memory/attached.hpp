// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/reduce.hpp"
#include "meshwise/fabric/memory/entry.hpp"
#include "meshwise/fabric/memory/job.hpp"
#include "meshwise/fabric/move.hpp"
#include "meshwise/schedule/schedule.hpp"

namespace meshwise::detail {

/// Performs the moves of a plan of one round where buffers are private to their processes: what others have in such
/// buffers is read and written by request to the system (cross-memory attach), the rest by load and store.
///
/// Blocks are cut into tiles that stay in the private cache of a core. A tile of a private contribution is read into
/// memory of this one; the result of a combination is written to private destinations from where it has just been
/// stored. A copy goes from place to place at once, without a tile, where one end of it is addressed here.
/// Cost: a system call for each tile and private piece; each byte of these is copied once more where contributions are
/// combined. Memory: the tiles, from the first such call on.
class AttachedMover {
 public:
  /// call: contiguous, outlives the moves; finishing: see MoveOptions. Throws std::bad_alloc.
  void begin(const Call& call, bool finishing) {
    call_ = &call;
    finishing_ = finishing;
    moved_ = 0;
    const auto ranks = static_cast<std::size_t>(call.shape.ranks);
    const std::size_t unit = combines(call.shape.operation) ? call.element_size : 1;
    tile_ = std::max(tile_bytes(ranks) / unit, std::size_t{1}) * unit;
    slot_ = (tile_ + line - 1) / line * line;
    const std::size_t needed = slot_ * (ranks + 1) + line;
    if (needed > room_) {  // pages that nothing is read into are none
      room_ = 0;
      memory_ = std::make_unique_for_overwrite<std::byte[]>(needed);
      room_ = needed;
    }
  }

  /// Bytes of other ranks read or written since `begin`.
  std::uint64_t moved() const { return moved_; }

  /// addresses(rank): the Addresses of a rank that has entered; reach: reads and writes private memory of a rank of the
  /// group, `bool read(int rank, void* to, const void* from, std::size_t)` and `write` likewise. streaming: stores may
  /// go around the caches. Returns the rank whose memory the system refuses, -1 if there is none.
  template <class Lookup, class Reach>
  int perform(const Move& move, const Lookup& addresses, const Reach& reach, bool streaming) {
    const int count = move.from.front().count;
    for (int i = 0; i < count; ++i) {
      const std::size_t bytes = find(move, i, addresses);
      if (bytes == 0) continue;
      const int refused = from_.size() == 1 ? copy(reach, bytes, streaming) : combine(reach, bytes, streaming);
      if (refused >= 0) return refused;
    }
    return -1;
  }

  /// The bytes of a tile where so many ranks contribute: all of them take half of a core's second-level cache.
  static std::size_t tile_bytes(std::size_t ranks) {
    constexpr std::size_t page = 4096, least = 4 * page, most = 64 * page;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    const long reported = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    const long reported = 0;
#endif
    const std::size_t cache = reported > 0 ? static_cast<std::size_t>(reported) : std::size_t{1} << 20;
    return std::clamp(cache / 2 / (ranks + 1) / page * page, least, most);
  }

 private:
  /// Where one piece of a move lies.
  struct Place {
    std::byte* at;
    int owner;  ///< the rank to ask for it; -1: addressed here
  };

  template <class Lookup>
  std::size_t find(const Move& move, int i, const Lookup& addresses) {
    from_.clear();
    to_.clear();
    std::size_t bytes = 0;
    bool known = false;
    const auto add = [&](const std::vector<Piece>& pieces, std::vector<Place>& places) {
      for (const Piece& piece : pieces) {
        const Regions& regions = call_->regions;
        const Region region = regions.locate(regions.context, call_->shape, piece.buffer, piece.rank, piece.slot + i);
        const std::size_t found = region.size() * call_->element_size;
        if (known && found != bytes) refuse(move.block + i, bytes, found);
        bytes = found;
        known = true;
        if (piece.rank != move.by) moved_ += bytes;
        const Addresses& there = addresses(piece.rank);
        const void* const base = piece.buffer == Buffer::input ? there.input : there.output;
        const bool asked = Entry::is_hidden(base);
        auto* const at = static_cast<std::byte*>(const_cast<void*>(Entry::revealed(base)));
        const std::size_t offset = bytes > 0 ? region.offset * call_->element_size : 0;  // null is fine for nothing
        places.push_back({at + offset, asked && piece.rank != move.by ? piece.rank : -1});
      }
    };
    add(move.from, from_);
    add(move.to, to_);
    return bytes;
  }

  [[noreturn, gnu::noinline]] void refuse(int block, std::size_t bytes, std::size_t other) const {
    fail(call_->verb,
         std::to_string(bytes / call_->element_size) + " elements in every place of block " + std::to_string(block),
         std::to_string(other / call_->element_size), "make the regions agree");
  }

  /// One source to all destinations.
  template <class Reach>
  int copy(const Reach& reach, std::size_t bytes, bool streaming) {
    const Place& source = from_.front();
    const auto addressed = std::find_if(to_.begin(), to_.end(), [](const Place& to) { return to.owner < 0; });
    const bool reads = source.owner >= 0;
    if (reads && addressed == to_.end()) return combine(reach, bytes, streaming);
    const std::size_t piece = to_.size() == 1 ? bytes : tile_;
    for (std::size_t first = 0; first < bytes; first += piece) {
      const std::size_t now = std::min(bytes - first, piece);
      const std::byte* from = source.at + first;
      if (reads) {
        if (!reach.read(source.owner, addressed->at + first, from, now)) return source.owner;
        from = addressed->at + first;
      }
      places_.clear();
      for (const Place& to : to_) {
        if (to.owner < 0) {
          if (to.at + first != from) places_.push_back(to.at + first);
        } else if (!reach.write(to.owner, to.at + first, from, now)) {
          return to.owner;
        }
      }
      const void* const sources[] = {from};
      copy_(now, sources, 1, places_.data(), static_cast<int>(places_.size()), streaming);
    }
    return -1;
  }

  /// Several sources to all destinations, tile by tile.
  template <class Reach>
  int combine(const Reach& reach, std::size_t bytes, bool streaming) {
    std::byte* const tiles = memory_.get() + (line - reinterpret_cast<std::uintptr_t>(memory_.get()) % line) % line;
    std::byte* const spare = tiles + from_.size() * slot_;
    const auto addressed = std::find_if(to_.begin(), to_.end(), [](const Place& to) { return to.owner < 0; });
    const bool apart = addressed == to_.end() || std::none_of(from_.begin(), from_.end(), [&](const Place& from) {
                         return from.owner < 0 && from.at == addressed->at;
                       });
    const bool around = streaming && apart;
    for (std::size_t first = 0; first < bytes; first += tile_) {
      const std::size_t now = std::min(bytes - first, tile_);
      sources_.clear();
      for (std::size_t s = 0; s < from_.size(); ++s) {
        const Place& from = from_[s];
        std::byte* const place = tiles + s * slot_;
        if (from.owner >= 0 && !reach.read(from.owner, place, from.at + first, now)) return from.owner;
        sources_.push_back(from.owner >= 0 ? place : from.at + first);
      }
      places_.clear();
      for (const Place& to : to_) {
        if (to.owner < 0) places_.push_back(to.at + first);
      }
      void* result = around || places_.empty() ? spare : places_.front();
      const bool alone = around && places_.size() == to_.size();  // nobody needs the result in a cache
      if (alone || result != spare) {
        apply(now, places_.data(), places_.size(), alone);
      } else {
        apply(now, &result, 1, false);
        const void* const results[] = {result};
        copy_(now, results, 1, places_.data(), static_cast<int>(places_.size()), around);
      }
      for (const Place& to : to_) {
        if (to.owner >= 0 && !reach.write(to.owner, to.at + first, result, now)) return to.owner;
      }
    }
    return -1;
  }

  void apply(std::size_t bytes, void* const* to, std::size_t destinations, bool streaming) const {
    const auto sources = static_cast<int>(sources_.size());
    const auto number = static_cast<int>(destinations);
    if (sources == 1) {
      copy_(bytes, sources_.data(), 1, to, number, streaming);
      return;
    }
    const Reduce kernel = finishing_ && sources == call_->shape.ranks ? call_->finishing : call_->kernel;
    kernel(bytes / call_->element_size, sources_.data(), sources, to, number, streaming);
  }

  const Call* call_ = nullptr;
  bool finishing_ = false;
  std::uint64_t moved_ = 0;
  std::size_t tile_ = 0;
  std::size_t slot_ = 0;  ///< bytes from one tile to the next
  std::size_t room_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  Reduce copy_ = meshwise::copy_kernel(1);
  std::vector<Place> from_;
  std::vector<Place> to_;
  std::vector<const void*> sources_;
  std::vector<void*> places_;
};

}  // namespace meshwise::detail
