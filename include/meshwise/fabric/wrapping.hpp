// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/detail/shared.hpp"
#include "meshwise/core/owned.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/hold.hpp"

namespace meshwise {

/// An endpoint around another one, on which it performs everything: the base of what changes or watches a fabric.
///
/// Derive from it, override what is to be different, and make Communicators of it: the groups that `split` makes are
/// wrapped by `wrap`. Programs that wrap nothing pay nothing.
/// Cost: an indirect call more. Ordering, errors: those of the wrapped endpoint, which has this one's name and deadline
/// whenever it is used. Traffic: what the wrapped endpoint counts is moved here when a call returns, or when a started
/// operation is seen to be complete.
class WrappingEndpoint : public Endpoint {
 public:
  explicit WrappingEndpoint(Owned<Endpoint> inner)
      : Endpoint(inner->rank(), inner->size()), inner_(std::move(inner)), link_(new Link(this)) {
    set_axis(inner_->axis());
    set_deadline(inner_->deadline());
    set_generation(inner_->generation());
    set_latch(inner_->latch());
    collect();
  }
  ~WrappingEndpoint() override {
    const detail::Hold hold(latch());
    if (listed_) inner_->expect_no_more(relay_);
    link_->endpoint = nullptr;
  }

  Capabilities capabilities() const override { return inner_->capabilities(); }
  const MemorySource* memory() const override { return inner_->memory(); }
  void enroll(void* data, std::size_t bytes) override { inner_->enroll(data, bytes); }
  void dismiss(void* data) noexcept override { inner_->dismiss(data); }

  bool run(const Call& call) override {
    const detail::Hold hold(latch());
    const bool finished = inner().run(call);
    collect();
    return finished;
  }

  std::uint64_t digest(const Call& call) const override { return inner_->digest(call); }

  Owned<Running> start(const Call& call) override {
    const detail::Hold hold(latch());
    return Owned<Running>(new Passed(link_, inner().start(call)));
  }
  Owned<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data, std::size_t bytes,
                           double deadline) override {
    const detail::Hold hold(latch());
    return inner().post_send(verb, to, tag, data, bytes, deadline);
  }
  void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes, double deadline) override {
    const detail::Hold hold(latch());
    inner().receive(verb, from, tag, data, bytes, deadline);
  }
  bool try_receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) override {
    const detail::Hold hold(latch());
    return inner().try_receive(verb, from, tag, data, bytes);
  }

  std::string explain(const Question& question) override { return inner().explain(question); }

  std::string flight_record() override { return inner_->flight_record(); }

  Owned<Endpoint> split(int color, int key) override {
    const detail::Hold hold(latch());
    auto child = inner().split(color, key);
    return child == nullptr ? nullptr : wrap(std::move(child));
  }

  Owned<Endpoint> shrink(double seconds) override {
    const detail::Hold hold(latch());
    return wrap(inner().shrink(seconds));
  }

  void abort(const char* reason) noexcept override { inner_->abort(reason); }

 protected:
  /// What operations keep of their endpoint, which may die before them; then it is null.
  struct Link : detail::Counting {
    explicit Link(WrappingEndpoint* of) : endpoint(of) {}
    WrappingEndpoint* endpoint;
  };

  /// The wrapped endpoint, ready to be used.
  Endpoint& inner() {
    if (inner_->deadline() != deadline()) inner_->set_deadline(deadline());
    if (inner_->axis() != axis()) inner_->set_axis(axis());
    return *inner_;
  }

  const detail::Shared<Link>& link() const { return link_; }

  /// Takes over what the wrapped endpoint has counted.
  void collect() noexcept {
    const detail::Hold hold(latch());
    traffic() += inner_->traffic();
    inner_->traffic() = {};
  }

  /// The same kind of endpoint around a new group. (Where there is a progress thread, `latch()` is held in this, in
  /// `receive_expected`, and in all calls but those of the Running and Sending that overriding calls return.)
  virtual Owned<Endpoint> wrap(Owned<Endpoint> child) = 0;

  /// Expectation::receive_arrived for all that is expected here: called in every wait of this thread, on any endpoint
  /// of this rank, for as long as there are expectations, or `set_watching` says so. May be called in the middle of a
  /// call of the wrapped endpoint.
  virtual bool receive_expected() {
    bool again = false;
    for (Expectation* const one : expectations()) again = one->receive_arrived() || again;
    return again;
  }

  /// To be called with true again for whatever is new. Not to be called by `receive_expected`.
  void set_watching(bool value) {
    if (!value && !watching_) return;
    watching_ = value;
    list();
  }

  void expectations_changed() override { list(); }

 private:
  /// A started operation that is passed on as it is.
  class Passed final : public Running {
   public:
    Passed(detail::Shared<Link> link, Owned<Running> running) : link_(std::move(link)), running_(std::move(running)) {}

    bool test() override {
      if (!running_->test()) return false;
      complete();
      return true;
    }
    void wait() override {
      running_->wait();
      complete();
    }
    bool finished() const override { return running_->finished(); }

   private:
    void complete() {
      if (link_->endpoint != nullptr) link_->endpoint->collect();
    }

    detail::Shared<Link> link_;
    Owned<Running> running_;
  };

  /// All that is expected here, as one expectation of the wrapped endpoint.
  class Relay final : public Expectation {
   public:
    explicit Relay(WrappingEndpoint& owner) : owner_(owner) {}

    bool expects(int from, std::uint64_t tag) const override { return next(from, tag) != nullptr; }
    bool receive_next(int from, std::uint64_t tag, bool blocking, double deadline) override {
      return next(from, tag)->receive_next(from, tag, blocking, deadline);
    }
    bool receive_arrived() override { return owner_.receive_expected(); }

   private:
    Expectation* next(int from, std::uint64_t tag) const {
      for (Expectation* const one : owner_.expectations()) {
        if (one->expects(from, tag)) return one;
      }
      return nullptr;
    }

    WrappingEndpoint& owner_;
  };

  /// Lists the relay anew, so that it is called again even though no message has come since the last time.
  void list() {
    if (listed_) inner_->expect_no_more(relay_);
    listed_ = false;
    if (expectations().empty() && !watching_) return;
    inner_->expect(relay_);
    listed_ = true;
  }

  Owned<Endpoint> inner_;
  detail::Shared<Link> link_;
  Relay relay_{*this};
  bool watching_ = false;
  bool listed_ = false;  ///< the relay is expected by the wrapped endpoint
};

}  // namespace meshwise
