// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/detail/regions.hpp"
#include "meshwise/collective/volume.hpp"
#include "meshwise/fabric/plans.hpp"
#include "meshwise/schedule/staged.hpp"

namespace meshwise::detail {

/// The bytes of a window, through which one rank of a group gives things to the others: in all ranks four times what a
/// core has for a second-level cache, so that they stay in the cache behind it; smaller ones would be slower, because
/// their lines come back while they are dirty in the readers' caches. (Measured with 2 MiB per core, where that is 8.)
/// cache: 0 if it is not known. All ranks must say the same.
constexpr std::size_t stage_window(int ranks, std::uint64_t cache = 0) {
  constexpr std::uint64_t usual = std::uint64_t{2} << 20, fewest = std::uint64_t{1} << 20, greatest = usual * 2;
  const auto whole = static_cast<std::size_t>(4 * (cache == 0 ? usual : std::clamp(cache, fewest, greatest)));
  constexpr std::size_t most = std::size_t{4} << 20, least = std::size_t{1} << 20;
  const auto number = static_cast<std::size_t>(ranks);
  const std::size_t fair = std::clamp(whole / number / 4096 * 4096, least, most);
  return std::max(fair, number * 4 * 128);
}

/// How the blocks of a call are cut into chunks that pass through the windows one behind the other. All ranks come to
/// the same.
///
/// Chunk c of a block is its bytes from c * chunk on; small blocks end early. In a window a chunk of all blocks takes
/// one place: scratch slot s lies s * slot bytes into it. The window has room for at least four places.
struct StageCut {
  std::size_t unit = 1;      ///< bytes that stay together: an element where elements are combined
  std::size_t chunk = 0;     ///< bytes of a block, a multiple of the unit
  std::size_t slot = 0;      ///< bytes from one scratch slot to the next
  std::size_t place = 0;     ///< bytes of a place
  std::uint64_t chunks = 0;  ///< of the largest block

  /// The bytes of the largest block of a call.
  static std::size_t largest(const Call& call) {
    std::size_t greatest = 0;
    if (call.regions.locate == &span_region) {
      greatest =
          rank_part(*static_cast<const std::size_t*>(call.regions.context), call.shape.ranks, call.shape.ranks - 1)
              .size;
    } else {
      const int number = blocks(call.shape);
      for (int block = 0; block < number; ++block) greatest = std::max(greatest, block_size(call, block));
    }
    return greatest * call.element_size;
  }

  /// slots: of scratch; window: bytes, at least 4 * 128 for each slot.
  static StageCut of(const Call& call, int slots, std::size_t window) {
    constexpr std::size_t grid = 128;  // two lines: they are fetched in pairs
    StageCut cut;
    cut.unit = combines(call.shape.operation) ? call.element_size : 1;
    const std::size_t grain = cut.unit <= grid && grid % cut.unit == 0 ? grid : cut.unit;
    const std::size_t block = largest(call);
    const std::size_t room = window / 4 / static_cast<std::size_t>(slots) / grid * grid;
    const std::size_t wanted = std::clamp(block / pieces, least, most);
    const std::size_t limit = std::max(std::min(wanted, room) / grain, std::size_t{1}) * grain;
    cut.chunks = block == 0 ? 1 : (block - 1) / limit + 1;
    // As many chunks as that takes, but of one size.
    cut.chunk = ((block == 0 ? 0 : block - 1) / cut.chunks / grain + 1) * grain;
    cut.slot = (cut.chunk + line - 1) / grid * grid;
    cut.place = cut.slot * static_cast<std::size_t>(slots);
    return cut;
  }

  static constexpr std::size_t pieces = 2;
  static constexpr std::size_t least = std::size_t{16} << 10;
  static constexpr std::size_t most = std::size_t{256} << 10;
};

/// Where the chunks of one operation lie in every window. Positions count the bytes that have gone through a window in
/// all operations; a place does not go beyond its end.
struct StageRing {
  std::uint64_t begin = 0;  ///< the position at which the operation begins
  std::size_t window = 0;
  std::size_t place = 0;

