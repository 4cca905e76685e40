// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/collective/detail/task.hpp"
#include "meshwise/collective/pending.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/shared.hpp"
#include "meshwise/core/detail/sort.hpp"
#include "meshwise/core/owned.hpp"
#include "meshwise/fabric/hold.hpp"

namespace meshwise {

namespace detail {

/// Messages that are on their way at the same time.
class GroupTask final : public Task, private Expectation {
 public:
  GroupTask(Endpoint& endpoint, double deadline) : endpoint_(endpoint), deadline_(deadline) {}
  GroupTask(const GroupTask&) = delete;
  GroupTask& operator=(const GroupTask&) = delete;
  ~GroupTask() override { land(); }

  struct Outgoing {
    const void* data;
    std::size_t bytes;
    int to;
    std::uint64_t tag;
  };
  struct Incoming {
    void* data;
    std::size_t bytes;
    int from;
    std::uint64_t tag;
    bool done = false;
  };

  void add(Outgoing message) {
    require_idle();
    sends_.push_back(message);
    checked_ = false;
  }
  void add(Incoming message) {
    require_idle();
    receives_.push_back(message);
    checked_ = false;
  }
  void clear() {
    require_idle();
    sends_.clear();
    receives_.clear();
  }

  void start() override {
    require_idle();
    if (!checked_) check();
    const Hold hold(endpoint_.latch());
    sending_.reserve(sends_.size());
    for (Incoming& message : receives_) message.done = false;
    if (!receives_.empty()) endpoint_.expect(*this);
    flying_ = true;
    guarded([this] {
      for (const Outgoing& message : sends_) {
        sending_.push_back(endpoint_.post_send(name, message.to, message.tag, message.data, message.bytes, deadline_));
      }
    });
  }

  bool test() override {
    const TryHold hold(endpoint_.latch());
    if (!hold) return false;  // somebody is at it
    bool complete = true;
    guarded([&] {
      complete = receive_some();
      for (const auto& message : sending_) complete = message->test() && complete;
    });
    if (complete) finish();
    return complete;
  }

  void wait() override {
    const Hold hold(endpoint_.latch());
    guarded([this] {
      for (Incoming& message : receives_) {
        if (message.done) continue;
        receive_earlier(endpoint_, this, message.from, message.tag, true, deadline_);
        if (!message.done) await(message, deadline_);  // the others of the group come in meanwhile
      }
      for (const auto& message : sending_) message->wait();
    });
    finish();
  }

  void run() override {
    start();
    wait();
  }

  bool in_flight() const override { return flying_; }
  void drop() noexcept override {
    endpoint_.abort("a group of messages was given up");
    land();
  }
  const char* verb() const override { return name; }
  int rank() const override { return endpoint_.rank(); }
  Endpoint& endpoint() const { return endpoint_; }

 private:
  static constexpr const char* name = "group";

  template <class F>
  void guarded(const F& work) {
    try {
      work();
    } catch (...) {
      land();
      throw;
    }
  }

  /// The first message of a sender with a tag that has not arrived; if there is none, the number of messages.
  std::size_t next(int from, std::uint64_t tag) const {
    std::size_t first = 0;
    for (std::size_t end = receives_.size(); first < end;) {
      const std::size_t middle = first + (end - first) / 2;
      const Incoming& message = receives_[middle];
      if (message.from != from ? message.from < from : message.tag < tag) {
        first = middle + 1;
      } else {
        end = middle;
      }
    }
    for (std::size_t i = first; i < receives_.size() && receives_[i].from == from && receives_[i].tag == tag; ++i) {
      if (!receives_[i].done) return i;
    }
    return receives_.size();
  }

  bool expects(int from, std::uint64_t tag) const override { return next(from, tag) < receives_.size(); }

  /// After an error this stays in flight, so that the own `test` or `wait` reports it too.
  bool receive_next(int from, std::uint64_t tag, bool blocking, double deadline) override {
    Incoming& message = receives_[next(from, tag)];
    if (!blocking) return !awaits(message) && take(message);
    await(message, deadline);
    return true;
  }

