// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/memory/group.hpp"
#include "meshwise/fabric/memory/mail.hpp"
#include "meshwise/fabric/memory/windows.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise::detail {

/// A set of operations.
class OperationSet {
 public:
  template <class... Some>
  constexpr OperationSet(Some... operations) : bits_((bit(operations) | ... | 0U)) {}

  constexpr void add(Operation operation) { bits_ |= bit(operation); }
  constexpr bool has(Operation operation) const { return (bits_ & bit(operation)) != 0; }

 private:
  static constexpr std::uint32_t bit(Operation operation) { return 1U << static_cast<unsigned>(operation); }

  std::uint32_t bits_;
};

/// Small collectives in one rendezvous: every rank that has something to give writes it beside a sequence word, and
/// the others read it there. Nobody touches anybody's buffers, so there is nothing to wait for at the end, and a rank
/// that only gives does not wait at all. Reductions are left folds in rank order, as those of the direct algorithm.
///
/// Cost: no allocation, no lock, and no system call while every rank has a core. A rank reads the whole input of all
/// whose data it needs: (p - 1) N for an all_reduce, which moves 2 (p - 1)/p N in the direct algorithm.
/// Ordering: what others may read is published first; all that they rarely need, such as the description of the call,
/// is written while their data is on its way.
class MemorySmall : public MemoryMail {
 public:
  MemorySmall(std::shared_ptr<MemoryGroup> group, int rank, std::shared_ptr<Agenda> agenda)
      : MemoryMail(std::move(group), rank, std::move(agenda)),
        windows_(group_->windows()),
        capacity_(windows_.capacity()),
        decided_(decided(group_->job()->settings())),
        excluded_(excluded(group_->job()->settings())),
        sources_(static_cast<std::size_t>(size())),
        shifted_(sources_),
        given_(static_cast<std::size_t>(size())) {}

 protected:
  /// Whether a call is done here. All ranks find the same: only what they agree on decides.
  bool is_small(const Call& call) const {
    if (call.algorithm != Algorithm::automatic || call.lanes != 0) return false;
    if (excluded_.has(call.shape.operation) && is_excluded(call)) return false;
    if (call.count > capacity_ || call.count * call.element_size > capacity_) return false;
    if (call.count == 0) return true;
    if (call.regions.own_bytes > 0 || call.shape.operation == Operation::exchange) return false;
    return call.regions.contiguous || size() <= 8;  // otherwise places in a window are sums of sizes
  }

  /// What Call::digest is: a hash of what must agree and, in the lowest bit, whether the call is small.
  std::uint64_t known(const Call& call) const { return Entry::digest(call) << 2 | 2 | (is_small(call) ? 1 : 0); }
  static bool is_known_small(const Call& call) { return (call.digest & 1) != 0; }

  /// The whole of a small call.
  [[gnu::always_inline]] void run_small(const Call& call) {
    enter_window(call);
    const bool posted = posts(call);
    if (posted) {
      if (held() > settled_) await_readers_first(call);
      post(call);
    }
    describe(call);
    if (posted && sequence_ - settled_ > Windows::depth / 2) look_at_readers();
    const Givers givers = givers_of(call);
    hear<true>(call, givers.first, givers.last);
    finish(call, givers);
  }

  /// The same for a started one, as far as it gets without waiting.
  void begin_small(const Call& call) {
    enter_window(call);
    describe(call);
    posted_ = !posts(call);
    next_ = givers_of(call).first;
  }
  template <bool blocking>
  bool advance_small(const Call& call) {
    if (!posted_) {
      if (held() > settled_ && !await_readers<blocking>()) return false;
      post(call);
      slot_.alarm.ring();
      posted_ = true;
    }
    const Givers givers = givers_of(call);
    next_ = hear<blocking>(call, next_, givers.last);
    if (next_ < givers.last) return false;
    finish(call, givers);
    return true;
  }

 private:
  static constexpr OperationSet mutual{Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                       Operation::all_to_all};  ///< all hear from all
  static constexpr OperationSet scans{Operation::inclusive_scan, Operation::exclusive_scan};
  static constexpr OperationSet from_root{Operation::broadcast, Operation::scatter};
  static constexpr OperationSet of_parts{Operation::all_gather, Operation::gather};  ///< an input is one slot
  static constexpr OperationSet of_places{Operation::reduce_scatter, Operation::all_gather, Operation::gather,
                                          Operation::all_to_all,
                                          Operation::scatter};  ///< an output is not the whole of each window

