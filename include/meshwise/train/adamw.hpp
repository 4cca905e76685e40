// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise {

/// The numbers of AdamW.
struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  ///< decoupled; give 0 for vectors such as biases and gains
};

/// The two moments of one parameter, in its accumulate type and its layout.
template <AnyTensor T>
struct AdamWState {
  using Moment = Tensor<accumulate_t<typename T::element>, typename T::dims, typename T::layout, typename T::space>;
  Moment first;
  Moment second;

  /// Zeros for a parameter. Cost: two tensors of accumulate_t, counted as optimizer state.
  explicit AdamWState(const T& parameter)
      : AdamWState(parameter, CategoryScope(heap_of(parameter), Category::optimizer)) {}

 private:
  static Heap& heap_of(const T& p) { return p.mesh().template memory<typename T::space>(); }
  AdamWState(const T& p, const CategoryScope&) : first(p.mesh(), p.extents()), second(p.mesh(), p.extents()) {}
};

namespace detail {

/// The verdict on updating a parameter by a gradient: alike, and no sum is owed.
template <class T, class G>
consteval auto update_verdict() {
  using owed = partials_of<typename G::layout>;
  if constexpr (has_partial<typename T::layout>) {
    return type<map_of<T>>{};
  } else if constexpr (!std::is_same_v<grid_of<typename T::layout>, grid_of<typename G::layout>> || owed::size == 0) {
    return alike_verdict<G, T>();
  } else {
    return type<refused<because::gradient_still_owes_a_sum<front<axes_of<front<owed>>>>,
                        try_<needed_conversion<typename G::layout, typename T::layout>>, typename G::layout,
                        typename T::layout>>{};
  }
}
template <class T, class G>
using update_of = typename decltype(update_verdict<operand<T>, operand<G>>())::is;

}  // namespace detail

/// One step of AdamW on one parameter, in place.
///
/// parameter: any layout but a Partial; gradient: the same type, so a sum that is still owed does not compile; state:
/// its moments. step: from 1. gradient_scale: multiplies the gradient first (clipping). Cost: one pass over four
/// arrays, no communication: replicas stay equal because they compute the same. Errors: different extents.
/// Source: Loshchilov, Hutter, "Decoupled Weight Decay Regularization", arXiv 1711.05101, with bias correction.
template <AnyTensor T>
  requires detail::is_accepted<detail::update_of<T, T>>
void adamw_step(T& parameter, const T& gradient, AdamWState<T>& state, std::uint64_t step, const AdamWOptions& options,
                double gradient_scale = 1.0) {
  using E = typename T::element;
  using A = accumulate_t<E>;
  detail::check_operands("adamw_step", parameter, gradient);
  detail::check_operands("adamw_step", parameter, state.first);
  detail::check_operands("adamw_step", parameter, state.second);
  const auto beta1 = static_cast<A>(options.beta1), beta2 = static_cast<A>(options.beta2);
  const auto bias1 = static_cast<A>(1.0 / (1.0 - std::pow(options.beta1, static_cast<double>(step))));
  const auto bias2 = static_cast<A>(1.0 / (1.0 - std::pow(options.beta2, static_cast<double>(step))));
  const auto rate = static_cast<A>(options.learning_rate), epsilon = static_cast<A>(options.epsilon);
  const auto keep = static_cast<A>(1.0 - options.learning_rate * options.weight_decay);
  const auto scale = static_cast<A>(gradient_scale);
  const std::size_t n = parameter.local().size();
  E* w = parameter.mutable_local().data();
  const E* g = gradient.local().data();
  A* m = state.first.mutable_local().data();
  A* v = state.second.mutable_local().data();
  for (std::size_t i = 0; i < n; ++i) {
    const A gi = static_cast<A>(g[i]) * scale;
    m[i] = beta1 * m[i] + (A(1) - beta1) * gi;
    v[i] = beta2 * v[i] + (A(1) - beta2) * gi * gi;
    w[i] = static_cast<E>(keep * static_cast<A>(w[i]) - rate * (m[i] * bias1) / (std::sqrt(v[i] * bias2) + epsilon));
  }
}
template <AnyTensor T, AnyTensor G>
  requires(!detail::is_accepted<detail::update_of<T, G>>)
auto adamw_step(T& parameter, const G& gradient, AdamWState<T>& state, std::uint64_t step, const AdamWOptions& options,
                double gradient_scale = 1.0) -> detail::update_of<T, G>;

}  // namespace meshwise
