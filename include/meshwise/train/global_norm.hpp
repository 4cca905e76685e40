// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "meshwise/core/math.hpp"
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/train/detail/exact_sum.hpp"

namespace meshwise {

/// The norm over the distinct elements of many tensors: what gradient clipping and comparisons between layouts need.
///
/// `add` takes tensors that owe no sum, of any layouts on one mesh. A replicated element counts once: the squares of a
/// replicated tensor are kept by coordinate 0 only. Each square is rounded to double, which changes none of floats
/// of up to 32 bits, and their sum is exact: the norm has the same bits on every rank and in every layout, however
/// the elements are split, grouped and ordered. It is infinite or NaN if an element is (NaN if both occur). Cost: one
/// pass per tensor; `norm` is one all-reduce of 552 bytes over the mesh, however many tensors were added.
template <class Grid>
class GlobalNorm {
 public:
  /// What `norm` sums up over the ranks.
  static constexpr std::uint64_t bytes = detail::ExactSum::size * sizeof(std::uint64_t);

  explicit GlobalNorm(const Grid& mesh) : mesh_(mesh) {}

  template <AnyTensor T>
  requires detail::is_accepted<detail::map_of<T>> GlobalNorm& add(const T& x) {
    return counts_here<typename T::layout>(x.mesh()) ? add_elements(x.local()) : *this;
  }

  template <AnyTensor T>
    requires(!detail::is_accepted<detail::map_of<T>>)
  auto add(const T& x) -> detail::map_of<T>;

  /// Elements that only this rank counts, or of which it is the rank that does: of a flat bucket, say.
  template <Element E>
  GlobalNorm& add_elements(std::span<const E> elements) {
    const E* const in = elements.data();
    squares_.add(elements.size(), [in](std::size_t i) {
      const double v = static_cast<double>(in[i]);
      return v * v;
    });
    return *this;
  }

  /// sqrt of the sum of squares of everything added; the same bits on every rank. Collective over the mesh.
  double norm() const {
    using Squares = detail::ExactSum;
    return [&]<class... As>(detail::list<As...>) {
      Tensor<std::uint64_t, Dims<flat>, Layout<Grid, Partial<As>...>> owed(mesh_, {Squares::size});
      const Squares::Words words = squares_.words();
      std::memcpy(owed.mutable_local().data(), words.data(), sizeof words);
      const auto summed = convert<Replicate<As>...>(std::move(owed));
      return math::sqrt(Squares::value(summed.local().template first<Squares::size>()));
    }(typename Grid::axes{});
  }

 private:
  template <class L>
  static bool counts_here(const Grid& mesh) {
    return [&]<class... As>(detail::list<As...>) {
      return ((detail::placement_traits<detail::placement_on<L, As>>::shard || mesh.template coordinate<As>() == 0) &&
              ...);
    }(typename Grid::axes{});
  }

  Grid mesh_;
  detail::ExactSum squares_;
};

}  // namespace meshwise
