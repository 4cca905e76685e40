// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/hold.hpp"
#include "meshwise/fabric/memory/group.hpp"
#include "meshwise/fabric/memory/inbox.hpp"
#include "meshwise/fabric/memory/member.hpp"

namespace meshwise::detail {

/// Messages between threads, through the inbox of the receiver.
class MemoryMail : public MemoryMember {
 public:
  MemoryMail(std::shared_ptr<MemoryGroup> group, int rank, std::shared_ptr<Agenda> agenda)
      : MemoryMember(std::move(group), rank, std::move(agenda)),
        arrivals_(group_->inbox(rank), size()),
        envelopes_(*group_->job()) {}
  ~MemoryMail() override { agenda()->remove(&expected_); }

  /// Up to Envelope::buffered bytes are copied, and the message is on its way; more is read by the receiver where it
  /// lies. A message to oneself is always copied: it can only be received later.
  Owned<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data, std::size_t bytes,
                           double deadline) override {
    const Hold hold(latch());
    begin_message(verb, tag, deadline);
    const bool buffered = bytes <= Envelope::buffered || to == rank();
    Job& job = *group_->job();
    const void* const seen = buffered ? nullptr : job.reach(data, bytes);
    const bool attached = !buffered && seen == nullptr && job.attaches();
    const bool copied = buffered || (seen == nullptr && !attached);
    auto sending = std::make_unique<Posted>(*this, waiting_, to);
    Envelope* const envelope = envelopes_.make(rank(), tag, bytes, copied ? bytes : 0);
    envelope->data = attached ? data : seen;
    envelope->attached = attached;
    if (copied) {
      if (bytes > 0) std::memcpy(envelope->copy(), data, bytes);
      envelope->data = envelope->copy();
    }
    group_->inbox(to).post(envelope);
    slot_.alarm.ring();
    if (!copied) sending->posted(envelope);
    note_message();
    return sending;
  }

