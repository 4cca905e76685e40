// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise::detail {

/// A tensor in storage of its own size: a part of a larger block lets go of the rest. Cost: a copy if it is one.
template <class T>
T compact(T x) {
  const std::size_t bytes = elements_before(x, T::rank) * sizeof(typename T::element);
  if (x.storage().bytes() == bytes) return x;
  T copy(x.mesh(), x.extents(), uninitialised{});
  const auto elements = x.local();
  if (!elements.empty()) std::memcpy(static_cast<void*>(written(copy)), elements.data(), bytes);
  return copy;
}

}  // namespace meshwise::detail
