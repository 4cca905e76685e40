// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <exception>
#include <memory>
#include <utility>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/volume.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/delaying/delays.hpp"
#include "meshwise/fabric/delaying/transfer.hpp"
#include "meshwise/fabric/hold.hpp"
#include "meshwise/fabric/wrapping.hpp"

namespace meshwise::detail {

/// An endpoint on which everything completes late; see Delays.
///
/// A transfer (a collective, or the sending of a message) is due at a time that is known when it is entered. If it
/// lands late the wrapped endpoint begins it then, else at once; either way in the order of the calls. Nobody waits
/// inside the wrapped endpoint while it has not begun everything; waits of this thread on other endpoints, delayed or
/// not, go on with it. A message is followed by another one that says when it is due, by a clock that the ranks must
/// share: one machine's. Deadlines run from when the wrapped endpoint waits. What lands late is refused late, by its
/// own test or wait.
class DelayingEndpoint final : public WrappingEndpoint {
 public:
  DelayingEndpoint(Owned<Endpoint> inner, std::shared_ptr<DelayedRank> rank)
      : WrappingEndpoint(std::move(inner)), rank_(std::move(rank)), line_(rank_->delays, rank_->next_seed()) {}

  ~DelayingEndpoint() override {
    const Hold hold(latch());
    if (!waiting_.empty()) abort("a rank left the group before an operation was complete that it had started");
    set_watching(false);
  }

  bool run(const Call& call) override {
    const Hold hold(latch());
    if (size() == 1) return WrappingEndpoint::run(call);
    const auto running = start(call);
    running->wait();
    return running->finished();
  }

  Owned<Running> start(const Call& call) override {
    const Hold hold(latch());
    if (size() == 1) return WrappingEndpoint::start(call);
    go_on(call.verb);
    auto operation = std::make_shared<DelayedCall>(line_.next(volume(call, rank()), rank_->now()), call);
    auto result = std::make_unique<Started>(link(), rank_, operation);
    enqueue(operation);
    return result;
  }

  Owned<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data, std::size_t bytes,
                           double deadline) override {
    const Hold hold(latch());
    if (to == rank()) return inner().post_send(verb, to, tag, data, bytes, deadline);
    go_on(verb);
    auto message =
        std::make_shared<DelayedMessage>(line_.next(bytes, rank_->now()), verb, to, tag, data, bytes, deadline);
    auto result = std::make_unique<Posted>(link(), message);
    enqueue(message);
    return result;
  }

