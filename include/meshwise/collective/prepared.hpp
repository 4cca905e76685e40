// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/collective/detail/task.hpp"
#include "meshwise/collective/pending.hpp"
#include "meshwise/core/detail/shared.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise {

/// A collective that is checked and described once and performed many times on the same buffers: what `prepare_*`
/// returns. R is what `run` gives back: this rank's output as a span, or void if there is none.
///
/// Preparing is local, nothing is sent. Buffers that were passed as lvalues must stay where they are; those that were
/// moved in live in this object, and the spans that `run` returns point into it.
/// Cost: `run` does not allocate once its plan is known; `start` allocates what the fabric needs for an operation in
/// flight.
/// Ordering and lifetime: `run` and `start` count as the calls of the collective, in the same order on all ranks; a
/// rank may prepare where another one calls the blocking form. Movable, also while in flight; not beyond the
/// communicator's life.
/// Errors: those of the collective; `invalid_argument` for starting it while it is in flight, or after a move.
template <class R>
class [[nodiscard]] Prepared {
 public:
  Prepared() = default;
  Prepared(detail::Shared<detail::Task> task, detail::Take<R> take) : task_(std::move(task)), take_(take) {}

  /// Performs it.
  R run() {
    detail::Task& task = require();
    task.run();
    return take_(task);
  }

  /// Begins it. Wait for one before starting the next.
  Pending<R> start() {
    require().start();
    return Pending<R>(task_, take_);
  }

 private:
  detail::Task& require() const {
    if (task_ == nullptr) {
      fail("Prepared", "a prepared collective", "an empty or moved-from object", "use the one that prepare_* returned");
    }
    return *task_;
  }

  detail::Shared<detail::Task> task_;
  detail::Take<R> take_ = nullptr;
};

}  // namespace meshwise
