// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/tensor/elementwise.hpp"

namespace meshwise {

namespace detail {

/// a = f(a, b), element by element, where a is; b is repeated over the dims it lacks.
template <class A, class B, class F>
void accumulate_local(const char* verb, A& a, const B& b, const F& f) {
  check_operands(verb, a, b);
  auto* out = a.mutable_local().data();  // before b is looked at, which may be a
  const auto* in = b.local().data();
  combine_walk(walk_beside<typename B::dims>(a), out, in, out, f);
}

}  // namespace detail

/// Adds b to a in place; b may have fewer dims (see zip).
///
/// Both owe the same sum over an axis, or neither does: a `Partial` accumulates unreduced, as the gradients of several
/// micro-batches do. Cost: one pass; a copy of a's piece if its storage is shared, so that no other tensor sees the
/// sum. b may be a. Errors: refused for a Partial beside a value that owes nothing, for reductions other than sums and
/// for other layouts; different extents.
template <class E, class D, class L, class S, AnyTensor B>
  requires detail::is_accepted<detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>>
      Tensor<E, D, L, S>
&operator+=(Tensor<E, D, L, S>& a, const B& b) {
  detail::accumulate_local("operator+=", a, b, detail::Plus{});
  return a;
}
template <class E, class D, class L, class S, AnyTensor B>
  requires(!detail::is_accepted<detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>>)
auto operator+=(Tensor<E, D, L, S>& a, const B& b)
    -> detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>;

/// Subtracts b from a in place; rules as operator+=.
template <class E, class D, class L, class S, AnyTensor B>
  requires detail::is_accepted<detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>>
      Tensor<E, D, L, S>
&operator-=(Tensor<E, D, L, S>& a, const B& b) {
  detail::accumulate_local("operator-=", a, b, detail::Minus{});
  return a;
}
template <class E, class D, class L, class S, AnyTensor B>
  requires(!detail::is_accepted<detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>>)
auto operator-=(Tensor<E, D, L, S>& a, const B& b)
    -> detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>;

}  // namespace meshwise
