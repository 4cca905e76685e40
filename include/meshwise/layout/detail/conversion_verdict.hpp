// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/detail/step_verdict.hpp"

namespace meshwise::detail {

template <class L, class P>
using layout_after = typename decltype(step_verdict<L, P>())::is;

template <class L, class... Steps>
consteval auto chain_verdict(list<Steps...> steps) {
  if constexpr (steps.size == 0) {
    return type<accepted<L>>{};
  } else {
    return []<class First, class... Rest>(list<First, Rest...>) {
      using verdict = layout_after<L, First>;
      if constexpr (is_accepted<verdict>) {
        return chain_verdict<typename verdict::is>(list<Rest...>{});
      } else {
        return type<verdict>{};
      }
    }(steps);
  }
}

/// Whether L already places the axes of P, all of them and in order, as P says.
template <class L, class P>
consteval bool holds() {
  if constexpr (axes_of<P>::size == 0) {
    return true;
  } else if constexpr (!contains<front<axes_of<P>>, axes_of_layout<L>>) {
    return false;
  } else {
    return std::is_same_v<placement_on<L, front<axes_of<P>>>, P>;
  }
}

/// The steps of one placement after another, those left out that hold when their turn comes.
template <class L, class Done>
consteval auto steps_in_order(list<>, Done done) {
  return done;
}
template <class L, class Done, class P, class... Rest>
consteval auto steps_in_order(list<P, Rest...>, Done done) {
  if constexpr (holds<L, P>()) {
    return steps_in_order<L>(list<Rest...>{}, done);
  } else {
    using steps = typename one_axis<P>::is;
    using verdict = typename decltype(chain_verdict<L>(steps{}))::is;
    if constexpr (is_accepted<verdict>) {
      return steps_in_order<typename verdict::is>(list<Rest...>{}, done + steps{});
    } else {
      return done + steps{};
    }
  }
}

/// The one-axis steps of `convert<Ps...>` on L.
template <class L, class... Ps>
consteval auto conversion_steps() {
  return steps_in_order<L>(list<Ps...>{}, list<>{});
}

template <class L, class... Ps>
using conversion_verdict = typename decltype(chain_verdict<L>(conversion_steps<L, Ps...>()))::is;

}  // namespace meshwise::detail