  using Sizes = std::array<std::uint64_t, static_cast<std::size_t>(operation_count)>;

  /// The sizes that a measured table decides, by operation. Whether buffers are foreign nobody knows yet, so that its
  /// rules for memory do.
  Sizes decided(const Settings& settings) const {
    Sizes result{};
    for (int i = 0; i < operation_count && !settings.table.empty(); ++i) {
      const auto operation = static_cast<Operation>(i);
      result[static_cast<std::size_t>(i)] = settings.table.decided_sizes(operation, Way::memory, size());
    }
    return result;
  }

  /// The operations of which some sizes, or all, are not done here.
  OperationSet excluded(const Settings& settings) const {
    OperationSet result;
    for (int i = 0; i < operation_count; ++i) {
      const auto operation = static_cast<Operation>(i);
      bool some = capacity_ == 0 || settings.of(operation) != Settings::Forced{};
      for (std::size_t bytes = 1; bytes <= capacity_; bytes *= 2) {
        some = some || SelectionTable::has(decided_[static_cast<std::size_t>(i)], bytes);
      }
      if (some) result.add(operation);
    }
    return result;
  }

  /// Whether a call of such an operation is one of those.
  [[gnu::noinline]] bool is_excluded(const Call& call) const {
    if (capacity_ == 0 || group_->job()->settings().of(call.shape.operation) != Settings::Forced{}) return true;
    const std::uint64_t bytes = call.count * call.element_size;
    return bytes > 0 && SelectionTable::has(decided_[static_cast<std::size_t>(call.shape.operation)], bytes);
  }

  struct Givers {
    int first;
    int last;
  };

  /// The ranks whose windows this one reads: first to last - 1.
  Givers givers_of(const Call& call) const {
    if (call.count == 0 || mutual.has(call.shape.operation)) return {0, size()};
    return some_givers(call);
  }
  [[gnu::noinline]] Givers some_givers(const Call& call) const {
    const bool root = rank() == call.shape.root;
    switch (call.shape.operation) {
      case Operation::reduce:
      case Operation::gather: return {0, root ? size() : 0};
      case Operation::scatter: return {call.shape.root, call.shape.root + 1};
      case Operation::broadcast:
        return {call.shape.root, call.shape.root + (root && call.input == call.output ? 0 : 1)};
      case Operation::inclusive_scan: return {0, rank() + 1};
      case Operation::exclusive_scan: return {0, rank()};
      default: return {0, size()};
    }
  }

  bool posts(const Call& call) const {
    return call.count == 0 || !from_root.has(call.shape.operation) || rank() == call.shape.root;
  }

  [[gnu::always_inline]] void enter_window(const Call& call) {
    rouse();
    if (slot_.state.load(std::memory_order_relaxed) != State::here) refuse_entry(call);
    note(sequence_ + 1, 0);
    ++sequence_;
    before_ = history_;
    remember(call);
  }

  /// What errors and mismatched ranks need to know of this call.
  [[gnu::always_inline]] void describe(const Call& call) {
    wait_for(call);
    own_.set(call, nullptr, before_);
    if (translates_) translate(call);
    slot_.write(sequence_, own_);
    note(sequence_, last_step);
    slot_.progress.store(progress_at(sequence_, last_step), std::memory_order_release);
    // Whoever is woken may run at once in this one's place, and go on to what ends the group: that is no error of here.
    const bool ended = stopped();
    slot_.alarm.ring();
    if (ended) leave();
  }

  /// The operation that the own window of this turn still holds.
  std::uint64_t& held() { return held_[sequence_ % Windows::depth]; }

  [[gnu::always_inline]] void post(const Call& call) {
    Windows::Window& window = windows_.at(rank(), sequence_);
    const std::size_t bytes = call.count > 0 ? pack(call, window.data()) : 0;
    given_[static_cast<std::size_t>(rank())] = bytes;
    held() = sequence_;
    window.bytes = bytes;
    window.hash = history_;
    window.sequence.store(sequence_, std::memory_order_release);
    note(sequence_, 1);
  }

