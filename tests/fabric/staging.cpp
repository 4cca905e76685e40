// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/staging.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../support/sanitized.hpp"
#include "calls.hpp"
#include "meshwise/schedule/verify.hpp"

using namespace meshwise;
using detail::StageCut;
using detail::StagedPlan;
using detail::StageRing;

namespace {

/// Where blocks of any sizes begin, as the calls with counts have it.
Call ragged(Operation operation, const std::vector<std::size_t>& begins, std::size_t element) {
  Call call;
  call.shape = Shape{operation, static_cast<int>(begins.size()) - 1, 0, false};
  call.element_size = element;
  call.count = begins.back();
  call.regions = Regions{&detail::ragged_region, begins.data(), 0, true};
  return call;
}

/// What must hold of every cut: chunks cover the largest block, keep elements together, and fit four times.
void check(const StageCut& cut, std::size_t largest, std::size_t unit, int slots, std::size_t window) {
  CHECK(cut.chunks >= 1);
  CHECK(cut.chunk % unit == 0);
  CHECK(cut.chunk > 0);
  CHECK(cut.chunks * cut.chunk >= largest);
  CHECK((largest == 0 || (cut.chunks - 1) * cut.chunk < largest));
  CHECK(cut.slot >= cut.chunk);
  CHECK(cut.slot % 64 == 0);
  CHECK(cut.place == cut.slot * static_cast<std::size_t>(slots));
  CHECK(window / cut.place >= 4);
}

}  // namespace

TEST_CASE("windows go by the cache of a core, within limits") {
  for (const int ranks : {2, 3, 8, 4096}) {
    CAPTURE(ranks);
    const std::size_t usual = detail::stage_window(ranks);
    CHECK(detail::stage_window(ranks, std::uint64_t{2} << 20) == usual);
    CHECK(detail::stage_window(ranks, ~std::uint64_t{0}) >= usual);
    std::size_t last = 0;
    for (std::uint64_t cache = 1; cache < std::uint64_t{1} << 40; cache = cache * 3 + 1) {
      const std::size_t window = detail::stage_window(ranks, cache);
      CHECK(window % 128 == 0);
      CHECK(window >= std::size_t{1} << 20);
      CHECK(window >= last);
      last = window;
    }
  }
}

TEST_CASE("chunks cover blocks of any size, and several places fit into a window") {
  for (const int ranks : {2, 3, 5, 8, 64, 1000, 4096}) {
    const std::size_t window = detail::stage_window(ranks);
    CHECK(window % 128 == 0);
    for (const std::size_t element : {std::size_t{1}, std::size_t{4}, std::size_t{16}}) {
      for (const std::size_t count :
           {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20, (std::size_t{1} << 33) + 3}) {
        Call call;
        call.shape = Shape{Operation::all_reduce, ranks, 0, false};
        call.element_size = element;
        call.count = count;
        call.regions = Regions{&detail::span_region, &count, 0, true};
        const std::size_t largest = (count + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks);
        CHECK(StageCut::largest(call) == largest * element);
        check(StageCut::of(call, ranks, window), largest * element, element, ranks, window);
        call.shape.operation = Operation::all_gather;
        check(StageCut::of(call, 1, window), largest * element, 1, 1, window);
      }
    }
  }
  // What is only copied may be cut anywhere, however large its elements are.
  const std::vector<std::size_t> begins{0, 0, 3, 1000, 1000};
  const Call large = ragged(Operation::all_gather, begins, 100000);
  CHECK(StageCut::largest(large) == 997 * std::size_t{100000});
  check(StageCut::of(large, 1, detail::stage_window(4)), 99700000, 1, 1, detail::stage_window(4));
  const std::vector<std::size_t> nothing{0, 0, 0};
  CHECK(StageCut::of(ragged(Operation::all_gather, nothing, 4), 1, detail::stage_window(2)).chunks == 1);
}

TEST_CASE("in a ring no chunk meets another one that is still needed") {
  for (const std::size_t place : {std::size_t{128}, std::size_t{384}, std::size_t{1000}, std::size_t{1024}}) {
    const std::size_t window = 4096;
    for (std::uint64_t begin = (std::uint64_t{1} << 40) - 1; begin < (std::uint64_t{1} << 40) + 2 * window;
         begin += 509) {
      const StageRing ring{begin, window, place};
      REQUIRE(ring.depth() >= Staged::span);
      std::uint64_t end = begin;
      for (std::uint64_t chunk = 0; chunk < 60; ++chunk) {
        const std::uint64_t at = ring.at(chunk);
        REQUIRE(at >= end);
        REQUIRE(at % window + place <= window);
        end = at + place;
        // All that lies a window before is a chunk which is that many chunks back, or of earlier operations.
        if (chunk >= ring.depth()) {
          const std::uint64_t next = chunk - ring.depth() + 1;
          REQUIRE(end - window <= ring.at(next));
        } else {
          REQUIRE(end <= begin + window);
        }
      }
    }
  }
}

namespace {

/// Runs the plans of all ranks for some chunks in random interleavings, and looks whether what a move reads is there
/// and what it writes is not needed any more.
class Rehearsal {
 public:
  Rehearsal(const Shape& shape, std::uint64_t chunks, std::uint64_t depth) : chunks_(chunks), depth_(depth) {
    const auto generator = AnyGenerator::of<Staged>();
    for (int rank = 0; rank < shape.ranks; ++rank) {
      plans_.push_back(StagedPlan::make(generator, shape, rank, 1, false));
      next_.emplace_back(static_cast<std::size_t>(Staged::span), 0);
    }
    progress_.assign(plans_.size(), 1);
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      memory_.emplace_back(shape, std::vector<int>(plans_.size(), plans_[0].scratch_slots));
    }
  }

