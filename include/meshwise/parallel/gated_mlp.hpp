// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "meshwise/core/math.hpp"
#include "meshwise/parallel/block_form.hpp"
#include "meshwise/tensor/take.hpp"

namespace meshwise {

/// The two parts of the first layer of a gated MLP, gate and up, as a dim of its weight: `Dims<hidden, gate_and_up,
/// ffn>` with `Shard<ffn, tp>`. Each part is split by itself, so that every rank has the gate of its own features, and
/// the gathered weight does not depend on the ranks; both are one matrix product.
struct gate_and_up : dim {};

namespace detail {

template <class H>
consteval auto swiglu_verdict() {
  using verdict = take_one_of<H, gate_and_up>;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else if constexpr (!is_accepted<map_of_reals<typename verdict::is>>) {
    return type<map_of_reals<typename verdict::is>>{};
  } else {
    return type<verdict>{};
  }
}
template <class H>
using swiglu_of = typename decltype(swiglu_verdict<operand<H>>())::is;

template <class G, class H>
consteval auto swiglu_backward_verdict() {
  using verdict = swiglu_of<H>;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else {
    return alike_verdict<G, typename verdict::is>();
  }
}
template <class G, class H>
using swiglu_backward_of = typename decltype(swiglu_backward_verdict<operand<G>, operand<H>>())::is;

/// Where gate and up lie in a local piece: f(first of a gate, first of its up, first of the result, how many).
template <class H, class F>
void each_gated_run(const char* verb, const H& h, const F& f) {
  constexpr std::size_t d = dim_index<gate_and_up, H>;
  if (h.extents()[d] != 2) {
    fail(verb, "two parts, gate and up", std::to_string(h.extents()[d].size()), "make the weight with 2 parts",
         h.mesh().world().rank());
  }
  const std::size_t outside = elements_before(h, d), inside = elements_after(h, d);
  for (std::size_t o = 0; o < outside; ++o) f(2 * o * inside, (2 * o + 1) * inside, o * inside, inside);
}

template <class A>
A logistic(A x) {
  return A(1) / (A(1) + math::exp(-x));
}

}  // namespace detail

/// silu(gate) * up, where silu(x) = x / (1 + exp(-x)): the two parts of h along gate_and_up.
///
/// h: any layout that does not shard gate_and_up and is no Partial. Result: h without that dim. Cost: one pass, one
/// allocation. Errors: another extent of gate_and_up than 2; refused for integers and a Partial.
/// Source: Shazeer, "GLU Variants Improve Transformer", arXiv 2002.05202.
template <AnyTensor H>
  requires detail::is_accepted<detail::swiglu_of<H>>
[[nodiscard]] auto swiglu(const H& h) {
  using Result = typename detail::swiglu_of<H>::is;
  using E = typename H::element;
  using A = accumulate_t<E>;
  Result result(h.mesh(), detail::extents_from<typename Result::dims>(h), detail::uninitialised{});
  const E* in = h.local().data();
  E* out = detail::written(result);
  detail::each_gated_run("swiglu", h, [&](std::size_t gate, std::size_t up, std::size_t to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const A x = static_cast<A>(in[gate + i]);
      out[to + i] = static_cast<E>(x * detail::logistic(x) * static_cast<A>(in[up + i]));
    }
  });
  return result;
}
template <AnyTensor H>
  requires(!detail::is_accepted<detail::swiglu_of<H>>)
[[nodiscard]] auto swiglu(const H& h) -> detail::swiglu_of<H>;

/// The gradient at h of what follows swiglu(h).
///
/// du: placed like swiglu(h). Result: like h. Cost and errors: as swiglu.
template <AnyTensor G, AnyTensor H>
  requires detail::is_accepted<detail::swiglu_backward_of<G, H>>
[[nodiscard]] auto swiglu_backward(const G& du, const H& h) {
  using E = typename H::element;
  using A = accumulate_t<E>;
  detail::check_operands("swiglu_backward", h, du);
  H result(h.mesh(), h.extents(), detail::uninitialised{});
  const E* in = h.local().data();
  const E* grad = du.local().data();
  E* out = detail::written(result);
  detail::each_gated_run("swiglu_backward", h, [&](std::size_t gate, std::size_t up, std::size_t at, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const A x = static_cast<A>(in[gate + i]), g = static_cast<A>(grad[at + i]);
      const A s = detail::logistic(x);
      out[gate + i] = static_cast<E>(g * static_cast<A>(in[up + i]) * s * (A(1) + x * (A(1) - s)));
      out[up + i] = static_cast<E>(g * x * s);
    }
  });
  return result;
}
template <AnyTensor G, AnyTensor H>
  requires(!detail::is_accepted<detail::swiglu_backward_of<G, H>>)
[[nodiscard]] auto swiglu_backward(const G& du, const H& h) -> detail::swiglu_backward_of<G, H>;

/// A gated MLP with SwiGLU, for BlockShape::mlp: one product for gate and up.
struct GatedMlp {
  using weight_dims = Dims<hidden, gate_and_up, ffn>;
  using bias_dims = Dims<gate_and_up, ffn>;

  template <class H>
  static auto forward(const H& h) {
    return swiglu(h);
  }
  template <class G, class H>
  static auto backward(const G& du, const H& h) {
    return swiglu_backward(du, h);
  }
};

}  // namespace meshwise
