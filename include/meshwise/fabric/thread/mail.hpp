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
#include "meshwise/fabric/thread/inbox.hpp"
#include "meshwise/fabric/thread/member.hpp"

namespace meshwise::detail {

/// Messages between threads, through the inbox of the receiver.
class ThreadMail : public ThreadMember {
 public:
  using ThreadMember::ThreadMember;
  ~ThreadMail() override { agenda()->remove(&expected_); }

  /// Up to Envelope::buffered bytes are copied, and the message is on its way; more is read by the receiver where it
  /// lies. A message to oneself is always copied: it can only be received later.
  Owned<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data, std::size_t bytes,
                           double deadline) override {
    begin_message(verb, tag, deadline);
    auto envelope = std::make_shared<Envelope>();
    envelope->tag = tag;
    envelope->bytes = bytes;
    envelope->data = data;
    const bool buffered = bytes <= Envelope::buffered || to == rank();
    if (buffered && bytes > 0) {
      envelope->copy.reset(new std::byte[bytes]);
      std::memcpy(envelope->copy.get(), data, bytes);
      envelope->data = envelope->copy.get();
    }
    auto sending = std::make_unique<Posted>(*this, waiting_, to);
    group_->inbox(to).post(rank(), size(), envelope);
    if (!buffered) sending->posted(std::move(envelope));  // after everything that can throw
    return sending;
  }

  void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes, double deadline) override {
    begin_message(verb, tag, deadline);
    Inbox& inbox = group_->inbox(rank());
    std::shared_ptr<Envelope> envelope;
    Backoff backoff(group_->job()->crowded());
    for (;;) {
      const std::uint64_t seen = inbox.posted();
      envelope = inbox.take(from, tag);
      if (envelope) break;
      const auto changed = [&] { return inbox.posted() != seen; };
      while (!changed()) idle(backoff, from, changed);
    }
    accept(from, *envelope, data, bytes);
  }

  bool try_receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) override {
    const Waiting before = waiting_;
    begin_message(verb, tag, 0);
    Inbox& inbox = group_->inbox(rank());
    const std::uint64_t seen = inbox.posted();
    const std::shared_ptr<Envelope> envelope = inbox.take(from, tag);
    if (!envelope) {
      // Tries of one wait: what it has learned stays.
      waiting_.grace = before.grace;
      waiting_.turn = before.turn;
      inspect(
          from, [&] { return inbox.posted() != seen; }, false);
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
    any ? agenda()->add(&expected_) : agenda()->remove(&expected_);
    listed_ = any;
  }

  /// Tags of the library's own messages; users' tags are below.
  static constexpr std::uint64_t internal_tag = std::uint64_t{1} << 63;

 private:
  /// A message on its way; without an envelope, one that has been copied.
  class Posted final : public Sending {
   public:
    Posted(ThreadMail& endpoint, const Waiting& waiting, int to) : endpoint_(endpoint), waiting_(waiting), to_(to) {}
    ~Posted() override { withdraw(); }

    void posted(std::shared_ptr<Envelope> envelope) noexcept { envelope_ = std::move(envelope); }

    bool test() override {
      if (!envelope_) return true;
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
      envelope_.reset();
      return true;
    }

    void wait() override {
      if (!envelope_) return;
      endpoint_.waiting_ = waiting_;
      try {
        Backoff backoff(endpoint_.group_->job()->crowded());
        const auto ready = [this] { return read(); };
        while (!read()) endpoint_.idle(backoff, to_, ready);
        if (envelope_->state.load(std::memory_order_acquire) == Envelope::State::refused) endpoint_.leave();
      } catch (...) {
        withdraw();
        throw;
      }
      envelope_.reset();
    }

   private:
    bool read() const { return envelope_->state.load(std::memory_order_acquire) >= Envelope::State::done; }

    /// Afterwards nobody reads the message any more.
    void withdraw() {
      if (!envelope_) return;
      if (!endpoint_.group_->inbox(to_).withdraw(endpoint_.rank(), envelope_.get())) {
        Backoff backoff(endpoint_.group_->job()->crowded());
        while (envelope_->state.load(std::memory_order_acquire) < Envelope::State::done) backoff.pause();
      }
      envelope_.reset();
    }

    ThreadMail& endpoint_;
    Waiting waiting_;
    int to_;
    std::shared_ptr<Envelope> envelope_;
  };

  /// What is expected here, as an item of the agenda.
  class Expected final : public Backlog {
   public:
    explicit Expected(ThreadMail& mail) : mail_(mail) {}
    void advance_aside() override { mail_.receive_expected(); }

   private:
    ThreadMail& mail_;
  };

  /// Receives what is expected and has arrived, in the middle of another wait, which comes back as it was. Looks only
  /// if a message has come since, or one was taken that others may have had to let pass.
  void receive_expected() {
    const std::uint64_t posted = group_->inbox(rank()).posted();
    if (looked_ && posted == posted_ && taken_ == taken_before_) return;
    struct Aside {
      ThreadMail& mail;
      const Waiting waiting = mail.waiting_;
      const bool aside = mail.aside_;
      explicit Aside(ThreadMail& owner) : mail(owner) { mail.aside_ = true; }
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
  }

  /// A loop of tests is a wait: the other rank may wait for what was started here. Not in the tests that an operation
  /// makes of its own messages, nor in those of what is expected, which are part of going on.
  void go_on() {
    if (!waiting_.collective && !aside_ && !agenda()->empty()) agenda()->advance();
  }

  void begin_message(const char* verb, std::uint64_t tag, double seconds) {
    waiting_ = Waiting{verb, (tag & internal_tag) != 0, Deadline(deadline(seconds)), 0, 0};
    if (group_->poison().set()) leave();
  }

  /// Takes a message that has arrived, if it is the right one.
  void accept(int from, Envelope& envelope, void* data, std::size_t bytes) {
    ++taken_;
    Entry entry;
    const bool other = waiting_.collective && disagrees(from, entry);
    if (other || envelope.bytes != bytes) {
      refuse(envelope, other ? difference(from, entry) : wrong_size(from, bytes, envelope.bytes));
    }
    if (bytes > 0) std::memcpy(data, envelope.data, bytes);
    envelope.state.store(Envelope::State::done, std::memory_order_release);
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

  Expected expected_{*this};
  bool listed_ = false;             ///< on the agenda
  bool looked_ = false;             ///< at what has arrived, since expectations changed
  std::uint64_t posted_ = 0;        ///< messages that had come by then
  std::uint64_t taken_ = 0;         ///< messages received so far
  std::uint64_t taken_before_ = 0;  ///< by then
};

}  // namespace meshwise::detail
