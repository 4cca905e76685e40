// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/value.hpp"

namespace meshwise {

/// Whether all elements of many tensors, on all ranks, are numbers: neither infinite nor NaN.
///
/// `add` takes tensors that owe no sum, of any layouts on one mesh: whether a sum overflows is known once it is taken.
/// Where a GlobalNorm of the same tensors is made anyway, ask whether that is finite instead: it costs nothing more.
/// Cost: one pass per tensor; `agreed` is one all-reduce (maximum) of 4 bytes over the mesh, however many were added.
template <class Grid>
class AllFinite {
 public:
  explicit AllFinite(const Grid& mesh) : mesh_(mesh) {}

  template <AnyTensor T>
  requires detail::is_accepted<detail::map_of<T>> AllFinite& add(const T& x) { return add_elements(x.local()); }
  template <AnyTensor T>
    requires(!detail::is_accepted<detail::map_of<T>>)
  auto add(const T& x) -> detail::map_of<T>;

  /// Elements of a flat bucket, say.
  template <Element E>
  AllFinite& add_elements(std::span<const E> elements) {
    using A = accumulate_t<E>;
    std::uint32_t bad = 0;
    for (const E& element : elements) {
      const A x = static_cast<A>(element);
      bad |= static_cast<std::uint32_t>(!(x - x == A(0)));
    }
    bad_ |= bad;
    return *this;
  }

  /// The answer, the same on every rank; without gradients it is yes. Collective over the mesh.
  bool agreed() const {
    return [&]<class... As>(detail::list<As...>) {
      Tensor<std::uint32_t, Dims<>, Layout<Grid, Partial<As, Max>...>> found(mesh_, {});
      found.mutable_local()[0] = bad_;
      return value(convert<Replicate<As>...>(std::move(found))) == 0;
    }(typename Grid::axes{});
  }

 private:
  Grid mesh_;
  std::uint32_t bad_ = 0;
};

}  // namespace meshwise
