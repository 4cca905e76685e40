// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "meshwise/tensor/norm.hpp"

namespace meshwise {

/// The norm over the distinct elements of many tensors: what gradient clipping and comparisons between layouts need.
///
/// `add` takes tensors that owe no sum, of any layouts on one mesh. A replicated element counts once: the squares of a
/// replicated tensor are kept by coordinate 0 only. Sums are in double. Cost: one pass per tensor; `norm` is one
/// all-reduce of a double over the mesh, however many tensors were added.
template <class Grid>
class GlobalNorm {
 public:
  explicit GlobalNorm(const Grid& mesh) : squares_(mesh, {}) {}

  template <AnyTensor T>
  requires detail::is_accepted<detail::map_of<T>> GlobalNorm& add(const T& x) {
    const double local = detail::local_squares(x);
    if (counts_here<typename T::layout>(x.mesh())) squares_.mutable_local()[0] += local;
    return *this;
  }

  template <AnyTensor T>
    requires(!detail::is_accepted<detail::map_of<T>>)
  auto add(const T& x) -> detail::map_of<T>;

  /// sqrt of the sum of squares of everything added; the same bits on every rank.
  double norm() const { return std::sqrt(value(settled(typename Grid::axes{}))); }

 private:
  template <class L>
  static bool counts_here(const Grid& mesh) {
    return [&]<class... As>(detail::list<As...>) {
      return ((detail::placement_traits<detail::placement_on<L, As>>::shard || mesh.template coordinate<As>() == 0) &&
              ...);
    }(typename Grid::axes{});
  }
  template <class... As>
  auto settled(detail::list<As...>) const {
    return convert<Replicate<As>...>(squares_);
  }
  template <class List>
  struct owed_everywhere;
  template <class... As>
  struct owed_everywhere<detail::list<As...>> {
    using is = Layout<Grid, Partial<As>...>;
  };

  Tensor<double, Dims<>, typename owed_everywhere<typename Grid::axes>::is> squares_;
};

}  // namespace meshwise