  bool run(std::uint64_t seed) {
    for (std::size_t idle = 0; idle < 1000;) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      const bool moved = step((seed >> 33) % plans_.size());
      idle = moved ? 0 : idle + 1;
    }
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      if (choose(rank) >= 0) return false;  // stuck
    }
    for (const detail::Memory& memory : memory_) {
      Verdict verdict;
      detail::check_outputs(plans_[0].shape, memory, verdict);
      if (!verdict.ok()) return false;
    }
    return !failed_;
  }

 private:
  int choose(std::size_t rank) const {
    int best = -1;
    std::uint64_t least = ~std::uint64_t{0};
    for (int round = Staged::span - 1; round >= 0; --round) {
      const StagedPlan& plan = plans_[rank];
      const std::uint64_t chunk = next_[rank][static_cast<std::size_t>(round)];
      const bool empty = plan.begins[round] == plan.begins[round + 1];
      const std::uint64_t turn = chunk + static_cast<std::uint64_t>(round);
      if (empty || chunk == chunks_ || turn >= least) continue;
      least = turn;
      best = round;
    }
    return best;
  }

  bool over(const std::vector<detail::StageWait>& waits, std::uint64_t chunk) const {
    return std::all_of(waits.begin(), waits.end(), [&](const detail::StageWait& wait) {
      return progress_[static_cast<std::size_t>(wait.rank)] >= StagedPlan::progress(wait.round, chunk);
    });
  }

  bool step(std::size_t rank) {
    const int round = choose(rank);
    if (round < 0) return false;
    const StagedPlan& plan = plans_[rank];
    std::uint64_t& chunk = next_[rank][static_cast<std::size_t>(round)];
    if (round == 0 && plan.writes && chunk >= depth_ && !over(plan.readers, chunk - depth_)) return false;
    for (int i = plan.begins[round]; i < plan.begins[round + 1]; ++i) {
      if (!over(plan.steps[static_cast<std::size_t>(i)].waits, chunk)) return false;
    }
    for (int i = plan.begins[round]; i < plan.begins[round + 1]; ++i) {
      const StagedPlan::Step& one = plan.steps[static_cast<std::size_t>(i)];
      failed_ = failed_ || one.round != round;
      // The place that this chunk takes was that of another one.
      for (const Piece& piece : one.move.to) {
        if (piece.buffer != Buffer::scratch || chunk < depth_) continue;
        detail::Memory& before = memory_[static_cast<std::size_t>(chunk - depth_)];
        for (int k = 0; k < piece.count; ++k) before.slots[before.places.number(piece, k)] = detail::Symbols::undefined;
      }
      detail::Memory& memory = memory_[static_cast<std::size_t>(chunk)];
      for (const Piece& piece : one.move.from) {
        for (int k = 0; k < piece.count; ++k) {
          failed_ = failed_ || memory.slots[memory.places.number(piece, k)] == detail::Symbols::undefined;
        }
      }
      if (failed_) return false;
      memory.perform(one.move);
    }
    const std::uint64_t progress = StagedPlan::progress(round, chunk);
    failed_ = failed_ || progress <= progress_[rank];
    progress_[rank] = progress;
    ++chunk;
    return true;
  }

  std::uint64_t chunks_;
  std::uint64_t depth_;
  std::vector<StagedPlan> plans_;
  std::vector<std::vector<std::uint64_t>> next_;  ///< by rank and round
  std::vector<std::uint64_t> progress_;
  std::vector<detail::Memory> memory_;  ///< by chunk
  bool failed_ = false;
};

}  // namespace

TEST_CASE("staged plans of all chunks work in any interleaving, in the fewest places") {
  for (const int ranks : {2, 3, 4, 7}) {
    for (const Operation operation : calls::operations) {
      for (const bool in_place : {false, true}) {
        const Shape shape{operation, ranks, rooted(operation) ? ranks / 2 : 0, in_place};
        if (!valid(shape)) continue;
        CAPTURE(operation_name(operation));
        CAPTURE(ranks);
        for (std::uint64_t seed = 0; seed < (building::sanitized ? 2 : 8); ++seed) {
          CHECK(Rehearsal(shape, 9, Staged::span - 1).run(seed));
        }
        const bool longest = operation == Operation::all_reduce || operation == Operation::reduce;
        bool caught = !longest;  // by some interleaving
        for (std::uint64_t seed = 0; seed < 100 && !caught; ++seed) {
          caught = !Rehearsal(shape, 9, Staged::span - 2).run(seed);
        }
        CHECK(caught);
      }
    }
  }
}

TEST_CASE("a staged plan knows who hears from all, and what must be finished") {
  const auto generator = AnyGenerator::of<Staged>();
  const auto plan = [&](Operation operation, int rank, bool finishing = false) {
    return StagedPlan::make(generator, Shape{operation, 4, 0, false}, rank, 1, finishing);
  };
  for (int rank = 0; rank < 4; ++rank) {
    for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                      Operation::all_to_all, Operation::reduce}) {
      CHECK(plan(operation, rank).hears);
      CHECK(plan(operation, rank).writes);
    }
    CHECK(plan(Operation::gather, rank).hears == (rank == 0));
    CHECK_FALSE(plan(Operation::broadcast, rank).hears);
    CHECK(plan(Operation::broadcast, rank).writes == (rank == 0));
    CHECK(plan(Operation::broadcast, rank).readers.size() == (rank == 0 ? 3U : 0U));
    CHECK(plan(Operation::inclusive_scan, rank).readers.size() == (rank < 3 ? 1U : 0U));
    CHECK(plan(Operation::all_reduce, rank, true).finishes);
    CHECK_FALSE(plan(Operation::all_reduce, rank, false).finishes);
    CHECK(plan(Operation::all_reduce, rank).messages == 6);
  }
}
