// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "meshwise/tensor/detail/walk.hpp"
#include "meshwise/tensor/generate.hpp"
#include "meshwise/tensor/replicas.hpp"

namespace meshwise {

namespace detail {

template <class T>
using from_global_of = typename tensor_traits<T>::verdict;

/// A tensor for values that are known everywhere, and whether this rank is the one to hold them: where a sum is owed
/// coordinate 0 does, and the others have the identity already.
template <class T>
std::pair<T, bool> receiver(const typename T::grid& mesh, const Extents<typename T::dims>& extents) {
  using Owed = owed_reduction<typename T::layout>;
  T result(mesh, extents, uninitialised{});
  bool holds = true;
  if constexpr (!std::is_void_v<Owed>) {
    for (int a = 0; a < T::layout_as_value.axes; ++a) {
      holds = holds && (!T::layout_as_value.is(a, PlacementKind::partial) || mesh.view().coordinate(a) == 0);
    }
    if (!holds) {
      fill_identity<typename T::element, Owed>(reinterpret_cast<std::byte*>(written(result)), result.local().size());
    }
  }
  return {std::move(result), holds};
}

}  // namespace detail

/// A tensor of a whole array that every rank has: each keeps what the layout gives it.
///
/// T: the tensor type, any layout; of a Partial coordinate 0 keeps the values and the others hold the identity.
/// extents: global, with counts where a dim is Counted. whole: all elements in row-major order, the same on all ranks
/// (communicating checks compare replicas of what is kept). Cost: one allocation, one copy of the own piece, no
/// communication but for such checks. Errors: an array of another size than the extents have.
template <AnyTensor T>
T from_global(const typename T::grid& mesh, const Extents<typename T::dims>& extents,
              std::span<const typename T::element> whole) {
  auto [result, holds] = detail::receiver<T>(mesh, extents);
  if (whole.size() != result.size()) {
    try {
      fail("from_global", std::to_string(result.size()) + " elements, the product of the extents",
           std::to_string(whole.size()) + " elements", "pass the whole array on every rank, or a piece of it to assume",
           mesh.world().rank());
    } catch (const Error& error) {
      const detail::TensorFacts facts = detail::facts_of(result);
      detail::tell_others("from_global", facts, detail::replicated_axes(facts), error);
      throw;
    }
  }
  if (!holds) return std::move(result);
  auto* const out = detail::written(result);
  detail::for_each_run(result, [&](std::size_t linear, std::size_t local, std::size_t count) {
    std::memcpy(out + local, whole.data() + linear, count * sizeof(typename T::element));
  });
  detail::check_replicas_if_asked("from_global", result);
  return std::move(result);
}

/// The same of a function of the global index, `Index<Dims> -> element`: as `generate`, and Partials too.
template <AnyTensor T, class F>
  requires requires(const F& f, const Index<typename detail::bare<T>::dims>& index) { f(index); }
T from_global(const typename T::grid& mesh, const Extents<typename T::dims>& extents, const F& f) {
  auto [result, holds] = detail::receiver<T>(mesh, extents);
  if (!holds) return std::move(result);
  auto* const out = detail::written(result);
  detail::for_each_index(result, [&](const Index<typename T::dims>& index, std::size_t local) {
    out[local] = static_cast<typename T::element>(f(index));
  });
  detail::check_replicas_if_asked("from_global", result);
  return std::move(result);
}

template <class T, class Grid, class Data>
  requires(!detail::is_accepted<detail::from_global_of<T>>)
auto from_global(const Grid& mesh, const Extents<typename detail::tensor_traits<T>::dims>& extents, const Data& whole)
    -> detail::from_global_of<T>;

}  // namespace meshwise
