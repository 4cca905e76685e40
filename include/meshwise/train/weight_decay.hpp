// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "meshwise/core/error.hpp"
#include "meshwise/core/split.hpp"
#include "meshwise/train/adamw.hpp"
#include "meshwise/train/mixed_precision.hpp"

namespace meshwise {

/// Whether a parameter is a matrix, whose weights decay, and no vector such as a gain or a bias: by the dims of its
/// type, whatever a rank holds of it. A bias with two dims, of heads say, is for the caller to name.
template <AnyTensor T>
inline constexpr bool decays_by_default = detail::bare<T>::rank >= 2;

/// The options for a parameter of type T: without weight decay if it is a vector.
template <AnyTensor T>
constexpr AdamWOptions options_for(AdamWOptions options) {
  if (!decays_by_default<T>) options.weight_decay = 0;
  return options;
}

namespace detail {

template <class T, class G>
consteval auto step_verdict(type<AdamWState<T>>) {
  return update_verdict<T, G>();
}
template <class T, class G>
consteval auto step_verdict(type<MasterState<T>>) {
  return mixed_update_verdict<T, G>();
}

/// The verdict on updating parts of a vector: its local elements are a run of its global ones.
template <class T, class G, class State>
consteval auto flat_update_verdict() {
  if constexpr (T::rank != 1) {
    return type<refused<because::parameter_is_not_flat, try_<use_options_for>, typename T::dims>>{};
  } else if constexpr (!T::template is_contiguous<front<dims_of<typename T::dims>>>) {
    return type<refused<because::dim_is_not_contiguous<front<dims_of<typename T::dims>>>,
                        try_<cut_it_into_contiguous_parts>, typename T::layout>>{};
  } else {
    return step_verdict<T, G>(type<State>{});
  }
}
template <class T, class G, class State>
using flat_update_of = typename decltype(flat_update_verdict<operand<T>, operand<G>, State>())::is;

/// What adamw_step may keep of a parameter.
template <class S, class T>
concept StateOf = std::is_same_v<S, AdamWState<T>> || std::is_same_v<S, MasterState<T>>;

}  // namespace detail

/// One step of AdamW on many parameters that lie one behind the other in a flat vector, some of which do not decay: a
/// unit of ZeRO, whose shards are one-dimensional whatever the parameters were.
///
/// parameter, gradient, state, step, options, gradient_scale: as for adamw_step, with AdamWState or MasterState; one
/// dim, cut contiguously or whole. without_decay: ranges of the global indices of the dim, ascending, without overlaps,
/// for which options.weight_decay counts as 0: of `Zero::ranges(unit)` those of vectors. Cost: as adamw_step. The bits
/// are those of a step on every parameter alone. Errors: as adamw_step; ranges that are out of order or leave the dim.
template <AnyTensor T, AnyTensor G, detail::StateOf<T> State>
  requires detail::is_accepted<detail::flat_update_of<T, G, State>>
void adamw_step(T& parameter, const G& gradient, State& state, std::uint64_t step, const AdamWOptions& options,
                double gradient_scale, std::span<const Range> without_decay) {
  using D = detail::front<detail::dims_of<typename T::dims>>;
  detail::check_update(parameter, gradient, state);
  AdamWOptions constant = options;
  constant.weight_decay = 0;
  const detail::AdamWUpdateOf<T> decaying(options, step, gradient_scale), still(constant, step, gradient_scale);
  const Range held = parameter.template range<D>();
  const std::size_t end = held.begin + held.size;
  std::size_t at = held.begin, last = 0;
  const auto go_to = [&](std::size_t index, const detail::AdamWUpdateOf<T>& update) {
    if (index > end) index = end;
    if (index <= at || parameter.local().empty()) return;  // where memory is only counted it is
    detail::update_elements(parameter, gradient, state, update, at - held.begin, index - at);
    at = index;
  };
  for (const Range& range : without_decay) {
    if (range.begin < last || range.size > parameter.size() || range.begin > parameter.size() - range.size) {
      fail("adamw_step", "ascending ranges without decay, of " + std::to_string(parameter.size()) + " elements",
           "one from " + std::to_string(range.begin) + " of " + std::to_string(range.size), "pass them in their order",
           parameter.mesh().world().rank());
    }
    last = range.begin + range.size;
  }
  for (const Range& range : without_decay) {
    go_to(range.begin, decaying);
    go_to(range.begin + range.size, still);
  }
  go_to(end, decaying);
}
template <AnyTensor T, AnyTensor G, detail::StateOf<T> State>
  requires(!detail::is_accepted<detail::flat_update_of<T, G, State>>)
auto adamw_step(T& parameter, const G& gradient, State& state, std::uint64_t step, const AdamWOptions& options,
                double gradient_scale, std::span<const Range> without_decay) -> detail::flat_update_of<T, G, State>;

}  // namespace meshwise