  void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes, double deadline) override {
    const Hold hold(latch());
    begin_message(verb, tag, deadline);
    Envelope* envelope = nullptr;
    Backoff backoff = group_->job()->backoff(quick_);
    for (;;) {
      const std::uint64_t seen = arrivals_.count();
      envelope = arrivals_.take(from, tag);
      if (envelope != nullptr) break;
      const auto changed = [&] { return arrivals_.count() != seen; };
      while (!changed()) idle(backoff, from, changed);
    }
    accept(from, *envelope, data, bytes);
  }

  bool try_receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) override {
    const Hold hold(latch());
    const Waiting before = waiting_;
    begin_message(verb, tag, 0);
    const std::uint64_t seen = arrivals_.count();
    Envelope* const envelope = arrivals_.take(from, tag);
    if (envelope == nullptr) {
      // Tries of one wait: what it has learned stays.
      waiting_.grace = before.grace;
      waiting_.turn = before.turn;
      inspect(
          from, [&] { return arrivals_.count() != seen; }, false);
      go_on();
      return false;
    }
    accept(from, *envelope, data, bytes);
    return true;
  }

 protected:
  void expectations_changed() override {
    looked_ = false;
    const bool any = !expectations().empty();
    if (any == listed_) return;
    any ? agenda()->add(&expected_, latch()) : agenda()->remove(&expected_);
    listed_ = any;
  }

  /// Why the system does not give what is in private memory of a rank.
  Report out_of_reach(int peer) {
    if (ends_soon(peer)) return absence(peer, ending_of(peer));
    Report problem = report(Code::unsupported, peer);
    problem.expected =
        "to reach a buffer of rank " + std::to_string(peer) + " by cross-memory attach, as when the job began";
    problem.found = "that the system refuses, or that the buffer is not all there";
    problem.remedy = "look at the buffer's size; set MESHWISE_ATTACH=0, or register the buffer";
    return problem;
  }

  /// For good.
  void expect_nothing() noexcept { agenda()->remove(&expected_); }

  /// Tags of the library's own messages; users' tags are below.
  static constexpr std::uint64_t internal_tag = std::uint64_t{1} << 63;

 private:
  /// A message on its way; without an envelope, one that has been copied.
  class Posted final : public Sending {
   public:
    Posted(MemoryMail& endpoint, const Waiting& waiting, int to) : endpoint_(endpoint), waiting_(waiting), to_(to) {}
    ~Posted() override {
      const Hold hold(endpoint_.latch());
      withdraw();
    }

    void posted(Envelope* envelope) noexcept {
      envelope_ = envelope;
      envelope->held = true;
    }

    bool test() override {
      const Hold hold(endpoint_.latch());
      if (envelope_ == nullptr) return true;
      endpoint_.waiting_ = waiting_;
      try {
        if (!read()) {
          endpoint_.inspect(
              to_, [this] { return read(); }, false);
          endpoint_.go_on();
          return false;
        }
        if (envelope_->state.load(std::memory_order_acquire) == Envelope::State::refused) endpoint_.leave();
      } catch (...) {
        withdraw();
        throw;
      }
      release();
      return true;
    }

    void wait() override {
      const Hold hold(endpoint_.latch());
      if (envelope_ == nullptr) return;
      endpoint_.waiting_ = waiting_;
      try {
        Backoff backoff = endpoint_.group_->job()->backoff(endpoint_.quick_);
        const auto ready = [this] { return read(); };
        while (!read()) endpoint_.idle(backoff, to_, ready);
        if (envelope_->state.load(std::memory_order_acquire) == Envelope::State::refused) endpoint_.leave();
      } catch (...) {
        withdraw();
        throw;
      }
      release();
    }

   private:
    bool read() const { return envelope_->settled(); }

    void release() {
      envelope_->held = false;
      envelope_ = nullptr;
    }

    /// Afterwards nobody reads the message any more.
    void withdraw() {
      if (envelope_ == nullptr) return;
      auto posted = Envelope::State::posted;
      if (!envelope_->state.compare_exchange_strong(posted, Envelope::State::withdrawn, std::memory_order_acquire)) {
        Backoff backoff = endpoint_.group_->job()->backoff(endpoint_.quick_);
        Patience patience;
        while (!envelope_->settled()) {
          if (backoff.pause() && endpoint_.gives_up(to_, patience)) break;
        }
      }
      release();
    }

    MemoryMail& endpoint_;
    Waiting waiting_;
    int to_;
    Envelope* envelope_ = nullptr;
  };

  /// What is expected here, as an item of the agenda.
  class Expected final : public Backlog {
   public:
    explicit Expected(MemoryMail& mail) : mail_(mail) {}
    bool advance_aside() override { return mail_.receive_expected(); }

   private:
    MemoryMail& mail_;
  };

  /// Receives what is expected and has arrived, in the middle of another wait, which comes back as it was. Looks only
  /// if a message has come since, or one was taken that others may have had to let pass.
  bool receive_expected() {
    const std::uint64_t posted = arrivals_.count();
    if (looked_ && posted == posted_ && taken_ == taken_before_) return false;
    const std::uint64_t taken = taken_;
    struct Aside {
      MemoryMail& mail;
      const Waiting waiting = mail.waiting_;
      const bool aside = mail.aside_;
      explicit Aside(MemoryMail& owner) : mail(owner) { mail.aside_ = true; }
      ~Aside() {
        mail.waiting_ = waiting;
        mail.aside_ = aside;
      }
    } const aside(*this);
    bool again = false;
    for (Expectation* const one : expectations()) again = one->receive_arrived() || again;
    looked_ = !again;
    posted_ = posted;
    taken_before_ = taken_;
    return taken_ != taken;
  }

  /// A loop of tests is a wait: the other rank may wait for what was started here. Not in the tests that an operation
  /// makes of its own messages, nor in those of what is expected, which are part of going on.
  void go_on() {
    if (!waiting_.collective && !aside_ && others_wait()) agenda()->advance();
  }

  void begin_message(const char* verb, std::uint64_t tag, double seconds) {
    waiting_ = Waiting{verb, (tag & internal_tag) != 0, Deadline(deadline(seconds)), 0, 0};
    if (stopped()) leave();
  }

  /// Takes a message that has arrived, if it is the right one.
  void accept(int from, Envelope& envelope, void* data, std::size_t bytes) {
    ++taken_;
    Entry entry;
    const bool other = waiting_.collective && disagrees(from, entry);
    if (other || envelope.bytes != bytes) {
      refuse(envelope, other ? difference(from, entry) : wrong_size(from, bytes, envelope.bytes));
    }
    if (envelope.attached) {
      if (!group_->job()->read_private(group_->world_rank(from), data, envelope.data, bytes)) {
        refuse(envelope, out_of_reach(from));
      }
    } else if (bytes > 0) {
      std::memcpy(data, envelope.data, bytes);
    }
    envelope.state.store(Envelope::State::done, std::memory_order_release);
    slot_.alarm.ring();
    note_message();
  }

  void note_message() {
    if (noted_in_ != sequence_) messages_noted_ = 0;
    noted_in_ = sequence_;
    note(sequence_, StepHook::message_steps + messages_noted_++);
  }

  /// Whether the process of a rank ends: its memory goes before its end shows.
  bool ends_soon(int from) {
    Patience patience;
    Backoff backoff(true);
    while (!group_->died(from)) {
      backoff.pause();
      if (patience.over()) return false;
    }
    return true;
  }

  Report wrong_size(int from, std::size_t wanted, std::size_t sent) const {
    Report problem = report(Code::mismatch, from);
    if (waiting_.collective && own_.operation() == Operation::all_to_all && own_.lanes() <= 1) {
      const std::uint64_t unit = own_.element_size();
      describe_unequal_ends(problem, from, sent / unit, rank(), wanted / unit);
      return problem;
    }
    problem.expected = std::to_string(wanted) + " bytes from rank " + std::to_string(from) + " (receive on rank " +
                       std::to_string(rank()) + ")";
    problem.found = std::to_string(sent) + " bytes (send on rank " + std::to_string(from) + ")";
    problem.remedy = "send and receive the same number of elements of the same type, or use different tags";
    return problem;
  }

  /// Ends the group because of a message that is not the awaited one.
  [[noreturn]] void refuse(Envelope& envelope, const Report& problem) {
    group_->poison().put(problem);
    envelope.state.store(Envelope::State::refused, std::memory_order_release);
    leave();
  }

  Arrivals arrivals_;
  Envelopes envelopes_;  ///< destroyed while the group's job lives
  Expected expected_{*this};
  bool listed_ = false;             ///< on the agenda
  bool looked_ = false;             ///< at what has arrived, since expectations changed
  std::uint64_t posted_ = 0;        ///< messages that had come by then
  std::uint64_t taken_ = 0;         ///< messages received so far
  std::uint64_t taken_before_ = 0;  ///< by then
  std::uint64_t noted_in_ = 0;      ///< the operation that messages were last noted in, and how many
  std::uint64_t messages_noted_ = 0;
};

}  // namespace meshwise::detail
