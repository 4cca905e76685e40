// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "meshwise/core/detail/pack.hpp"

namespace meshwise::detail {

/// out[i] = f(in[i]...) for i < n, in packs of the accumulate type; out may be one of the inputs.
template <class W, class E, class F, class... In>
[[gnu::always_inline]] inline void map_packs(W, E* out, std::size_t n, const F& f, const In*... in) {
  using P = typename W::template pack<accumulate_t<E>>;
  std::size_t i = 0;
  for (; n - i >= P::lanes; i += P::lanes) store(out + i, f(load<P>(in + i)...));
  if (i < n) store(out + i, f(load<P>(in + i, n - i)...), n - i);
}

/// Running values of a reduction, `bytes` of them in all whatever the width: enough for what an addition takes, and a
/// short chain of roundings. Combined in a fixed order, so that the result depends on n and the values alone.
template <class W, class A>
struct PackLanes {
  static constexpr std::size_t bytes = 128, lanes = bytes / sizeof(A);
  using P = typename W::template pack<A>;
  static constexpr std::size_t packs = lanes / P::lanes;

  /// combine(combine(start, value(...)), ...) over value(in[i]...) for i < n.
  template <class Combine, class F, class... In>
  [[gnu::always_inline]] static inline A reduce(std::size_t n, const P& start, const Combine& combine, const F& value,
                                                const In*... in) {
    P running[packs];
#pragma GCC unroll 8
    for (std::size_t j = 0; j < packs; ++j) running[j] = start;
    std::size_t i = 0;
    for (; n - i >= lanes; i += lanes) {
#pragma GCC unroll 8
      for (std::size_t j = 0; j < packs; ++j) {
        running[j] = combine(running[j], value(load<P>(in + i + j * P::lanes)...));
      }
    }
#pragma GCC unroll 8
    for (std::size_t j = 0; j < packs; ++j) {
      if (n - i >= P::lanes) {
        running[j] = combine(running[j], value(load<P>(in + i)...));
        i += P::lanes;
      } else if (i < n) {
        const P last = value(load<P>(in + i, n - i)...);
        running[j] = select(P::first(n - i), combine(running[j], last), running[j]);
        i = n;
      }
    }
#pragma GCC unroll 8
    for (std::size_t half = packs / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (std::size_t j = 0; j < half; ++j) running[j] = combine(running[j], running[j + half]);
    }
    // The lanes of one pack, folded by packs of one lane.
    using One = Pack<A, sizeof(A)>;
    One lane[P::lanes];
#pragma GCC unroll 8
    for (std::size_t k = 0; k < P::lanes; ++k) lane[k] = One(running[0].v[k]);
#pragma GCC unroll 8
    for (std::size_t half = P::lanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (std::size_t k = 0; k < half; ++k) lane[k] = combine(lane[k], lane[k + half]);
    }
    return lane[0].v[0];
  }
};

/// The sum of value(in[i]...) for i < n.
template <class A, class W, class F, class... In>
[[gnu::always_inline]] inline A sum_packs(W, std::size_t n, const F& value, const In*... in) {
  using P = typename W::template pack<A>;
  return PackLanes<W, A>::reduce(
      n, P(A(0)), [](const auto& a, const auto& b) { return a + b; }, value, in...);
}

/// The largest value(in[i]) for i < n, or `least` if none is larger; for values without NaN.
template <class A, class W, class F, class... In>
[[gnu::always_inline]] inline A max_packs(W, std::size_t n, A least, const F& value, const In*... in) {
  using P = typename W::template pack<A>;
  return PackLanes<W, A>::reduce(
      n, P(least), [](const auto& a, const auto& b) { return larger(a, b); }, value, in...);
}

/// What a loop over packs does with elements as they are.
struct Itself {
  template <class P>
  [[gnu::always_inline]] inline const P& operator()(const P& x) const {
    return x;
  }
};

}  // namespace meshwise::detail