  /// How many chunks may be in a window at once.
  std::uint64_t depth() const { return window / place - 1; }

  /// The position of a chunk.
  std::uint64_t at(std::uint64_t chunk) const {
    const std::uint64_t offset = begin % window;
    const std::uint64_t first = (window - offset) / place;  // chunks before the end
    if (chunk < first) return begin + chunk * place;
    const std::uint64_t turn = window / place;
    const std::uint64_t later = chunk - first;
    return begin - offset + window + later / turn * window + later % turn * place;
  }
};

/// "Rank `rank` has done its round `round` of this chunk"; rounds of a rank count from the first in which it moves
/// anything.
struct StageWait {
  int rank = 0;
  int round = 0;
};

/// What one rank does with each chunk of a staged call, and what follows from it.
///
/// All ranks run their rounds of the chunks in the order of round + chunk, then chunk: a chunk is one round behind the
/// one before it. Waits point backwards in that order, so that plans cannot dead-lock.
struct StagedPlan {
  struct Step {
    Move move;
    int round = 0;
    bool ends = false;  ///< the last one of its round
    std::vector<StageWait> waits;
  };

  Shape shape;
  int scratch_slots = 0;
  std::vector<Step> steps;
  int begins[Staged::span + 1] = {};  ///< the steps of each round
  std::vector<StageWait> readers;     ///< of this rank's scratch, when they are done with it
  bool writes = false;                ///< this rank's scratch
  bool hears = false;                 ///< from all others
  bool finishes = false;              ///< see detail::finishes
  std::uint64_t messages = 0;         ///< foreign pieces of all steps

  /// The progress of a rank that has done a round of a chunk.
  static constexpr std::uint64_t progress(int round, std::uint64_t chunk) {
    constexpr std::uint64_t span = Staged::span;
    const auto number = static_cast<std::uint64_t>(round);
    return 2 + (number + chunk) * span + (span - 1 - number);
  }

  /// generator: one that keeps to `Staged::span`.
  static StagedPlan make(const AnyGenerator& generator, const Shape& shape, int rank, int lanes, bool finishing) {
    Plan plan = compile(generator, shape, rank, lanes);
    StagedPlan result;
    result.shape = shape;
    result.scratch_slots = plan.scratch_slots;
    result.finishes = finishing && detail::finishes(generator, shape);
    const auto translate = [&](const std::vector<Wait>& waits) {
      std::vector<StageWait> rounds;
      for (const Wait& wait : waits) {
        if (wait.step > 1) rounds.push_back(StageWait{wait.rank, round_of(generator, shape, wait.rank, wait.step - 2)});
      }
      return rounds;
    };
    std::vector<char> heard(static_cast<std::size_t>(shape.ranks), 0);
    for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
      auto& step = plan.steps[static_cast<std::size_t>(i)];
      const int round = round_of(generator, shape, rank, i);
      if (!result.steps.empty()) result.steps.back().ends = result.steps.back().round != round;
      for (const Piece& piece : step.move.to) result.writes = result.writes || piece.buffer == Buffer::scratch;
      for (const Wait& wait : step.waits) heard[static_cast<std::size_t>(wait.rank)] = 1;
      result.messages += foreign_pieces(step.move);
      result.steps.push_back(Step{std::move(step.move), round, true, translate(step.waits)});
      for (int later = round + 1; later <= Staged::span; ++later) result.begins[later] = i + 1;
    }
    result.readers = translate(plan.exit);
    result.hears = std::count(heard.begin(), heard.end(), 1) == shape.ranks - 1;
    return result;
  }

 private:
  /// In which of its rounds a rank does its step number `step`.
  static int round_of(const AnyGenerator& generator, const Shape& shape, int rank, int step) {
    int first = -1;
    for (int round = 0;; ++round) {
      const int moves = static_cast<int>(generator.by(shape, rank, round).size());
      if (first < 0 && moves > 0) first = round;
      if (step < moves) return round - first;
      step -= moves;
    }
  }
};

}  // namespace meshwise::detail
