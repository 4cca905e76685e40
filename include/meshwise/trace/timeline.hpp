// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/virtual_clock.hpp"

namespace meshwise {

/// What one rank did when: spans of its program, and the communication of recorded communicators (see `record`).
///
/// Cost: about 100 bytes and two readings of the clock per event; the events are kept until `clear`.
/// Ordering and lifetime: used by its rank's thread, and by its progress thread if it has one: then `events` is for
/// when nothing is in flight. Must outlive the communicators that it records and its spans.
class Timeline {
 public:
  enum class Kind : std::uint8_t {
    span,    ///< of the program, such as its computation: named by it, may be nested
    call,    ///< a blocking operation, or a message that has been received
    wait,    ///< for something that was started
    flight,  ///< something started, from its start until it was seen to be complete
  };

  /// Times are nanoseconds of the monotonic clock, or of a virtual one; `end` is 0 as long as it has not ended.
  struct Event {
    Kind kind = Kind::span;
    std::string name;         ///< of a span, or the verb without "start_" or "prepare_"
    std::string axis;         ///< the communicator's name, a mesh axis usually
    int ranks = 0;            ///< in the communicator; 0 for spans
    int peer = -1;            ///< of a message
    std::uint64_t bytes = 0;  ///< the volume of a collective on this rank, or the size of a message
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  /// An event that has begun. Its end is ignored after a `clear`.
  struct Mark {
    std::size_t index = 0;
    std::uint64_t epoch = 0;  ///< 0: it is not recorded
  };

  /// A part of the program from here to the end of the scope. Spans are nested like the scopes that they are in.
  class Span {
   public:
    Span(Timeline& timeline, std::string name) : timeline_(timeline), mark_(timeline.begin_span(std::move(name))) {}
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    ~Span() { timeline_.end(mark_); }

   private:
    Timeline& timeline_;
    Mark mark_;
  };

  /// Nothing that begins during its life is recorded.
  class Pause {
   public:
    explicit Pause(Timeline& timeline) : timeline_(timeline) { timeline_.pause(1); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause() { timeline_.pause(-1); }

   private:
    Timeline& timeline_;
  };

  Timeline() = default;
  /// One whose times are those of a clock, which outlives it.
  explicit Timeline(const VirtualClock& clock) : clock_(&clock) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// In the order in which they began, but for those that were added.
  const std::vector<Event>& events() const { return events_; }

  /// Forgets all events, such as those of the steps before; spans that have begun are not recorded.
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.clear();
    ++epoch_;
  }

  /// Adds an event as it is, such as one that another library has measured.
  void add(Event event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pauses_ == 0) events_.push_back(std::move(event));
  }

  /// Begins an event now. Events other than flights are nested.
  Mark begin(Event event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pauses_ > 0) return {};
    event.begin = now();
    event.end = 0;
    events_.push_back(std::move(event));
    return {events_.size() - 1, epoch_};
  }

  /// Ends an event now; the first end counts.
  void end(Mark mark) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (mark.epoch != epoch_ || mark.index >= events_.size() || events_[mark.index].end != 0) return;
    events_[mark.index].end = now();
  }

  /// The time by its clock.
  std::int64_t now() const { return detail::time_by(clock_); }

 private:
  Mark begin_span(std::string name) {
    Event event;
    event.name = std::move(name);
    return begin(std::move(event));
  }

  void pause(int more) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pauses_ += more;
  }

  const VirtualClock* clock_ = nullptr;
  std::mutex mutex_;
  std::vector<Event> events_;
  std::uint64_t epoch_ = 1;
  int pauses_ = 0;
};

}  // namespace meshwise