  bool receive_arrived() override {
    receive_some();
    return false;
  }

  /// Takes what has arrived and has its turn. True: nothing is missing.
  bool receive_some() {
    bool complete = true;
    // Messages of one sender with one tag are neighbours and arrive in order.
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      Incoming& message = receives_[i];
      if (message.done) continue;
      const Incoming* const before = i > 0 ? &receives_[i - 1] : nullptr;
      const bool blocked =
          before != nullptr && !before->done && before->from == message.from && before->tag == message.tag;
      if (blocked || awaits(message) || !receive_earlier(endpoint_, this, message.from, message.tag, false, 0) ||
          !take(message)) {
        complete = false;
      }
    }
    return complete;
  }

  /// Whether a wait that goes on around this one will take the next message of that sender with that tag.
  bool awaits(const Incoming& message) const {
    return awaited_ != nullptr && awaited_->from == message.from && awaited_->tag == message.tag;
  }

  bool take(Incoming& message) {
    if (!endpoint_.try_receive(name, message.from, message.tag, message.data, message.bytes)) return false;
    arrived(message);
    return true;
  }

  void await(Incoming& message, double deadline) {
    struct Awaiting {
      const Incoming*& awaited;
      Awaiting(const Incoming*& place, const Incoming& awaited_message) : awaited(place) { awaited = &awaited_message; }
      ~Awaiting() { awaited = nullptr; }
    } const awaiting(awaited_, message);
    endpoint_.receive(name, message.from, message.tag, message.data, message.bytes, deadline);
    arrived(message);
  }

  void arrived(Incoming& message) {
    message.done = true;
    if (message.from == endpoint_.rank()) return;
    Traffic& traffic = endpoint_.traffic();
    ++traffic.messages;
    traffic.volume += message.bytes;
    traffic.moved += message.bytes;
  }

  void finish() {
    land();
    ++endpoint_.traffic().calls;
  }

  /// Is not in flight any more: nobody touches the buffers, and nothing is expected.
  void land() noexcept {
    if (!flying_) return;
    const Hold hold(endpoint_.latch());
    sending_.clear();
    endpoint_.expect_no_more(*this);
    flying_ = false;
  }

  void require_idle() const {
    if (flying_) refuse_second_start(name, endpoint_.rank());
  }