  void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes, double deadline) override {
    const Hold hold(latch());
    if (from != rank()) {
      if (notes_.find(from, tag) == nullptr) {
        std::int64_t due = 0;
        take(verb, from, tag | DelayedMessage::due_tag, &due, sizeof(due), deadline);
        notes_.add(from, tag, due);
      }
      const std::int64_t due = *notes_.find(from, tag);
      pass(
          verb, due, [] { return true; }, [] {});
    }
    take(verb, from, tag, data, bytes, deadline);
    notes_.remove(from, tag);
  }

  bool try_receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) override {
    const Hold hold(latch());
    if (take_arrived(verb, from, tag, data, bytes)) return true;
    if (!aside_) go_on(verb);  // which may receive that message, so that it comes last
    return false;
  }

  Owned<Endpoint> split(int color, int key) override {
    const Hold hold(latch());
    pass(
        "split", 0, [this] { return waiting_.empty() && flying_.empty(); }, [this] { complete_all(); });
    const Inside inside(*this);
    return WrappingEndpoint::split(color, key);
  }

 private:
  class Started final : public Running {
   public:
    Started(Shared<Link> link, std::shared_ptr<DelayedRank> rank, std::shared_ptr<DelayedCall> operation)
        : link_(std::move(link)), rank_(std::move(rank)), operation_(std::move(operation)) {}
    ~Started() override {
      DelayingEndpoint* const end = endpoint_of(*link_);
      const Hold hold(end != nullptr ? end->latch() : nullptr);
      if (end == nullptr || operation_->landed || operation_->refusal) return;
      if (!operation_->begun) end->abort("an operation was given up before it was complete");
      operation_->running.reset();  // aborts, and waits until nobody touches the buffers
      end->forget(operation_.get());
    }

    bool test() override {
      const Hold hold(latch());
      if (complete()) return true;
      if (rank_->clock != nullptr && operation_->due <= rank_->now()) {
        wait();  // whether the others are there yet is no matter of this clock
        return true;
      }
      guarded([this] { endpoint().go_on(operation_->call.verb); });
      if (complete()) return true;
      sched_yield();  // a loop of tests would keep the others from running for the rest of its time slice
      return false;
    }
    void wait() override {
      const Hold hold(latch());
      if (complete()) return;
      DelayingEndpoint& end = endpoint();
      guarded([&] {
        const auto landed = [this] { return operation_->landed || operation_->refusal; };
        end.pass(operation_->call.verb, operation_->due, landed, [&] { end.complete_all(operation_.get()); });
      });
      while (!complete()) rank_->nap(operation_->due);
    }
    bool finished() const override { return operation_->running->finished(); }

   private:
    /// Throws why the operation could not be begun, before all else, and nothing if it has landed.
    template <class Work>
    void guarded(const Work& work) const {
      try {
        work();
      } catch (...) {
        if (!operation_->refusal && !operation_->landed) throw;
      }
      if (operation_->refusal) std::rethrow_exception(operation_->refusal);
    }

    bool complete() const { return operation_->landed && rank_->now() >= operation_->due; }
    Latch* latch() const { return link_->endpoint != nullptr ? link_->endpoint->latch() : nullptr; }
    DelayingEndpoint& endpoint() const {
      if (DelayingEndpoint* const end = endpoint_of(*link_)) return *end;
      Report problem;
      problem.code = Code::aborted;
      problem.operation = operation_->call.verb;
      problem.found = "the communicator went before the operation was complete";
      problem.remedy = "wait for what was started before the communicator is destroyed";
      throw Error(std::move(problem));
    }

    Shared<Link> link_;
    std::shared_ptr<DelayedRank> rank_;
    std::shared_ptr<DelayedCall> operation_;
  };

  class Posted final : public Sending {
   public:
    Posted(Shared<Link> link, std::shared_ptr<DelayedMessage> message)
        : link_(std::move(link)), message_(std::move(message)) {}
    ~Posted() override {
      DelayingEndpoint* const end = endpoint_of(*link_);
      if (end == nullptr) return;
      const Hold hold(end->latch());
      if (!message_->begun) end->forget(message_.get());
    }

    bool test() override {
      const Hold hold(endpoint_of(*link_)->latch());
      endpoint_of(*link_)->go_on(message_->verb);
      return done();
    }
    void wait() override {
      const Hold hold(endpoint_of(*link_)->latch());
      const std::int64_t due = message_->at_once ? 0 : message_->due;
      endpoint_of(*link_)->pass(
          message_->verb, due, [this] { return done(); },
          [this] {
            const Inside inside(*endpoint_of(*link_));
            message_->wait();
          });
    }

   private:
    bool done() const {
      if (message_->refusal) std::rethrow_exception(message_->refusal);
      const Inside inside(*endpoint_of(*link_));
      return message_->test();
    }

    Shared<Link> link_;
    std::shared_ptr<DelayedMessage> message_;
  };

  static DelayingEndpoint* endpoint_of(const Link& link) { return static_cast<DelayingEndpoint*>(link.endpoint); }

  Owned<Endpoint> wrap(Owned<Endpoint> child) override {
    return std::make_unique<DelayingEndpoint>(std::move(child), rank_);
  }

  /// For the time of calls of the wrapped endpoint, in which it may call back: no other one may begin then.
  class Inside {
   public:
    explicit Inside(DelayingEndpoint& endpoint) : flag_(endpoint.inside_), before_(std::exchange(flag_, true)) {}
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { flag_ = before_; }

   private:
    bool& flag_;
    bool before_;
  };

  void enqueue(const std::shared_ptr<DelayedTransfer>& transfer) {
    waiting_.push_back(transfer);
    advance();
    if (!waiting_.empty()) set_watching(true);
    if (transfer->refusal) std::rethrow_exception(transfer->refusal);
  }

  /// Begins what is due, and completes what has landed. all: begins the rest too.
  void advance(bool all = false) {
    if (inside_) return;
    const Inside inside(*this);
    const auto ready = [&](const DelayedTransfer& next) { return all || next.at_once || next.due <= rank_->now(); };
    while (!waiting_.empty() && ready(*waiting_.front())) {
      const std::shared_ptr<DelayedTransfer> next = waiting_.front();
      waiting_.pop_front();
      try {
        next->begin(inner());
        next->begun = true;
        if (next->running != nullptr) flying_.push_back(next);
      } catch (...) {
        next->refusal = std::current_exception();  // of its own test or wait; what is behind it goes on
      }
    }
    while (!flying_.empty() && flying_.front()->running->test()) land();
  }

  /// The first of those that were begun is complete.
  void land() {
    flying_.front()->landed = true;
    flying_.pop_front();
    collect();
  }

  /// Waits for what has been begun, up to an operation.
  void complete_all(const DelayedTransfer* last = nullptr) {
    const Inside inside(*this);
    while (!flying_.empty() && (last == nullptr || !last->landed)) {
      flying_.front()->running->wait();
      land();
    }
  }

  /// Goes on with this endpoint, and by a question to the wrapped one with all others of this thread. Errors: also
  /// those of the group, for `verb`.
  void go_on(const char* verb) {
    advance();
    if (waiting_.empty()) set_watching(false);
    try {
      const Inside inside(*this);
      inner().try_receive(verb, rank(), DelayedMessage::no_tag, nullptr, 0);
    } catch (...) {
      advance(true);  // the group has failed, of which an operation knows more than a question
      throw;
    }
  }

  /// Waits until it is time and `done` says so; `block` does it by a wait of the wrapped endpoint, which must have
  /// begun everything.
  template <class Done, class Block>
  void pass(const char* verb, std::int64_t due, const Done& done, const Block& block) {
    Backoff backoff(true);
    for (;;) {
      go_on(verb);
      if (rank_->nap(due)) continue;
      if (done()) return;
      if (waiting_.empty()) return block();
      backoff.pause();
    }
  }

  /// Receives a message that has arrived and is due.
  bool take_arrived(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) {
    const Inside inside(*this);
    if (from == rank()) return inner().try_receive(verb, from, tag, data, bytes);
    if (notes_.find(from, tag) == nullptr) {
      std::int64_t due = 0;
      if (!inner().try_receive(verb, from, tag | DelayedMessage::due_tag, &due, sizeof(due))) return false;
      notes_.add(from, tag, due);
    }
    if (rank_->now() < *notes_.find(from, tag)) {
      early_ = true;
      return false;
    }
    if (!inner().try_receive(verb, from, tag, data, bytes)) return false;
    notes_.remove(from, tag);
    return true;
  }

  /// Endpoint::receive of the wrapped one.
  void take(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes, double deadline) {
    const auto arrived = [&] {
      const Inside inside(*this);
      return inner().try_receive(verb, from, tag, data, bytes);
    };
    pass(verb, 0, arrived, [&] {
      const Inside inside(*this);
      inner().receive(verb, from, tag, data, bytes, deadline);
    });
  }

  bool receive_expected() override {
    struct Aside {
      bool& flag;
      bool before = std::exchange(flag, true);
      ~Aside() { flag = before; }
    } const aside{aside_};
    advance();
    early_ = false;
    const bool again = WrappingEndpoint::receive_expected();
    return early_ || again || !waiting_.empty();
  }

  void forget(const DelayedTransfer* transfer) noexcept {
    for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
      if (at->get() != transfer) continue;
      waiting_.erase(at);
      break;
    }
    for (auto at = flying_.begin(); at != flying_.end(); ++at) {
      if (at->get() != transfer) continue;
      flying_.erase(at);
      break;
    }
  }

  std::shared_ptr<DelayedRank> rank_;
  DelayLine line_;
  std::deque<std::shared_ptr<DelayedTransfer>> waiting_;  ///< to be begun, in order
  std::deque<std::shared_ptr<DelayedTransfer>> flying_;   ///< begun by the wrapped endpoint, in order
  DueNotes notes_;                                        ///< of messages that have come
  bool inside_ = false;                                   ///< see Inside
  bool early_ = false;                                    ///< a message was not received because it is not due
  bool aside_ = false;                                    ///< in receive_expected
};

}  // namespace meshwise::detail
