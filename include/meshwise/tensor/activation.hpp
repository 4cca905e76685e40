// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/core/detail/pack_math.hpp"
#include "meshwise/tensor/elementwise.hpp"

namespace meshwise {

namespace detail {

/// x/2 (1 + tanh u) is x times a logistic function of 2u, with u = sqrt(2/pi) (x + 0.044715 x^3): one exponential.
template <class A>
struct Gelu {
  static constexpr A twice = static_cast<A>(2 * 0.79788456080286535588);
  static constexpr A cubic = static_cast<A>(0.044715);

  // x: a number or a pack of them.
  template <class X>
  static X logistic_of(const X& x) {
    return X(A(1)) / (X(A(1)) + math::exp(X(-twice) * (x + X(cubic) * x * x * x)));
  }
  template <class X>
  static X slope(const X& x) {
    const X s = logistic_of(x);
    return s + x * s * (X(A(1)) - s) * X(twice) * (X(A(1)) + X(A(3) * cubic) * x * x);
  }
};

template <class A>
struct GeluGradient {
  static constexpr bool has_packs = true;
  template <class P>
  P of_packs(const P& g, const P& x) const {
    return g * Gelu<A>::slope(x);
  }
};

/// The verdict on the gradient G of an activation at X.
template <class G, class X>
consteval auto activation_backward_verdict() {
  using argument = map_of_reals<X>;
  if constexpr (!is_accepted<argument>) {
    return type<argument>{};
  } else {
    return tensors_verdict<G, X, Combining::multiplicative>();
  }
}
template <class G, class X>
using activation_backward_of = typename decltype(activation_backward_verdict<operand<G>, operand<X>>())::is;

}  // namespace detail

/// Gaussian error linear unit in its tanh form, element by element.
///
/// x: any layout but a Partial. Cost: one pass; an rvalue that shares its storage with nobody is written in place.
/// Errors: refused for integers, and for a Partial: GELU of a sum is not the sum of GELUs.
/// Source: Hendrycks, Gimpel, "Gaussian Error Linear Units", arXiv 1606.08415.
template <AnyTensor T>
  requires detail::is_accepted<detail::map_of_reals<T>>
[[nodiscard]] auto gelu(T&& x) {
  using E = typename detail::bare<T>::element;
  using A = accumulate_t<E>;
  return detail::map_packs_of(std::forward<T>(x), [](const auto& p) { return p * detail::Gelu<A>::logistic_of(p); });
}
template <AnyTensor T>
  requires(!detail::is_accepted<detail::map_of_reals<T>>)
[[nodiscard]] auto gelu(T&& x) -> detail::map_of_reals<T>;

/// The gradient at x of what follows gelu(x), given the gradient at gelu(x): dy * gelu'(x).
///
/// dy: placed like x, or a Partial sum where x is replicated (it is linear in dy); x: the argument that gelu had. Cost
/// and errors as operator*.
template <AnyTensor G, AnyTensor X>
  requires detail::is_accepted<detail::activation_backward_of<G, X>>
[[nodiscard]] auto gelu_backward(G&& dy, const X& x) {
  return detail::zip_local<typename detail::activation_backward_of<G, X>::is>(
      "gelu_backward", std::forward<G>(dy), x, detail::GeluGradient<accumulate_t<typename X::element>>{});
}
template <AnyTensor G, AnyTensor X>
  requires(!detail::is_accepted<detail::activation_backward_of<G, X>>)
[[nodiscard]] auto gelu_backward(G&& dy, const X& x) -> detail::activation_backward_of<G, X>;

/// max(x, 0), element by element; NaN stays.
///
/// x, cost and errors: as gelu.
template <AnyTensor T>
  requires detail::is_accepted<detail::map_of_reals<T>>
[[nodiscard]] auto relu(T&& x) {
  using E = typename detail::bare<T>::element;
  using A = accumulate_t<E>;
  return map([](E value) { return static_cast<A>(value) < A(0) ? E(0) : value; }, std::forward<T>(x));
}
template <AnyTensor T>
  requires(!detail::is_accepted<detail::map_of_reals<T>>)
[[nodiscard]] auto relu(T&& x) -> detail::map_of_reals<T>;

/// The gradient at x of what follows relu(x): dy where x > 0, else 0.
///
/// dy: as for gelu_backward; x: the argument that relu had, or what it gave. Cost and errors as operator*.
template <AnyTensor G, AnyTensor X>
  requires detail::is_accepted<detail::activation_backward_of<G, X>>
[[nodiscard]] auto relu_backward(G&& dy, const X& x) {
  using E = typename X::element;
  using A = accumulate_t<E>;
  return detail::zip_local<typename detail::activation_backward_of<G, X>::is>(
      "relu_backward", std::forward<G>(dy), x, [](E g, E value) { return static_cast<A>(value) > A(0) ? g : E(0); });
}
template <AnyTensor G, AnyTensor X>
  requires(!detail::is_accepted<detail::activation_backward_of<G, X>>)
[[nodiscard]] auto relu_backward(G&& dy, const X& x) -> detail::activation_backward_of<G, X>;

}  // namespace meshwise
