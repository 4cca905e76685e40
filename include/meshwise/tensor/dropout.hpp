// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include "meshwise/core/random.hpp"
#include "meshwise/tensor/detail/walk.hpp"
#include "meshwise/tensor/generate.hpp"

namespace meshwise {

/// Sets each element to 0 with probability p and multiplies the others by 1/(1-p).
///
/// The choice is a function of (seed, global index): the same for every layout, equal on replicas, different on
/// different elements. It is linear in x, so a Partial sum is legal, and it is its own backward: dropout(dy, p, seed).
/// x: any layout; p in [0, 1), 0 changes nothing; seed: another one for each use and step. Cost: one pass and one
/// random number per element; an rvalue that shares its storage with nobody is written in place. Errors: p outside of
/// [0, 1); refused for integers and for a Partial of another reduction than Sum.
template <AnyTensor T>
  requires detail::is_accepted<detail::map_of_reals<T, true>>
[[nodiscard]] auto dropout(T&& x, double p, std::uint64_t seed) {
  using X = detail::bare<T>;
  using E = typename X::element;
  using A = accumulate_t<E>;
  if (!(p >= 0.0 && p < 1.0)) {
    fail("dropout", "a probability in [0, 1)", std::to_string(p), "0 drops nothing", x.mesh().world().rank());
  }
  if (p == 0.0) return X(std::forward<T>(x));
  const E* in = x.local().data();
  auto result = detail::result_like<typename X::layout>(std::forward<T>(x));
  E* out = detail::written(result);
  const A scale = static_cast<A>(1.0 / (1.0 - p));
  detail::for_each_run(result, [&](std::size_t linear, std::size_t local, std::size_t run) {
    std::array<double, 64> u;
    for (std::size_t i = 0; i < run; i += u.size()) {
      const std::size_t n = run - i < u.size() ? run - i : u.size();
      fill_uniform(seed, linear + i, u.data(), n);
      for (std::size_t k = 0; k < n; ++k) {
        const E value = in[local + i + k];
        out[local + i + k] = u[k] < p ? E(0) : static_cast<E>(static_cast<A>(value) * scale);
      }
    }
  });
  return result;
}
template <AnyTensor T>
  requires(!detail::is_accepted<detail::map_of_reals<T, true>>)
[[nodiscard]] auto dropout(T&& x, double p, std::uint64_t seed) -> detail::map_of_reals<T, true>;

}  // namespace meshwise
