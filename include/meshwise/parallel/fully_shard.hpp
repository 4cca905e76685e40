// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/parallel/detail/compact.hpp"
#include "meshwise/parallel/detail/data_axes.hpp"
#include "meshwise/tensor/start_convert.hpp"

namespace meshwise {

namespace detail {

template <class Dims, class A>
struct first_dim_shard {
  using is = Shard<front<dims_of<Dims>>, A>;
};
template <class A>
struct first_dim_shard<Dims<>, A> {
  using is = Replicate<A>;
};
/// How A holds a parameter: its first dim is split, after the axes that split it already; a number stays whole.
template <class T, class A>
using fully_sharded_by = typename first_dim_shard<typename bare<T>::dims, A>::is;

/// The verdict on splitting a parameter over A, which replicates it.
template <class T, class A>
consteval auto fully_shard_verdict() {
  using whole = typename decltype(first_refusal<T, replicated_over<T, A>>())::is;
  if constexpr (!is_accepted<whole>) {
    return type<whole>{};
  } else {
    return type<convert_verdict<T, fully_sharded_by<T, A>>>{};
  }
}
template <class T, class A>
using fully_shard_of = typename decltype(fully_shard_verdict<operand<T>, A>())::is;

/// The verdict on summing a gradient over A into the parts of its parameter.
template <class G, class A>
consteval auto start_shard_gradient_verdict() {
  using owed = typename decltype(first_refusal<G, owes_over<G, A>>())::is;
  if constexpr (!is_accepted<owed>) {
    return type<owed>{};
  } else {
    return type<start_convert_verdict<G, fully_sharded_by<G, A>>>{};
  }
}
template <class G, class A>
using start_shard_gradient_of = typename decltype(start_shard_gradient_verdict<operand<G>, A>())::is;

}  // namespace detail

// Stage 3 of ZeRO parameter by parameter (FSDP2), by plain conversions: each parameter is a tensor of its own type,
// split along its first dim, with an optimizer state of that type. Many small collectives instead of one per unit; in
// return parameters keep their names, shapes and options. For units see zero.hpp.

/// What A holds of a parameter at rest: split along its first dim, at the minor end of the axes that split it already.
///
/// parameter: replicated over A; without dims it stays as it is. Cost: a copy of the own part, so that the whole may be
/// dropped. Errors: refused for a parameter that A does not replicate.
template <Axis A, AnyTensor T>
  requires detail::is_accepted<detail::fully_shard_of<T, A>>
[[nodiscard]] auto fully_shard(const T& parameter) {
  return detail::compact(convert<detail::fully_sharded_by<T, A>>(parameter));
}
template <Axis A, AnyTensor T>
  requires(!detail::is_accepted<detail::fully_shard_of<T, A>>)
[[nodiscard]] auto fully_shard(const T& parameter) -> detail::fully_shard_of<T, A>;

/// Starts to gather a parameter for its use. Cost, ordering and lifetime as start_convert: an all_gather.
template <Axis A, AnyTensor T>
  requires detail::is_accepted<detail::start_convert_verdict<T, Replicate<A>>>
[[nodiscard]] auto start_unshard(const T& parameter) { return start_convert<Replicate<A>>(parameter); }
template <Axis A, AnyTensor T>
  requires(!detail::is_accepted<detail::start_convert_verdict<T, Replicate<A>>>)
[[nodiscard]] auto start_unshard(const T& parameter) -> detail::start_convert_verdict<T, Replicate<A>>;

/// Starts to sum a gradient into the parts of its parameter. gradient: owes a sum over A. Cost, ordering and lifetime
/// as start_convert: a reduce_scatter, or an all_reduce of a number. Errors: refused for one that owes nothing.
template <Axis A, AnyTensor G>
  requires detail::is_accepted<detail::start_shard_gradient_of<G, A>>
[[nodiscard]] auto start_shard_gradient(G&& gradient) {
  return start_convert<detail::fully_sharded_by<G, A>>(std::forward<G>(gradient));
}
template <Axis A, AnyTensor G>
  requires(!detail::is_accepted<detail::start_shard_gradient_of<G, A>>)
[[nodiscard]] auto start_shard_gradient(G&& gradient) -> detail::start_shard_gradient_of<G, A>;

}  // namespace meshwise
