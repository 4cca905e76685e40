// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace meshwise::detail {

/// A message between two threads: the sender's own memory, or a copy of it when it is small.
struct Envelope {
  /// In this order; refused: its size is wrong, nobody has read it.
  enum class State : std::uint8_t { posted, taken, done, refused };

  /// Up to this size a sender does not wait for its receiver.
  static constexpr std::size_t buffered = 64 * 1024;

  std::uint64_t tag = 0;
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[]> copy;
  std::atomic<State> state{State::posted};
};

/// The messages on their way to one rank.
class Inbox {
 public:
  /// senders: the size of the group.
  void post(int from, int senders, std::shared_ptr<Envelope> envelope) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (queues_.empty()) queues_.resize(static_cast<std::size_t>(senders));
      queues_[static_cast<std::size_t>(from)].push_back(std::move(envelope));
    }
    posted_.fetch_add(1, std::memory_order_release);
  }

  /// Changes whenever there is something new.
  std::uint64_t posted() const { return posted_.load(std::memory_order_acquire); }

  /// The oldest message from a sender with a tag, which is now the caller's to mark as done; null if there is none.
  std::shared_ptr<Envelope> take(int from, std::uint64_t tag) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queues_.empty()) return nullptr;
    auto& queue = queues_[static_cast<std::size_t>(from)];
    for (auto it = queue.begin(); it != queue.end(); ++it) {
      if ((*it)->tag != tag) continue;
      std::shared_ptr<Envelope> envelope = std::move(*it);
      queue.erase(it);
      envelope->state.store(Envelope::State::taken, std::memory_order_relaxed);
      return envelope;
    }
    return nullptr;
  }

  /// Removes a message that has not been taken; false if it has.
  bool withdraw(int from, const Envelope* envelope) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queues_.empty()) return false;
    auto& queue = queues_[static_cast<std::size_t>(from)];
    for (auto it = queue.begin(); it != queue.end(); ++it) {
      if (it->get() != envelope) continue;
      queue.erase(it);
      return true;
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> posted_{0};
  std::vector<std::deque<std::shared_ptr<Envelope>>> queues_;  ///< one per sender, from the first message on
};

}  // namespace meshwise::detail
