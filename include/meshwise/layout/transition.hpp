// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/detail/conversion_verdict.hpp"
#include "meshwise/layout/detail/needed_conversion.hpp"
#include "meshwise/layout/detail/step_verdict.hpp"
#include "meshwise/layout/layout.hpp"
#include "meshwise/layout/transition_kind.hpp"

namespace meshwise {

/// The transition that placing one axis anew causes: `transition_of<L, Replicate<tp>>`.
template <class L, Placement P>
inline constexpr Transition transition_of = detail::transition<L, P>();

}  // namespace meshwise
