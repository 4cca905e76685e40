// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/thread/group.hpp"
#include "meshwise/fabric/thread/mail.hpp"
#include "meshwise/fabric/thread/windows.hpp"
#include "meshwise/schedule/contract.hpp"

namespace meshwise::detail {

/// Small collectives in one rendezvous: every rank that has something to give writes it beside a sequence word, and
/// the others read it there. Nobody touches anybody's buffers, so there is nothing to wait for at the end, and a rank
/// that only gives does not wait at all. Reductions are left folds in rank order, as those of the direct algorithm.
///
/// Cost: no allocation, no lock, and no system call while every rank has a core. A rank reads the whole input of all
/// whose data it needs: (p - 1) N for an all_reduce, which moves 2 (p - 1)/p N in the direct algorithm.
/// Ordering: what others may read is published first; all that they rarely need, such as the description of the call,
/// is written while their data is on its way.
class ThreadSmall : public ThreadMail {
 public:
  using ThreadMail::ThreadMail;

 protected:
  /// Whether a call is done here. All ranks find the same: only what they agree on decides.
  bool is_small(const Call& call) const {
    const std::size_t capacity = group_->windows().capacity();
    if (capacity == 0 || call.algorithm != Algorithm::automatic || call.lanes != 0) return false;
    const Settings::Forced& forced = group_->job()->settings().of(call.shape.operation);
    if (forced.algorithm != Algorithm::automatic || forced.lanes != 0) return false;
    if (call.count > capacity || call.count * call.element_size > capacity) return false;
    if (call.count == 0) return true;
    if (call.regions.own_bytes > 0 || call.shape.operation == Operation::exchange) return false;
    return call.regions.contiguous || size() <= 8;  // otherwise places in a window are sums of sizes
  }

  /// The whole of a small call.
  void run_small(const Call& call) {
    const Entry entry = enter_window(call);
    if (posts(call)) {
      if (held() > settled_) {
        describe(call, entry);
        await_readers<true>();
      }
      post(call);
    }
    describe(call, entry);
    const auto [first, last] = givers(call);
    for (int peer = first; peer < last; ++peer) await_window<true>(peer);
    finish(call, first, last);
  }

  /// The same for a started one, as far as it gets without waiting.
  void begin_small(const Call& call) {
    describe(call, enter_window(call));
    posted_ = !posts(call);
    next_ = givers(call).first;
  }
  template <bool blocking>
  bool advance_small(const Call& call) {
    if (!posted_) {
      if (held() > settled_ && !await_readers<blocking>()) return false;
      post(call);
      posted_ = true;
    }
    const auto [first, last] = givers(call);
    for (; next_ < last; ++next_) {
      if (!await_window<blocking>(next_)) return false;
    }
    finish(call, first, last);
    return true;
  }

 private:
  struct Givers {
    int first;
    int last;
  };

  /// The ranks whose windows this one reads: first to last - 1.
  Givers givers(const Call& call) const {
    const bool root = rank() == call.shape.root;
    if (call.count == 0) return {0, size()};
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

  bool posts(const Call& call) const { return call.count == 0 || input_slots(call.shape, rank()) > 0; }

  /// Two short chains of multiplications instead of a long one: they lie before the data leaves.
  static std::uint64_t hash_of(const Entry& entry) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U, other = 0xbf58476d1ce4e5b9U;
    const std::uint64_t a = (entry.word[Entry::kind] * odd) ^ entry.word[Entry::count];
    const std::uint64_t b = (entry.word[Entry::signature] * other) ^ entry.word[Entry::sizes];
    std::uint64_t hash = (a ^ a >> 32) * other + (b ^ b >> 29) * odd;
    hash ^= hash >> 31;
    return hash;
  }

  Entry enter_window(const Call& call) {
    rouse();
    if (slot_.state.load(std::memory_order_relaxed) != State::here) {
      waiting_ = Waiting{call.verb, true, Deadline(deadline(call.deadline)), 0, 0};
      leave();
    }
    ++sequence_;
    const Entry entry = Entry::of(call, nullptr, history_);
    hash_ = hash_of(entry);
    history_ = hash_;
    return entry;
  }

