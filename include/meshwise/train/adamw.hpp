// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "meshwise/core/detail/pack_math.hpp"
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

namespace detail {

/// What AdamW does in one step to one element, in the type of the moments.
template <class A>
struct AdamWUpdate {
  A beta1, beta2, bias1, bias2, rate, epsilon, keep, scale;

  AdamWUpdate(const AdamWOptions& options, std::uint64_t step, double gradient_scale)
      : beta1(static_cast<A>(options.beta1)),
        beta2(static_cast<A>(options.beta2)),
        bias1(static_cast<A>(1.0 / (1.0 - math::pow(options.beta1, static_cast<double>(step))))),
        bias2(static_cast<A>(1.0 / (1.0 - math::pow(options.beta2, static_cast<double>(step))))),
        rate(static_cast<A>(options.learning_rate)),
        epsilon(static_cast<A>(options.epsilon)),
        keep(static_cast<A>(1.0 - options.learning_rate * options.weight_decay)),
        scale(static_cast<A>(gradient_scale)) {}

  /// The new value of w. X: A, or packs of it.
  template <class X>
  X operator()(const X& w, const X& gradient, X& m, X& v) const {
    const X g = gradient * X(scale);
    m = X(beta1) * m + X(A(1) - beta1) * g;
    v = X(beta2) * v + X(A(1) - beta2) * g * g;
    return X(keep) * w - X(rate) * (m * X(bias1)) / (math::sqrt(v * X(bias2)) + X(epsilon));
  }

  /// The same for `count` elements of w in place. also(i, values, how many...): what else becomes of the new values.
  template <class W, class G, class Also>
  void all(W* w, const G* g, A* m, A* v, std::size_t count, const Also& also) const {
    in_packs([&](auto width) {
      using P = typename decltype(width)::template pack<A>;
      const auto some = [&](std::size_t i, auto... few) {
        P first = load<P>(m + i, few...), second = load<P>(v + i, few...);
        const P value = (*this)(load<P>(w + i, few...), load<P>(g + i, few...), first, second);
        store(m + i, first, few...);
        store(v + i, second, few...);
        store(w + i, value, few...);
        also(i, value, few...);
      };
      std::size_t i = 0;
      for (; count - i >= P::lanes; i += P::lanes) some(i);
      if (i < count) some(i, count - i);
    });
  }
};

template <class T>
using AdamWUpdateOf = AdamWUpdate<accumulate_t<typename T::element>>;

template <AnyTensor T, AnyTensor G>
void check_update(const T& parameter, const G& gradient, const AdamWState<T>& state) {
  check_operands("adamw_step", parameter, gradient);
  check_operands("adamw_step", parameter, state.first);
  check_operands("adamw_step", parameter, state.second);
}

/// Updates some local elements, of operands that have been checked.
template <AnyTensor T, AnyTensor G>
void update_elements(T& parameter, const G& gradient, AdamWState<T>& state, const AdamWUpdateOf<T>& update,
                     std::size_t begin, std::size_t count) {
  using E = typename T::element;
  using A = accumulate_t<E>;
  E* w = parameter.mutable_local().data() + begin;
  const auto* g = gradient.local().data() + begin;
  A* m = state.first.mutable_local().data() + begin;
  A* v = state.second.mutable_local().data() + begin;
  update.all(w, g, m, v, count, [](std::size_t, const auto&, auto...) {});
}

}  // namespace detail

/// One step of AdamW on one parameter, in place.
///
/// parameter: any layout but a Partial; gradient: the same type, so a sum that is still owed does not compile; state:
/// its moments. step: from 1. gradient_scale: multiplies the gradient first (see clip). Cost: one pass over four
/// arrays, no communication: replicas stay equal because they compute the same. Errors: different extents.
/// Source: Loshchilov, Hutter, "Decoupled Weight Decay Regularization", arXiv 1711.05101, with bias correction.
template <AnyTensor T>
  requires detail::is_accepted<detail::update_of<T, T>>
void adamw_step(T& parameter, const T& gradient, AdamWState<T>& state, std::uint64_t step, const AdamWOptions& options,
                double gradient_scale = 1.0) {
  detail::check_update(parameter, gradient, state);
  detail::update_elements(parameter, gradient, state, {options, step, gradient_scale}, 0, parameter.local().size());
}
template <AnyTensor T, AnyTensor G>
  requires(!detail::is_accepted<detail::update_of<T, G>>)
auto adamw_step(T& parameter, const G& gradient, AdamWState<T>& state, std::uint64_t step, const AdamWOptions& options,
                double gradient_scale = 1.0) -> detail::update_of<T, G>;

}  // namespace meshwise
