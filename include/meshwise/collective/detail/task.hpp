// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/collective/detail/request.hpp"
#include "meshwise/collective/detail/workspace.hpp"
#include "meshwise/core/detail/shared.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/owned.hpp"
#include "meshwise/fabric/endpoint.hpp"

namespace meshwise::detail {

/// A collective that can be in flight: behind Pending and Prepared.
class Task : public Counting {
 public:
  virtual ~Task() = default;

  /// Enters it. Errors: if it is in flight already.
  virtual void start() = 0;
  /// Whether it is complete, after what can be done at once. Only while in flight.
  virtual bool test() = 0;
  /// Completes it. Only while in flight.
  virtual void wait() = 0;
  /// Start and wait.
  virtual void run() = 0;
  /// Whether it has been started and not been completed; not after an error.
  virtual bool in_flight() const = 0;
  /// Gives up: the group is aborted and nobody touches the buffers any more.
  virtual void drop() noexcept = 0;
  virtual const char* verb() const = 0;
  virtual int rank() const = 0;
};

[[noreturn]] inline void refuse_second_start(const char* verb, int rank) {
  fail(verb, "a prepared collective that is not in flight", "one that has not been waited for",
       "wait for its Pending first, or prepare another one", rank);
}

/// A Task with a Request.
class RequestTask : public Task {
 public:
  RequestTask(Endpoint& endpoint, const char* verb) : request(endpoint, workspace_, verb) {}

  void start() override {
    if (running_ != nullptr) refuse_second_start(verb(), rank());
    request.before();
    running_ = request.endpoint().start(request.call);
  }

  bool test() override {
    try {
      if (!running_->test()) return false;
    } catch (...) {
      running_.reset();
      throw;
    }
    complete();
    return true;
  }

  void wait() override {
    try {
      running_->wait();
    } catch (...) {
      running_.reset();
      throw;
    }
    complete();
  }

  void run() override {
    if (running_ != nullptr) refuse_second_start(verb(), rank());
    if (!known_) {
      request.call.digest = request.endpoint().digest(request.call);
      known_ = true;
    }
    request.run();
  }

  bool in_flight() const override { return running_ != nullptr; }
  void drop() noexcept override { running_.reset(); }
  const char* verb() const override { return request.verb(); }
  int rank() const override { return request.rank(); }

 private:
  void complete() {
    const Owned<Running> done = std::move(running_);
    request.after(done->finished());
  }

  Workspace workspace_;

 public:
  Request request;

 private:
  bool known_ = false;  ///< the digest of the call
  Owned<Running> running_;
};

/// How a Task keeps a buffer that it was given: a view of an lvalue, the thing itself if it was moved in.
template <class R>
using held_t = std::conditional_t<std::is_lvalue_reference_v<R>, std::span<item_t<R>>, std::remove_cvref_t<R>>;

/// What `wait` gives back for an output that was passed as R.
template <class R>
using result_t = std::conditional_t<std::is_lvalue_reference_v<R>, std::span<std::remove_const_t<item_t<R>>>,
                                    std::remove_cvref_t<R>>;

/// With an output.
template <class Out>
class OutputTask : public RequestTask {
 public:
  template <class R>
  OutputTask(Endpoint& endpoint, const char* verb, R&& to) : RequestTask(endpoint, verb), out(std::forward<R>(to)) {}

  Out out;
};

/// With an input and an output.
template <class In, class Out>
class TransferTask final : public OutputTask<Out> {
 public:
  template <class From, class To>
  TransferTask(Endpoint& endpoint, const char* verb, From&& from, To&& to)
      : OutputTask<Out>(endpoint, verb, std::forward<To>(to)), in(std::forward<From>(from)) {}

  In in;
};

/// The own output of a finished task, as elements of T.
template <class T>
std::span<T> output_of(Task& task) {
  const Request& request = static_cast<RequestTask&>(task).request;
  return {static_cast<T*>(request.own.output), request.own.output_count};
}

template <class Out>
Out moved_output_of(Task& task) {
  return std::move(static_cast<OutputTask<Out>&>(task).out);
}

/// How `wait` gets its result.
template <class R>
using Take = R (*)(Task&);

}  // namespace meshwise::detail
