// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/reduce.hpp"
#include "meshwise/fabric/memory/direct.hpp"
#include "meshwise/fabric/plans.hpp"
#include "meshwise/fabric/staging.hpp"
#include "meshwise/fabric/streaming.hpp"

namespace meshwise::detail {

/// The memory through which one rank of a group gives things to the others: a window, behind the number of ranks that
/// may still read it.
struct Stage {
  std::atomic<int> readers{0};

  static constexpr std::size_t header = 128;

  std::byte* window() { return reinterpret_cast<std::byte*>(this) + header; }

  /// Makes one in new memory of the job; throws std::bad_alloc.
  static Stage* make(Job& job, int ranks, std::size_t bytes) {
    auto* const stage = new (job.allocate(header + bytes)) Stage;
    stage->readers.store(ranks, std::memory_order_relaxed);
    return stage;
  }

  /// To be called after `parted` has grown, or the stage been published there, both in one total order: whoever comes
  /// second takes the ranks that have left off its readers. Nobody but who finds some touches the stage.
  static void settle(MemorySlot& slot) {
    Stage* const stage = slot.stage.load(std::memory_order_seq_cst);
    if (stage == nullptr) return;
    const int parted = slot.parted.exchange(0, std::memory_order_seq_cst);
    if (parted > 0) stage->readers.fetch_sub(parted, std::memory_order_acq_rel);
  }
};

static_assert(sizeof(Stage) <= Stage::header && std::is_trivially_destructible_v<Stage>);

/// Collectives between buffers that only their owners address: blocks are cut into chunks, and each chunk takes the
/// schedule `Staged` through windows that all ranks address, one round behind the chunk before it.
///
/// A window is a ring. Its position goes on from operation to operation and is the same on all ranks, so that short
/// operations do not meet the lines of the one before, which are dirty in somebody's cache. A place is written again
/// when everybody has read what it held: within an operation their progress says so, and what earlier ones have left
/// has been read when all have entered this one. A rank that knows of such buffers, because they are its own, begins
/// without waiting for that where it is a few operations ahead at most and what it writes lies behind all that may not
/// have been read.
///
/// Nobody touches a user's buffers but their owner: there is no exit to wait for, and a rank that must leave after an
/// error need not wait for others, which is why none says that it is moving. Whoever only gives is through as soon as
/// its last chunk has a place.
///
/// Cost: each byte that crosses ranks is stored once more than by the direct algorithm, in a cache. Memory: the
/// windows, from the first such call of a group on, until all have left it.
class MemoryStaged : public MemoryDirect {
 public:
  MemoryStaged(std::shared_ptr<MemoryGroup> group, int rank, std::shared_ptr<Agenda> agenda)
      : MemoryDirect(std::move(group), rank, std::move(agenda)),
        threshold_(streaming_threshold(group_->job()->cores())),
        window_(stage_window(size(), group_->job()->settings().cache)),
        seen_(static_cast<std::size_t>(size())),
        sources_(static_cast<std::size_t>(size())) {}

  ~MemoryStaged() override {
    for (int peer = 0; peer < size(); ++peer) {
      group_->slot(peer).parted.fetch_add(1, std::memory_order_seq_cst);
      Stage::settle(group_->slot(peer));
    }
    Stage* const own = slot_.stage.load(std::memory_order_relaxed);
    if (own == nullptr) return;
    group_->job()->bury(
        own, [](void* stage) { return static_cast<Stage*>(stage)->readers.load(std::memory_order_acquire) == 0; });
  }

 protected:
  /// Whether a call is done here where there are buffers that not all ranks address. All ranks find the same: only what
  /// they agree on decides.
  bool is_staged(const Call& call) const {
    const Settings& settings = group_->job()->settings();
    return size() > 1 && call.count > 0 && call.regions.contiguous && call.regions.own_bytes == 0 &&
           call.shape.operation != Operation::exchange && call.algorithm == Algorithm::automatic && call.lanes == 0 &&
           call.element_size <= most_element(call) && settings.of(call.shape.operation) == Settings::Forced{};
  }

