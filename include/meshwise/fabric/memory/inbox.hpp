// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "meshwise/fabric/memory/job.hpp"

namespace meshwise::detail {

/// A message between two ranks, in memory that both address: a copy of the data behind it, or where the data is.
///
/// Belongs to its sender, who may use it again once it is done, refused or dropped. A receiver that takes it or drops
/// it touches it no more after saying so.
struct Envelope {
  /// In this order. withdrawn: its sender does not want it to be read. From `done` on the receiver is through with it;
  /// refused: its size is wrong, nobody has read it.
  enum class State : std::uint8_t { posted, withdrawn, taken, done, refused };

  /// Up to this size a sender does not wait for its receiver.
  static constexpr std::size_t buffered = 8 * 1024;

  Envelope* next = nullptr;  ///< while on its way: the one posted before
  std::int32_t from = 0;
  std::atomic<State> state{State::posted};
  std::uint64_t tag = 0;
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::size_t capacity = 0;  ///< of the memory behind this
  bool held = false;         ///< the sender looks at it: not to be used again
  bool attached = false;     ///< the data is in the sender's private memory, to be asked of the system

  void* copy() { return this + 1; }

  /// Whether the receiver is through with it.
  bool settled() const { return state.load(std::memory_order_acquire) >= State::done; }
};

/// Where messages to one rank arrive. One instruction posts: a sender that is killed leaves nothing half done.
class Inbox {
 public:
  void post(Envelope* envelope) {
    Envelope* before = nullptr;  // as it mostly is: a look would fetch the line once more than the exchange does
    do {
      envelope->next = before;
    } while (!newest_.compare_exchange_weak(before, envelope, std::memory_order_release, std::memory_order_relaxed));
  }

  bool empty() const { return newest_.load(std::memory_order_relaxed) == nullptr; }

  /// Takes everything out, the newest first.
  Envelope* drain() {
    // On its way while the line of this one becomes the receiver's own.
    const char* const coming = reinterpret_cast<const char*>(newest_.load(std::memory_order_relaxed));
    for (int k = 0; k < 3; ++k) __builtin_prefetch(coming + 64 * k);
    return newest_.exchange(nullptr, std::memory_order_acquire);
  }

 private:
  std::atomic<Envelope*> newest_{nullptr};
};

/// What has arrived at one rank and has not been received, as that rank keeps it.
class Arrivals {
 public:
  Arrivals(Inbox& inbox, int senders) : inbox_(inbox), queues_(), senders_(senders) {}

  /// The number of messages that have come so far. Looks for new ones.
  std::uint64_t count() {
    if (!inbox_.empty()) sort();
    return count_;
  }

  /// The oldest message from a sender with a tag, which is now the caller's to mark as done; null if there is none.
  Envelope* take(int from, std::uint64_t tag) {
    count();
    if (queues_.empty()) return nullptr;
    Queue& queue = queues_[static_cast<std::size_t>(from)];
    for (std::size_t i = queue.first; i < queue.items.size(); ++i) {
      Envelope* const envelope = queue.items[i];
      if (envelope->tag != tag) continue;
      auto posted = Envelope::State::posted;
      const bool taken =
          envelope->state.compare_exchange_strong(posted, Envelope::State::taken, std::memory_order_relaxed);
      queue.remove(i);
      if (taken) return envelope;
      envelope->state.store(Envelope::State::done, std::memory_order_release);
      i = queue.first - 1;  // from the first on again
    }
    return nullptr;
  }

 private:
  /// Messages are mostly received in the order in which they come: the first ones go without moving the others.
  struct Queue {
    std::vector<Envelope*> items;
    std::size_t first = 0;

    void remove(std::size_t at) {
      for (; at > first; --at) items[at] = items[at - 1];
      if (++first == items.size()) {
        items.clear();
        first = 0;
      } else if (first > 64 && first > items.size() / 2) {
        items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(first));
        first = 0;
      }
    }
  };

