// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <utility>

#include "meshwise/collective/detail/task.hpp"
#include "meshwise/core/detail/shared.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise {

/// A collective in flight: what `start_*` returns. R is what `wait` gives back: the output, as a span if it was passed
/// as an lvalue, as the container itself if it was moved in; void if there is none.
///
/// Progress is made by `test` and `wait` of any collective of the same communicator and by its blocking calls;
/// collectives of one communicator complete in the order in which they were started. Whatever a thread waits for, it
/// goes on with all collectives and groups of messages that it has started, on any communicator: those of several
/// communicators may be waited for in any order, in another one on each rank.
/// Where the ranks have progress threads (LaunchOptions::progress_thread) these go on with everything too, whether the
/// program calls something or not.
/// Ordering and lifetime: until `wait` has returned, the buffers belong to the operation: inputs must not be written,
/// outputs not be touched. Containers that were moved in live as long as it does. Movable, not beyond the
/// communicator's life. A communicator with operations in flight stays with the thread that started them: only that
/// thread's waits go on with them. Destroying one that was not waited for waits, and drops the result and any error
/// (the communicator reports it again); while an exception is being thrown it aborts the group instead, since the other
/// ranks may wait for this one in vain. It never throws.
/// Errors: of the collective, from `test` and `wait`; `invalid_argument` for use after the result was taken.
template <class R>
class [[nodiscard]] Pending {
 public:
  Pending() = default;
  Pending(detail::Shared<detail::Task> task, detail::Take<R> take)
      : task_(std::move(task)), take_(take), exceptions_(std::uncaught_exceptions()) {}
  Pending(Pending&& other) noexcept
      : task_(std::move(other.task_)), take_(other.take_), exceptions_(std::uncaught_exceptions()) {}
  Pending& operator=(Pending&& other) noexcept {
    if (this == &other) return *this;
    finish();
    task_ = std::move(other.task_);
    take_ = other.take_;
    exceptions_ = std::uncaught_exceptions();
    return *this;
  }
  ~Pending() { finish(); }

  /// Whether there is a result to wait for: not after `wait`, an error, or a move.
  bool pending() const { return task_ != nullptr; }

  /// Does what can be done without waiting. True when complete: then `wait` returns at once.
  bool test() {
    require();
    if (!task_->in_flight()) return true;
    try {
      return task_->test();
    } catch (...) {
      task_.reset();
      throw;
    }
  }

  /// Returns the result when the operation is complete. Once.
  R wait() {
    require();
    const detail::Shared<detail::Task> task = std::move(task_);
    if (task->in_flight()) task->wait();
    return take_(*task);
  }

 private:
  void require() const {
    if (task_ != nullptr) return;
    fail("Pending", "a collective in flight", "none: its result was taken, it failed, or it was moved from",
         "start another one");
  }

  void finish() noexcept {
    if (task_ == nullptr) return;
    const detail::Shared<detail::Task> task = std::move(task_);
    if (!task->in_flight()) return;
    if (std::uncaught_exceptions() > exceptions_) return task->drop();
    try {
      task->wait();
    } catch (...) {
      // The error has poisoned the group, whose next call reports it.
    }
  }

  detail::Shared<detail::Task> task_;
  detail::Take<R> take_ = nullptr;
  int exceptions_ = 0;
};

}  // namespace meshwise