  /// Begins such a call, which this rank has entered as one that touches memory; met: all others have, too. The call
  /// stays where it is until it is complete.
  void begin_staged(const Call& call, bool met) {
    Passage next;
    next.call = &call;
    next.plan = plans_.find(
        call.shape, Algorithm::automatic, AnyGenerator(), 1, rank(), [] { return AnyGenerator::of<Staged>(); },
        call.finishing != nullptr);
    next.cut = StageCut::of(call, next.plan->scratch_slots, window_);
    next.streaming = footprint(call) >= threshold_ && !overwrites(call);
    if (next.plan->writes && slot_.stage.load(std::memory_order_relaxed) == nullptr) {
      slot_.stage.store(Stage::make(*group_->job(), size(), window_), std::memory_order_seq_cst);
      Stage::settle(slot_);  // a rank that only gives may have left already
    }
    staging_ = std::move(next);
    moved_ = 0;
    remember(call);
    begin_part();
    if (met) {
      all_have_entered();
    } else if (position_ - unread_ > window_ || sequence_ - common_ > MemorySlot::most_ahead) {
      staging_.peer = 0;
    }
  }

  /// blocking: waits for what is missing, else returns false. True: complete.
  template <bool blocking>
  bool advance_staged() {
    for (;;) {
      if (!advance_part<blocking>()) return false;
      staging_.first += staging_.chunks;
      if (staging_.first >= staging_.cut.chunks) return true;
      begin_part();
      staging_.peer = 0;
      enter(*staging_.call, nullptr, false);
    }
  }

  /// Ends a complete operation. Returns whether its moves have finished it (see Call::finishing).
  bool conclude_staged() {
    traffic().messages += staging_.plan->messages;
    traffic().moved += moved_;
    const bool finished = staging_.plan->finishes;
    if (strangers_ == 0) all_have_entered();
    staging_.plan.reset();
    return finished;
  }

  std::size_t window_bytes() const { return window_; }

  const std::uint64_t threshold_;  ///< the footprint from which stores go around the caches

  /// Chunks of one operation, at most: their progress must be told apart. More take several, one after the other.
  std::uint64_t most_chunks_ = last_step / Staged::span - 2 * Staged::span;

 private:
  using Handle = PlanCache<StagedPlan>::Handle;

  /// The operation at hand, and how far it is.
  struct Passage {
    const Call* call = nullptr;
    Handle plan;
    StageCut cut;
    StageRing ring;
    std::uint64_t first = 0;                         ///< the first chunk of this part
    std::uint64_t chunks = 0;                        ///< in this part
    std::array<std::uint64_t, Staged::span> next{};  ///< by round: the chunk that comes next
    int step = 0;                                    ///< of the round at hand
    std::size_t wait = 0;                            ///< of that step
    int peer = 0;                                    ///< the next whose entry is awaited
    bool placed = false;                             ///< the place of the chunk at hand is free
    bool streaming = false;
  };

  static std::size_t most_element(const Call& call) { return combines(call.shape.operation) ? 128 : ~std::size_t{0}; }

  /// Whether results replace what has just been read as a contribution, and is in the cache.
  static bool overwrites(const Call& call) {
    if (call.shape.operation == Operation::reduce) return call.input == call.output;
    return call.shape.in_place && combines(call.shape.operation);
  }

  /// All ranks have entered this part, or are about to be waited for.
  void begin_part() {
    Passage& passage = staging_;
    passage.ring = StageRing{position_, window_, passage.cut.place};
    passage.chunks = std::min(passage.cut.chunks - passage.first, most_chunks_);
    for (int round = 0; round < Staged::span; ++round) {
      const int* const begins = passage.plan->begins + round;
      passage.next[static_cast<std::size_t>(round)] = begins[0] == begins[1] ? passage.chunks : 0;
    }
    passage.peer = size();
    position_ = passage.ring.at(passage.chunks - 1) + passage.cut.place;
  }

