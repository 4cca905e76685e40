// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/core/virtual_clock.hpp"
#include "meshwise/fabric/delaying/delays.hpp"
#include "meshwise/fabric/endpoint.hpp"

namespace meshwise::detail {

/// What the delayed communicators of one rank share.
struct DelayedRank {
  DelayedRank(const Delays& wanted, int rank, VirtualClock* by = nullptr)
      : delays(wanted), seed(stream_seed(wanted.seed, static_cast<std::uint64_t>(rank))), clock(by) {}

  std::int64_t now() const { return time_by(clock); }
  /// Sleeps a little if it is not yet time; false if it is. On a virtual clock it is time afterwards.
  bool nap(std::int64_t due) const {
    const std::int64_t left = due - now();
    if (left <= 0) return false;
    if (clock != nullptr) {
      clock->wait_until(due);
      return true;
    }
    constexpr std::int64_t longest = 100'000;
    const std::timespec time{0, static_cast<long>(left < longest ? left : longest)};
    nanosleep(&time, nullptr);
    return true;
  }
  std::uint64_t next_seed() { return stream_seed(seed, endpoints++); }

  const Delays delays;
  const std::uint64_t seed;
  VirtualClock* const clock;  ///< null: time is the machine's
  std::atomic<std::uint64_t> endpoints{0};
};

/// Something that is due at a time: what was asked for, and what the wrapped endpoint has made of it.
struct DelayedTransfer {
  explicit DelayedTransfer(DelayLine::Draw draw) : due(draw.due), at_once(draw.at_once) {}
  DelayedTransfer(const DelayedTransfer&) = delete;
  DelayedTransfer& operator=(const DelayedTransfer&) = delete;
  virtual ~DelayedTransfer() = default;

  virtual void begin(Endpoint& inner) = 0;

  std::int64_t due;
  bool at_once;
  bool begun = false;
  bool landed = false;         ///< the wrapped endpoint has completed it; of collectives
  std::exception_ptr refusal;  ///< why it could not be begun
  Owned<Running> running;      ///< of collectives
};

struct DelayedCall final : DelayedTransfer {
  DelayedCall(DelayLine::Draw draw, const Call& what) : DelayedTransfer(draw), call(what) {}
  void begin(Endpoint& inner) override { running = inner.start(call); }

  Call call;
};

/// A message, and behind it another one that says when the first may be received.
struct DelayedMessage final : DelayedTransfer {
  /// Marks the second one; neither programs nor the library have tags with that bit.
  static constexpr std::uint64_t due_tag = std::uint64_t{1} << 62;
  static constexpr std::uint64_t no_tag = std::uint64_t{1} << 61;  ///< nobody sends that

  DelayedMessage(DelayLine::Draw draw, const char* word, int peer, std::uint64_t number, const void* items,
                 std::size_t length, double seconds)
      : DelayedTransfer(draw), verb(word), to(peer), tag(number), data(items), bytes(length), deadline(seconds) {}

  void begin(Endpoint& inner) override {
    sending = inner.post_send(verb, to, tag, data, bytes, deadline);
    note = inner.post_send(verb, to, tag | due_tag, &due, sizeof(due), deadline);
  }
  bool test() { return begun && sending->test() && note->test(); }
  void wait() {
    sending->wait();
    note->wait();
  }

  const char* verb;
  int to;
  std::uint64_t tag;
  const void* data;
  std::size_t bytes;
  double deadline;
  Owned<Sending> sending;
  Owned<Sending> note;
};

/// When the next message of a sender with a tag may be received, for those that have come.
class DueNotes {
 public:
  const std::int64_t* find(int from, std::uint64_t tag) const {
    for (const Note& note : notes_) {
      if (note.from == from && note.tag == tag) return &note.due;
    }
    return nullptr;
  }
  void add(int from, std::uint64_t tag, std::int64_t due) { notes_.push_back({from, tag, due}); }
  void remove(int from, std::uint64_t tag) {
    for (std::size_t i = 0; i < notes_.size(); ++i) {
      if (notes_[i].from == from && notes_[i].tag == tag) return notes_.erase(i);
    }
  }

 private:
  struct Note {
    int from = 0;
    std::uint64_t tag = 0;
    std::int64_t due = 0;
  };

  List<Note> notes_;
};

}  // namespace meshwise::detail
