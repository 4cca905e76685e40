// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/tensor/dropout.hpp"

namespace meshwise {

/// Which elements of a T a dropout keeps, one byte for each.
template <AnyTensor T>
using DropoutMask = Tensor<std::uint8_t, typename detail::bare<T>::dims, typename detail::bare<T>::layout,
                           typename detail::bare<T>::space>;

/// The choice of `dropout(x, p, seed)`, to be kept instead of being drawn again: 1 for what stays, 0 for what goes.
///
/// x: for its mesh, extents and layout only; p, seed: as for dropout. Cost: one random number and one byte per element.
/// Errors: p outside of [0, 1).
template <AnyTensor T>
[[nodiscard]] DropoutMask<T> dropout_mask(const T& x, double p, std::uint64_t seed) {
  if (!(p >= 0.0 && p < 1.0)) {
    fail("dropout_mask", "a probability in [0, 1)", std::to_string(p), "0 drops nothing", x.mesh().world().rank());
  }
  DropoutMask<T> mask(x.mesh(), x.extents(), detail::uninitialised{});
  std::uint8_t* out = detail::written(mask);
  detail::for_each_run(mask, [&](std::size_t linear, std::size_t local, std::size_t run) {
    std::array<double, 64> u;
    for (std::size_t i = 0; i < run; i += u.size()) {
      const std::size_t n = run - i < u.size() ? run - i : u.size();
      fill_uniform(seed, linear + i, u.data(), n);
      for (std::size_t k = 0; k < n; ++k) out[local + i + k] = u[k] < p ? 0 : 1;
    }
  });
  return mask;
}

/// `dropout(x, p, seed)` with the mask that this p and seed give: the same bits without random numbers.
///
/// x: placed like the mask. Cost: one pass; in place as dropout. Errors: those of dropout; different extents.
template <AnyTensor T>
  requires detail::is_accepted<detail::map_of_reals<T>>
[[nodiscard]] auto dropout(T&& x, double p, const DropoutMask<T>& mask) {
  using X = detail::bare<T>;
  using E = typename X::element;
  using A = accumulate_t<E>;
  if (!(p >= 0.0 && p < 1.0)) {
    fail("dropout", "a probability in [0, 1)", std::to_string(p), "0 drops nothing", x.mesh().world().rank());
  }
  detail::check_operands("dropout", x, mask);
  const E* in = x.local().data();
  const std::uint8_t* stays = mask.local().data();
  const std::size_t n = x.local().size();
  const A scale = static_cast<A>(1.0 / (1.0 - p));
  auto result = detail::result_like<typename X::layout>(std::forward<T>(x));
  E* out = detail::written(result);
  for (std::size_t i = 0; i < n; ++i) {
    const E value = in[i];
    out[i] = stays[i] == 0 ? E(0) : static_cast<E>(static_cast<A>(value) * scale);
  }
  return result;
}

}  // namespace meshwise