  template <bool blocking>
  bool advance_part() {
    Passage& passage = staging_;
    const StagedPlan& plan = *passage.plan;
    if (passage.peer < size()) {
      for (int& peer = passage.peer; peer < size(); ++peer) {
        if (peer != rank() && !arrive<blocking>(peer, 1)) return false;
      }
      all_have_entered();
    }
    for (int round = next_round(); round >= 0; round = next_round()) {
      std::uint64_t& chunk = passage.next[static_cast<std::size_t>(round)];
      if (round == 0 && !passage.placed && !place_is_free<blocking>(chunk)) return false;
      passage.placed = true;
      for (const int end = plan.begins[round + 1] - plan.begins[round]; passage.step < end; ++passage.step) {
        const StagedPlan::Step& step = plan.steps[static_cast<std::size_t>(plan.begins[round] + passage.step)];
        if (!pass<blocking>(step.waits, chunk)) return false;
        rouse();
        if (stopped()) leave();
        perform(step.move, chunk);
      }
      passage.step = 0;
      passage.placed = false;
      const std::uint64_t done = chunk++;
      publish(next_round() < 0 ? last_step : StagedPlan::progress(round, done), std::memory_order_release);
    }
    return true;
  }

  /// What was put into windows before this part has been read.
  void all_have_entered() {
    unread_ = staging_.ring.begin;
    common_ = sequence_;
  }

  /// The round to go on with, in the order of round + chunk, then chunk; -1 if all is done.
  int next_round() const {
    int best = -1;
    std::uint64_t least = ~std::uint64_t{0};
    for (int round = Staged::span - 1; round >= 0; --round) {
      const std::uint64_t chunk = staging_.next[static_cast<std::size_t>(round)];
      const std::uint64_t turn = chunk + static_cast<std::uint64_t>(round);
      if (chunk >= staging_.chunks || turn >= least) continue;
      best = round;
      least = turn;
    }
    return best;
  }

  /// Whether all of some waits are over, from the one on that was at hand.
  template <bool blocking>
  bool pass(const std::vector<StageWait>& waits, std::uint64_t chunk) {
    for (std::size_t& at = staging_.wait; at < waits.size(); ++at) {
      if (!arrive<blocking>(waits[at].rank, StagedPlan::progress(waits[at].round, chunk))) return false;
    }
    staging_.wait = 0;
    return true;
  }

  /// Whether everybody has read what the place of a chunk held before.
  template <bool blocking>
  bool place_is_free(std::uint64_t chunk) {
    const std::uint64_t depth = staging_.ring.depth();
    return chunk < depth || pass<blocking>(staging_.plan->readers, chunk - depth);
  }

  /// Does one step for one chunk.
  void perform(const Move& move, std::uint64_t chunk) {
    const Call& call = *staging_.call;
    const StageCut& cut = staging_.cut;
    const std::size_t begin = static_cast<std::size_t>(staging_.first + chunk) * cut.chunk;
    const std::size_t place = static_cast<std::size_t>(staging_.ring.at(chunk) % window_);
    const int count = move.from.front().count;
    for (int i = 0; i < count; ++i) {
      const std::size_t size = own_size(move, i);
      if (size <= begin) continue;
      const std::size_t bytes = std::min(size - begin, cut.chunk);
      const auto address = [&](const Piece& piece) -> std::byte* {
        const auto slot = static_cast<std::size_t>(piece.slot + i);
        if (piece.buffer == Buffer::scratch) {
          return window_of(piece.rank) + place + slot * cut.slot;
        }
        const void* const buffer = piece.buffer == Buffer::input ? call.input : call.output;
        return static_cast<std::byte*>(const_cast<void*>(buffer)) + offset(piece, i) + begin;
      };
      for (std::size_t s = 0; s < move.from.size(); ++s) {
        sources_[s] = address(move.from[s]);
        if (move.from[s].rank != rank()) moved_ += bytes;
      }
      std::array<void*, 2> cached{}, own{};
      int staged = 0, outputs = 0;
      for (const Piece& piece : move.to) {
        const bool scratch = piece.buffer == Buffer::scratch;
        (scratch ? cached[static_cast<std::size_t>(staged++)] : own[static_cast<std::size_t>(outputs++)]) =
            address(piece);
      }
      store(static_cast<int>(move.from.size()), cached.data(), staged, own.data(), outputs, bytes);
    }
  }