  void sort() {
    Envelope* oldest = nullptr;
    for (Envelope* one = inbox_.drain(); one != nullptr;) {
      Envelope* const before = one->next;
      one->next = oldest;
      oldest = one;
      one = before;
    }
    if (queues_.empty()) queues_.resize(static_cast<std::size_t>(senders_));
    for (; oldest != nullptr; oldest = oldest->next) {
      queues_[static_cast<std::size_t>(oldest->from)].items.push_back(oldest);
      ++count_;
    }
  }

  Inbox& inbox_;
  std::vector<Queue> queues_;  ///< one per sender, from the first message on
  int senders_;
  std::uint64_t count_ = 0;
};

/// The envelopes of one sender: made here, and here again when their receivers are through with them.
class Envelopes {
 public:
  explicit Envelopes(Job& job) : job_(job) {}
  Envelopes(const Envelopes&) = delete;
  Envelopes& operator=(const Envelopes&) = delete;
  ~Envelopes() {
    for (Envelope* const one : out_) one->settled() ? job_.release(one) : job_.bury(one, &is_settled);
    for (auto& spare : spare_) {
      for (Envelope* const one : spare) job_.release(one);
    }
    if (large_ != nullptr) job_.release(large_);
  }

  /// A new one, with room for a copy of so many bytes. Errors: std::bad_alloc.
  Envelope* make(int from, std::uint64_t tag, std::size_t bytes, std::size_t copied) {
    // Soon where there are few, seldom where there are many.
    if (out_.size() >= limit_ || (out_.size() <= few && !out_.empty() && out_.front()->settled())) collect();
    const std::size_t kind = copied <= capacities[0]   ? 0
                             : copied <= capacities[1] ? 1
                             : copied <= capacities[2] ? 2
                                                       : 3;
    std::size_t capacity = kind < kinds ? capacities[kind] : copied;
    void* memory = nullptr;
    if (kind < kinds && !spare_[kind].empty()) {
      memory = spare_[kind].back();
      spare_[kind].pop_back();
    } else if (kind == kinds && large_ != nullptr && large_->capacity >= copied) {
      memory = std::exchange(large_, nullptr);
      capacity = static_cast<Envelope*>(memory)->capacity;
    } else {
      memory = job_.allocate(sizeof(Envelope) + capacity);
    }
    try {
      out_.push_back(static_cast<Envelope*>(memory));
    } catch (...) {
      job_.release(memory);
      throw;
    }
    auto* const envelope = new (memory) Envelope;
    envelope->from = from;
    envelope->tag = tag;
    envelope->bytes = bytes;
    envelope->capacity = capacity;
    return envelope;
  }

 private:
  static constexpr std::size_t kinds = 3;
  static constexpr std::size_t capacities[kinds] = {192, 4096, Envelope::buffered};
  static constexpr std::size_t most_spare = 8;
  static constexpr std::size_t most_large = std::size_t{16} << 20;

  static bool is_settled(void* envelope) { return static_cast<Envelope*>(envelope)->settled(); }

  void collect() {
    std::size_t kept = 0;
    for (Envelope* const one : out_) {
      if (one->held || !one->settled()) {
        out_[kept++] = one;
        continue;
      }
      std::size_t kind = 0;
      while (kind < kinds && capacities[kind] != one->capacity) ++kind;
      if (kind < kinds && spare_[kind].size() < most_spare) {
        spare_[kind].reserve(most_spare);
        spare_[kind].push_back(one);
      } else if (kind == kinds && one->capacity <= most_large &&
                 (large_ == nullptr || large_->capacity < one->capacity)) {
        if (large_ != nullptr) job_.release(large_);
        large_ = one;
      } else {
        job_.release(one);
      }
    }
    out_.resize(kept);
    limit_ = 2 * kept + few;
  }

  static constexpr std::size_t few = 16;

  Job& job_;
  std::vector<Envelope*> out_;
  std::size_t limit_ = few;
  std::vector<Envelope*> spare_[kinds];
  Envelope* large_ = nullptr;  ///< one spare of any size
};

}  // namespace meshwise::detail
