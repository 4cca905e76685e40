// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/tensor/detail/verdicts.hpp"

namespace meshwise {

/// The number that a tensor without dims is: the safe way to read a loss.
///
/// x: `Dims<>`, no Partial. Cost: none. Errors: refused for a Partial, whose pieces are not its value: convert it.
template <AnyTensor T>
  requires(detail::bare<T>::rank == 0 && detail::is_accepted<detail::map_of<T>>)
[[nodiscard]] auto value(const T& x) { return x.local()[0]; }
template <AnyTensor T>
  requires(detail::bare<T>::rank == 0 && !detail::is_accepted<detail::map_of<T>>)
auto value(const T& x) -> detail::map_of<T>;

}  // namespace meshwise