  /// The window of a rank that has made it: it has written there, and this one has waited for that.
  std::byte* window_of(int peer) {
    std::byte*& window = seen_[static_cast<std::size_t>(peer)];
    if (window == nullptr) window = group_->slot(peer).stage.load(std::memory_order_acquire)->window();
    return window;
  }

  /// Combines `sources_` into windows and own outputs: at most one of each. What goes around the caches is taken from
  /// the window, where it has just been stored.
  void store(int sources, void** windows, int number, void** outputs, int others, std::size_t bytes) const {
    const Call& call = *staging_.call;
    const auto combine = [&](void** to, int destinations, bool streaming) {
      if (sources == 1) return copy_(bytes, sources_.data(), 1, to, destinations, streaming);
      const Reduce kernel = staging_.plan->finishes && sources == size() ? call.finishing : call.kernel;
      kernel(bytes / call.element_size, sources_.data(), sources, to, destinations, streaming);
    };
    if (number == 0) return combine(outputs, others, staging_.streaming && apart(sources, outputs[0]));
    if (others == 0) return combine(windows, number, false);
    if (staging_.streaming) {
      combine(windows, 1, false);
      const void* const result = windows[0];
      return copy_(bytes, &result, 1, outputs, 1, apart(sources, outputs[0]));
    }
    void* both[] = {windows[0], outputs[0]};
    combine(both, 2, false);
  }

  bool apart(int sources, const void* output) const {
    for (int s = 0; s < sources; ++s) {
      if (sources_[static_cast<std::size_t>(s)] == output) return false;
    }
    return true;
  }

  Region region(const Piece& piece, int i) const {
    const Call& call = *staging_.call;
    return call.regions.locate(call.regions.context, call.shape, piece.buffer, piece.rank, piece.slot + i);
  }
  std::size_t offset(const Piece& piece, int i) const { return region(piece, i).offset * staging_.call->element_size; }

  /// The bytes of the block that a move's slot i carries, on which its own pieces must agree.
  std::size_t own_size(const Move& move, int i) const {
    std::size_t size = 0;
    bool known = false;
    const auto look = [&](const std::vector<Piece>& pieces) {
      for (const Piece& piece : pieces) {
        if (piece.buffer == Buffer::scratch) continue;
        const std::size_t found = region(piece, i).size();
        if (known && found != size) refuse(move.block + i, size, found);
        size = found;
        known = true;
      }
    };
    look(move.from);
    look(move.to);
    return size * staging_.call->element_size;
  }

  [[noreturn, gnu::noinline]] void refuse(int block, std::size_t size, std::size_t other) const {
    Report problem = report(Code::invalid_argument, rank());
    problem.ranks = {rank()};
    problem.expected = std::to_string(size) + " elements in every place of block " + std::to_string(block);
    problem.found = std::to_string(other);
    problem.remedy = "make the regions agree";
    throw Error(std::move(problem));
  }

  Reduce copy_ = meshwise::copy_kernel(1);
  PlanCache<StagedPlan> plans_;
  Passage staging_;
  std::size_t window_;            ///< bytes
  std::uint64_t position_ = 0;    ///< in all windows; see StageRing
  std::uint64_t unread_ = 0;      ///< the position from which on windows may hold what somebody has not read
  std::uint64_t common_ = 0;      ///< the last operation that all are known to have entered, as far as it matters
  std::uint64_t moved_ = 0;       ///< bytes of other ranks' windows read in this operation
  std::vector<std::byte*> seen_;  ///< the windows of all ranks, as far as they are known
  std::vector<const void*> sources_;
};

}  // namespace meshwise::detail
