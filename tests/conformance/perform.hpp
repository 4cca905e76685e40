// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "ask.hpp"
#include "meshwise/collective/pending.hpp"
#include "meshwise/collective/prepared.hpp"

namespace conformance {

/// Complains if a result is not the caller's output.
template <class T>
void require_result(const Ask& ask, std::span<T> result) {
  if (result.size() == ask.expected_result && (result.empty() || static_cast<const void*>(result.data()) == ask.out)) {
    return;
  }
  throw std::logic_error("the result is not the output");
}

template <class R>
void conclude(const Ask& ask, meshwise::Pending<R> pending) {
  // Some look at it first, and some until it is complete.
  const std::uint64_t looks = ask.c->seed % 4 == 3 ? ~std::uint64_t{0} : ask.c->seed % 4;
  for (std::uint64_t look = 0; look < looks && !pending.test(); ++look) {}
  if constexpr (std::is_void_v<R>) {
    pending.wait();
  } else {
    require_result(ask, pending.wait());
  }
  if (pending.pending()) throw std::logic_error("still pending after wait");
}

/// Calls in the way that the case wants. Each argument is a generic function, instantiated only if `every` is set.
template <bool every, class Run, class Start, class Prepare>
void in_manner(Ask& ask, const Run& run, const Start& start, const Prepare& prepare) {
  if constexpr (every) {
    if (ask.c->manner() == How::started) return conclude(ask, start(ask));
    if (ask.c->manner() == How::prepared) {
      auto prepared = prepare(ask);
      if constexpr (std::is_void_v<decltype(prepared.run())>) {
        prepared.run();
      } else {
        require_result(ask, prepared.run());
      }
      ask.interlude->between();
      return conclude(ask, prepared.start());
    }
  }
  if (ask.c->manner() != How::blocking) throw std::logic_error("not compiled in this manner");
  run(ask);
}

template <class T>
struct Spans {
  std::span<const T> in;
  std::span<T> out;
  std::span<T> whole;
  explicit Spans(const Ask& ask)
      : in(static_cast<const T*>(ask.in), ask.in_count),
        out(static_cast<T*>(ask.out), ask.out_count),
        whole(static_cast<T*>(ask.whole), ask.whole_count) {}
};

}  // namespace conformance