  /// What errors and mismatched ranks need to know of this call.
  void describe(const Call& call, const Entry& entry) {
    waiting_ = Waiting{call.verb, true, Deadline(deadline(call.deadline)), 0, 0};
    own_ = entry;
    slot_.write(sequence_, own_);
    publish(last_step, std::memory_order_release);
    if (group_->poison().set()) leave();
  }

  /// The operation that the own window of this turn still holds.
  std::uint64_t& held() { return held_[sequence_ % Windows::depth]; }

  void post(const Call& call) {
    Windows& windows = group_->windows();
    windows.bytes(rank(), sequence_) = call.count > 0 ? pack(call, windows.data(rank(), sequence_)) : 0;
    held() = sequence_;
    windows.hash(rank(), sequence_) = hash_;
    windows.sequence(rank(), sequence_).store(sequence_, std::memory_order_release);
  }

  /// Before an own window is written again everybody must have read it. Operations in which all hear from all settle
  /// that by themselves; only a row of rooted ones comes here.
  template <bool blocking>
  bool await_readers() {
    const std::uint64_t number = held();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const Windows::Word& finished = group_->windows().finished(peer);
      if (!reach<blocking>(peer, [&] { return finished.load(std::memory_order_acquire) >= number; })) return false;
    }
    settled_ = number;
    return true;
  }

  template <bool blocking, class Ready>
  bool reach(int peer, const Ready& ready) {
    if (ready()) return true;
    if constexpr (blocking) {
      Backoff backoff(group_->job()->crowded());
      while (!ready()) idle(backoff, peer, ready);
      return true;
    } else {
      inspect(peer, ready, false);
      return false;
    }
  }