  /// Nothing that is received may touch anything else.
  void check() {
    sort_stably(receives_.begin(), receives_.end(), [](const Incoming& a, const Incoming& b) {
      return a.from != b.from ? a.from < b.from : a.tag < b.tag;
    });
    struct Extent {
      std::uintptr_t begin;
      std::uintptr_t end;
      bool written;
    };
    List<Extent> extents;
    extents.reserve(sends_.size() + receives_.size());
    const auto add_extent = [&](const void* data, std::size_t bytes, bool written) {
      const auto begin = reinterpret_cast<std::uintptr_t>(data);
      if (bytes > 0) extents.push_back({begin, begin + bytes, written});
    };
    for (const Outgoing& message : sends_) add_extent(message.data, message.bytes, false);
    for (const Incoming& message : receives_) add_extent(message.data, message.bytes, true);
    sort_stably(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    std::uintptr_t touched = 0;
    std::uintptr_t written = 0;
    for (const Extent& extent : extents) {
      const std::uintptr_t taken = extent.written ? touched : written;
      if (extent.begin < taken) {
        fail(name, "received data apart from everything else in the group",
             "an overlap of " + std::to_string((extent.end < taken ? extent.end : taken) - extent.begin) + " bytes",
             "use separate buffers", endpoint_.rank());
      }
      if (extent.end > touched) touched = extent.end;
      if (extent.written && extent.end > written) written = extent.end;
    }
    checked_ = true;
  }

  Endpoint& endpoint_;
  double deadline_;
  List<Outgoing> sends_;
  List<Incoming> receives_;  ///< when checked, by sender and tag
  List<Owned<Sending>> sending_;
  const Incoming* awaited_ = nullptr;  ///< what a blocking receive on the stack is for
  bool checked_ = true;
  bool flying_ = false;
};

}  // namespace detail

/// Sends and receives that happen together, so that no order of theirs can dead-lock.
///
/// Messages are added with `send` and `receive`, in any order on any rank, then performed by `run`, or by `start` and
/// the Pending's `wait`; as often as wanted. Each send meets a receive of the same size and tag on the other rank, in a
/// group or not. Receives of one communicator get the messages of one sender with one tag in the order in which they
/// were begun: those of a group in the order in which they were added, those of several groups in flight in the order
/// in which these were started, whichever is tested or waited for first, and plain receives after all of them.
/// deadline: seconds that each wait for a message may take, 0 for ever; negative: the communicator's.
/// Cost: of the messages, see `send`; counts as one call. Synchronises with those that are received from, and those
/// that are sent more than 8 KiB.
/// Ordering and lifetime: the spans belong to the group from `start` until `wait` has returned; they must stay where
/// they are as long as it is used. Messages are received by the Pending's `test` and `wait`, and meanwhile by whatever
/// the thread that started the group waits for, on any communicator; a sender of more than 8 KiB waits for that, and a
/// receiver that only computes keeps it waiting unless it has a progress thread. Movable, not beyond the
/// communicator's life.
/// Errors: `invalid_argument` for a peer or a tag out of range (from `send` and `receive`), for received data that
/// overlaps anything else, and for changes while in flight; otherwise as `send` and `receive`.
class Group {
 public:
  explicit Group(Communicator& communicator, double deadline = -1)
      : task_(new detail::GroupTask(communicator.endpoint("group"), deadline)) {}

  /// data: any number of elements of a trivially copyable type. to: a rank, also this one.
  template <detail::Readable Data>
  void send(const Data& data, int to, int tag = 0) {
    const auto all = detail::reading(data);
    require("send", all.data(), all.size(), to, tag);
    task_->add(detail::GroupTask::Outgoing{all.data(), all.size_bytes(), to, static_cast<std::uint64_t>(tag)});
  }

  /// data: exactly as many bytes as are sent. from: a rank, also this one.
  template <detail::Writable Data>
  void receive(Data&& data, int from, int tag = 0) {
    const auto all = detail::writing(data);
    require("receive", all.data(), all.size(), from, tag);
    task_->add(detail::GroupTask::Incoming{all.data(), all.size_bytes(), from, static_cast<std::uint64_t>(tag)});
  }

  /// Forgets all messages.
  void clear() { task_->clear(); }

  /// Performs all messages.
  void run() { task_->run(); }

  /// Begins them.
  Pending<void> start() {
    task_->start();
    return {task_, [](detail::Task&) {}};
  }

 private:
  void require(const char* verb, const void* data, std::size_t count, int peer, int tag) const {
    const Endpoint& end = task_->endpoint();
    detail::require_peer(verb, peer, tag, end.size(), end.rank());
    detail::require_data(verb, "message", data, count, end.rank());
  }

  detail::Shared<detail::GroupTask> task_;
};

/// Performs the sends and receives that `fill` adds, together: `group(c, [&](Group& g) { g.send(x, to); g.receive(y,
/// from); })`. See Group. If `fill` throws, nothing has been sent.
template <class F>
void group(Communicator& communicator, const F& fill, double deadline = -1) {
  Group messages(communicator, deadline);
  fill(messages);
  messages.run();
}

/// The same, begun only. What `fill` names must live until `wait` has returned.
template <class F>
Pending<void> start_group(Communicator& communicator, const F& fill, double deadline = -1) {
  Group messages(communicator, deadline);
  fill(messages);
  return messages.start();
}

}  // namespace meshwise