  /// Before an own window is written again everybody must have read it. Operations in which all hear from all settle
  /// that by themselves; only a row of rooted ones comes here.
  [[gnu::noinline]] void await_readers_first(const Call& call) {
    describe(call);
    await_readers<true>();
  }

  /// Learns what everybody has finished, in time and while the own data is on its way: a look at another one's line is
  /// what a small call takes.
  [[gnu::noinline]] void look_at_readers() {
    std::uint64_t least = sequence_;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const std::uint64_t finished = windows_.finished(peer).load(std::memory_order_acquire);
      least = finished < least ? finished : least;
    }
    settled_ = least > settled_ ? least : settled_;
  }

  template <bool blocking>
  bool await_readers() {
    const std::uint64_t number = held();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const Windows::Word& finished = windows_.finished(peer);
      if (!reach<blocking>(peer, [&] { return finished.load(std::memory_order_acquire) >= number; })) return false;
    }
    settled_ = number;
    return true;
  }

  template <bool blocking, class Ready>
  [[gnu::always_inline]] bool reach(int peer, const Ready& ready) {
    if (ready()) return true;
    if constexpr (blocking) {
      wait(peer, ready);
      return true;
    } else {
      inspect(peer, ready, false);
      return false;
    }
  }

  /// Waits for the windows of ranks first to last - 1, and learns what they hold. Returns the first that has not been
  /// written, or last.
  template <bool blocking>
  [[gnu::always_inline]] int hear(const Call& call, int first, int last) {
    const std::uint64_t sequence = sequence_;
    const std::uint64_t hash = history_;
    for (int peer = first; peer < last; ++peer) {
      const auto place = static_cast<std::size_t>(peer);
      Windows::Window* const window = &windows_.at(peer, sequence);
      if (peer == rank()) {
        // The own window is on its way to the others' caches, and reading it here would fetch it back. A scan may write
        // its output before it has read all of its input.
        const bool direct = call.regions.contiguous && call.shape.operation != Operation::inclusive_scan;
        sources_[place] = direct ? call.input : window->data();
        continue;
      }
      if (window->sequence.load(std::memory_order_acquire) < sequence) {
        const auto ready = [=] { return window->sequence.load(std::memory_order_acquire) >= sequence; };
        if (!reach<blocking>(peer, ready)) return peer;
      }
      if (window->hash != hash) mismatch(peer);
      sources_[place] = window->data();
      given_[place] = window->bytes;
    }
    return last;
  }

  /// A rank posts before it describes its call.
  [[noreturn]] void mismatch(int peer) {
    const std::atomic<std::uint64_t>& progress = group_->slot(peer).progress;
    reach<true>(peer, [&] { return sequence_of(progress.load(std::memory_order_acquire)) >= sequence_; });
    Entry entry;
    if (!group_->slot(peer).read(sequence_, entry)) entry = Entry{};
    differ(peer, entry);
  }

  /// What the awaited windows hold becomes the result.
  [[gnu::always_inline]] void finish(const Call& call, const Givers& givers) {
    if (call.count > 0 && givers.first < givers.last) {
      if (call.regions.contiguous && !of_places.has(call.shape.operation)) {
        apply(call, givers.first, givers.last, 0, call.output, call.count);
      } else {
        deliver(call, givers.first, givers.last);
      }
    }
    // Whoever has posted this one has finished the one before.
    if (givers.last - givers.first == size()) settled_ = sequence_ - 1;
    windows_.finished(rank()).store(sequence_, std::memory_order_release);
    slot_.alarm.ring();
  }

  static Region locate(const Call& call, Buffer buffer, int rank, int slot) {
    return call.regions.locate(call.regions.context, call.shape, buffer, rank, slot);
  }

  /// Calls f(where in the buffer, where in the packed data, bytes) for each run of a region.
  template <class F>
  static void each_run(const Call& call, const Region& region, const F& f) {
    const std::size_t unit = call.element_size;
    if (region.repeat == 1 || region.stride == region.run) return f(region.offset * unit, 0, region.size() * unit);
    for (std::size_t k = 0; k < region.repeat; ++k) {
      f((region.offset + k * region.stride) * unit, k * region.run * unit, region.run * unit);
    }
  }

  /// The own input, slot after slot; returns its bytes. Regions are only believed as far as the window goes.
  std::size_t pack(const Call& call, std::byte* to) {
    if (!call.regions.contiguous || of_parts.has(call.shape.operation)) return pack_slots(call, to);
    const std::size_t bytes = call.count * call.element_size;
    std::memcpy(to, call.input, bytes);
    return bytes;
  }
  [[gnu::noinline]] std::size_t pack_slots(const Call& call, std::byte* to) {
    const std::byte* const from = static_cast<const std::byte*>(call.input);
    std::size_t total = 0;
    const int slots = input_slots(call.shape, rank());
    for (int slot = 0; slot < slots; ++slot) {
      const Region region = locate(call, Buffer::input, rank(), slot);
      const std::size_t size = region.size() * call.element_size;
      if (size > capacity_ - total) refuse_size(call, rank(), call.count * call.element_size, total + size);
      each_run(call, region, [&](std::size_t at, std::size_t packed, std::size_t bytes) {
        if (bytes > 0) std::memcpy(to + total + packed, from + at, bytes);
      });
      total += size;
    }
    return total;
  }

  /// The regions of this rank and what another one has given do not fit.
  [[noreturn]] void refuse_size(const Call& call, int peer, std::size_t wanted, std::size_t found) {
    wait_for(call);
    Report problem = report(Code::invalid_argument, peer);
    problem.expected = std::to_string(wanted / call.element_size) + " elements from rank " + std::to_string(peer);
    problem.found = std::to_string(found / call.element_size);
    problem.remedy = "make the regions agree with each other and with the count";
    stop(problem);
  }

  /// Checks that the window of a rank holds `bytes` bytes from `packed` on; all: and nothing else.
  void require_size(const Call& call, int peer, std::size_t packed, std::size_t bytes, bool all) {
    const std::size_t held = given_[static_cast<std::size_t>(peer)];
    if (all ? held != bytes : packed > held || bytes > held - packed) refuse_size(call, peer, packed + bytes, held);
  }

  /// Where slot `slot` lies in the window of `rank`, in bytes.
  static std::size_t packed_offset(const Call& call, int rank, int slot) {
    if (call.regions.contiguous) {
      return (locate(call, Buffer::input, rank, slot).offset - locate(call, Buffer::input, rank, 0).offset) *
             call.element_size;
    }
    std::size_t elements = 0;
    for (int s = 0; s < slot; ++s) elements += locate(call, Buffer::input, rank, s).size();
    return elements * call.element_size;
  }

  /// What is not the whole of the own output in one piece.
  [[gnu::noinline]] void deliver(const Call& call, int first, int last) {
    switch (call.shape.operation) {
      case Operation::reduce_scatter: fold(call, first, last, 0, packed_offset(call, rank(), rank())); break;
      case Operation::all_gather:
      case Operation::gather:
      case Operation::all_to_all:
        for (int peer = first; peer < last; ++peer) copy(call, peer, peer);
        break;
      case Operation::scatter: copy(call, first, 0); break;
      default:
        std::size_t packed = 0;
        for (int slot = 0; slot < size(); ++slot) packed += fold(call, first, last, slot, packed);
    }
  }

  /// Combines what the windows of ranks first to last - 1 hold for one output slot, whose data lies `packed` bytes into
  /// them. Returns its bytes.
  std::size_t fold(const Call& call, int first, int last, int slot, std::size_t packed) {
    const Region region = locate(call, Buffer::output, rank(), slot);
    each_run(call, region, [&](std::size_t at, std::size_t within, std::size_t bytes) {
      apply(call, first, last, packed + within, static_cast<std::byte*>(call.output) + at, bytes / call.element_size);
    });
    return region.size() * call.element_size;
  }

  [[gnu::always_inline]] void apply(const Call& call, int first, int last, std::size_t packed, void* to,
                                    std::size_t count) {
    if (count == 0) return;
    const int sources = last - first;
    const std::size_t bytes = count * call.element_size;
    for (int s = first; s < last; ++s) require_size(call, s, packed, bytes, false);
    count_traffic(first, last, bytes);
    if (sources == 1 || packed > 0 || scans.has(call.shape.operation)) {
      return apply_otherwise(call, first, sources, packed, to, count);
    }
    kernel_for(call, sources)(count, sources_.data() + first, sources, &to, 1, false);
  }

  static Reduce kernel_for(const Call& call, int sources) {
    return call.finishing != nullptr && sources == call.shape.ranks ? call.finishing : call.kernel;
  }

  /// The same for a copy, for what does not lie at the beginning of the windows, and for scans.
  [[gnu::noinline]] void apply_otherwise(const Call& call, int first, int sources, std::size_t packed, void* to,
                                         std::size_t count) {
    if (sources == 1) {
      const std::byte* const from = static_cast<const std::byte*>(sources_[static_cast<std::size_t>(first)]) + packed;
      if (to != from) std::memcpy(to, from, count * call.element_size);
      return;
    }
    for (int s = first; s < first + sources && packed > 0; ++s) {
      shifted_[static_cast<std::size_t>(s)] =
          static_cast<const std::byte*>(sources_[static_cast<std::size_t>(s)]) + packed;
    }
    const void* const* from = (packed > 0 ? shifted_ : sources_).data() + first;
    if (!rounds_prefixes(call)) return kernel_for(call, sources)(count, from, sources, &to, 1, false);
    const void* pair[] = {from[0], from[1]};
    for (int s = 1; s < sources; ++s, pair[0] = to) {
      pair[1] = from[s];
      call.kernel(count, pair, 2, &to, 1, false);
    }
  }

  /// Whether it shows that a scan is defined by its prefixes, each of which is rounded (see Verdict::canonical): then
  /// the same bits as those of larger vectors take as many steps.
  static bool rounds_prefixes(const Call& call) {
    if (!scans.has(call.shape.operation)) return false;
    switch (call.element) {
      case ElementKind::bf16:
      case ElementKind::f16:
      case ElementKind::f8e4m3:
      case ElementKind::f8e5m2: return true;
      default: return false;
    }
  }

  /// Output slot `slot` from what the window of `peer` holds for this rank.
  void copy(const Call& call, int peer, int slot) {
    const bool many = call.shape.operation == Operation::all_to_all || call.shape.operation == Operation::scatter;
    const std::size_t packed = many ? packed_offset(call, peer, rank()) : 0;
    const std::byte* const from = static_cast<const std::byte*>(sources_[static_cast<std::size_t>(peer)]) + packed;
    const Region region = locate(call, Buffer::output, rank(), slot);
    require_size(call, peer, packed, region.size() * call.element_size, !many);
    each_run(call, region, [&](std::size_t at, std::size_t within, std::size_t bytes) {
      std::byte* const to = static_cast<std::byte*>(call.output) + at;
      if (bytes > 0 && to != from + within) std::memcpy(to, from + within, bytes);
    });
    count_traffic(peer, peer + 1, region.size() * call.element_size);
  }

  /// Bytes read from the windows of other ranks, and one message from each.
  void count_traffic(int first, int last, std::size_t bytes) {
    if (bytes == 0) return;
    const int others = last - first - (first <= rank() && rank() < last ? 1 : 0);
    traffic().moved += static_cast<std::uint64_t>(others) * bytes;
    traffic().messages += static_cast<std::uint64_t>(others);
  }

  Windows& windows_;
  std::size_t capacity_;
  Sizes decided_;
  OperationSet excluded_;
  std::array<std::uint64_t, Windows::depth> held_{};  ///< the operations that the own windows hold
  std::uint64_t before_ = 0;                          ///< the history before this operation
  std::uint64_t settled_ = 0;                         ///< everybody has finished this operation
  int next_ = 0;                                      ///< of a started call: the next window to wait for
  bool posted_ = false;                               ///< of a started call: the own window is written, or not needed
  std::vector<const void*> sources_;                  ///< by rank: the data that it has given in this operation
  std::vector<const void*> shifted_;
  std::vector<std::size_t> given_;  ///< by rank: how many bytes that are
};

}  // namespace meshwise::detail