  template <bool blocking>
  bool await_window(int peer) {
    if (peer == rank()) return true;
    Windows& windows = group_->windows();
    const Windows::Word& word = windows.sequence(peer, sequence_);
    if (!reach<blocking>(peer, [&] { return word.load(std::memory_order_acquire) >= sequence_; })) return false;
    if (windows.hash(peer, sequence_) != hash_) mismatch(peer);
    return true;
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
  void finish(const Call& call, int first, int last) {
    Windows& windows = group_->windows();
    if (call.count > 0 && first < last) {
      for (int peer = first; peer < last; ++peer) {
        sources_[static_cast<std::size_t>(peer)] = windows.data(peer, sequence_);
      }
      // The own window is on its way to the others' caches, and reading it here would fetch it back. A scan may write
      // its output before it has read all of its input.
      const bool scans = call.shape.operation == Operation::inclusive_scan;
      if (call.regions.contiguous && !scans) sources_[static_cast<std::size_t>(rank())] = call.input;
      deliver(call, first, last);
    }
    // Whoever has posted this one has finished the one before.
    if (last - first == size()) settled_ = sequence_ - 1;
    windows.finished(rank()).store(sequence_, std::memory_order_release);
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
    const std::byte* const from = static_cast<const std::byte*>(call.input);
    const int slots = input_slots(call.shape, rank());
    if (call.regions.contiguous && slots == size()) {
      std::memcpy(to, from, call.count * call.element_size);
      return call.count * call.element_size;
    }
    std::size_t total = 0;
    for (int slot = 0; slot < slots; ++slot) {
      const Region region = locate(call, Buffer::input, rank(), slot);
      const std::size_t size = region.size() * call.element_size;
      if (size > group_->windows().capacity() - total)
        refuse_size(call, rank(), call.count * call.element_size, total + size);
      each_run(call, region, [&](std::size_t at, std::size_t packed, std::size_t bytes) {
        if (bytes > 0) std::memcpy(to + total + packed, from + at, bytes);
      });
      total += size;
    }
    return total;
  }

  /// The regions of this rank and what another one has given do not fit.
  [[noreturn]] void refuse_size(const Call& call, int peer, std::size_t wanted, std::size_t found) {
    waiting_ = Waiting{call.verb, true, Deadline(deadline(call.deadline)), 0, 0};
    Report problem = report(Code::invalid_argument, peer);
    problem.expected = std::to_string(wanted / call.element_size) + " elements from rank " + std::to_string(peer);
    problem.found = std::to_string(found / call.element_size);
    problem.remedy = "make the regions agree with each other and with the count";
    stop(problem);
  }

  /// Checks that the window of a rank holds `bytes` bytes from `packed` on; all: and nothing else.
  void require_size(const Call& call, int peer, std::size_t packed, std::size_t bytes, bool all) {
    if (peer == rank()) return;  // packed by the same regions, and slow to read: see `finish`
    const std::size_t held = group_->windows().bytes(peer, sequence_);
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

  void deliver(const Call& call, int first, int last) {
    switch (call.shape.operation) {
      case Operation::reduce_scatter: fold(call, first, last, 0, packed_offset(call, rank(), rank())); break;
      case Operation::all_gather:
      case Operation::gather:
      case Operation::all_to_all:
        for (int peer = first; peer < last; ++peer) copy(call, peer, peer);
        break;
      case Operation::scatter: copy(call, first, 0); break;
      default: fold_all(call, first, last); break;
    }
  }

  /// Combines the windows of ranks first to last - 1 into all output slots.
  void fold_all(const Call& call, int first, int last) {
    if (call.regions.contiguous) return apply(call, first, last, 0, call.output, call.count);
    std::size_t packed = 0;
    for (int slot = 0; slot < size(); ++slot) packed += fold(call, first, last, slot, packed);
  }

  /// The same for one output slot, whose data lies `packed` bytes into the windows. Returns its bytes.
  std::size_t fold(const Call& call, int first, int last, int slot, std::size_t packed) {
    const Region region = locate(call, Buffer::output, rank(), slot);
    each_run(call, region, [&](std::size_t at, std::size_t within, std::size_t bytes) {
      apply(call, first, last, packed + within, static_cast<std::byte*>(call.output) + at, bytes / call.element_size);
    });
    return region.size() * call.element_size;
  }

  void apply(const Call& call, int first, int last, std::size_t packed, void* to, std::size_t count) {
    if (count == 0) return;
    const int sources = last - first;
    for (int s = first; s < last; ++s) require_size(call, s, packed, count * call.element_size, false);
    count_traffic(first, last, count * call.element_size);
    if (sources == 1) {
      const std::byte* const from = static_cast<const std::byte*>(sources_[static_cast<std::size_t>(first)]) + packed;
      if (to != from) std::memcpy(to, from, count * call.element_size);
      return;
    }
    for (int s = first; s < last && packed > 0; ++s) {
      shifted_[static_cast<std::size_t>(s)] =
          static_cast<const std::byte*>(sources_[static_cast<std::size_t>(s)]) + packed;
    }
    const void* const* from = (packed > 0 ? shifted_ : sources_).data() + first;
    if (rounds_prefixes(call)) {
      const void* pair[] = {from[0], from[1]};
      for (int s = 1; s < sources; ++s, pair[0] = to) {
        pair[1] = from[s];
        call.kernel(count, pair, 2, &to, 1, false);
      }
      return;
    }
    const Reduce kernel = call.finishing != nullptr && sources == size() ? call.finishing : call.kernel;
    kernel(count, from, sources, &to, 1, false);
  }

  /// Whether it shows that a scan is defined by its prefixes, each of which is rounded (see Verdict::canonical): then
  /// the same bits as those of larger vectors take as many steps.
  static bool rounds_prefixes(const Call& call) {
    const Operation operation = call.shape.operation;
    if (operation != Operation::inclusive_scan && operation != Operation::exclusive_scan) return false;
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

  std::uint64_t hash_ = 0;
  std::array<std::uint64_t, Windows::depth> held_{};  ///< the operations that the own windows hold
  std::uint64_t settled_ = 0;                         ///< everybody has finished this operation
  int next_ = 0;                                      ///< of a started call: the next window to wait for
  bool posted_ = false;                               ///< of a started call: the own window is written, or not needed
  std::vector<const void*> sources_ = std::vector<const void*>(static_cast<std::size_t>(size()));
  std::vector<const void*> shifted_ = sources_;
};

}  // namespace meshwise::detail
