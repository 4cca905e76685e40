// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "meshwise/parallel/detail/flat_parameters.hpp"
#include "meshwise/parallel/detail/flat_sum.hpp"
#include "meshwise/tensor/accumulate.hpp"

namespace meshwise::detail {

/// The gradients of one unit on their way from sums that are owed to where the optimizer's state is.
///
/// Visits come in pairs of `scatter` and `land`; `settle` is once, after the last of them.
template <class Stage, class E>
class FlatGradients {
 public:
  using Line = grid_of<typename Stage::parameters>;
  using Owed = typename FlatSum<E, Line>::Owed;
  using Sum = Tensor<E, Dims<flat>, typename Stage::gradients>;
  using Own = Tensor<E, Dims<flat>, typename Stage::state>;

  /// Whether sums stay owed, so that nothing is sent until the last micro-batch.
  static constexpr bool stay_owed = std::is_same_v<Owed, Sum>;

  void add(const Line& mesh, const FlatPlaces& places, std::size_t piece, std::span<const E> gradient) {
    owed_.add(mesh, places.all(), piece, gradient);
  }

  /// Starts to bring what has come to where it is accumulated.
  void scatter(const Line& mesh, const FlatPlaces& places) {
    if constexpr (!stay_owed) {
      const CategoryScope scope(mesh.memory(), Category::gradients);
      bring(scattered_, owed_.take(mesh, places.all()));
    }
  }
  /// Waits for it, and adds it up.
  void land() {
    if constexpr (!stay_owed) {
      if (scattered_.empty()) return;
      if (sum_) {
        *sum_ += scattered_.take();
      } else {
        sum_.emplace(scattered_.take());
      }
    }
  }
  /// Starts to bring the sums to the optimizer's layout.
  void settle(const Line& mesh, const FlatPlaces& places) {
    const CategoryScope scope(mesh.memory(), Category::gradients);
    bring(own_, take_sum(mesh, places));
  }
  bool is_settled() const { return !own_.empty(); }
  const Own& get() { return own_.get(); }
  void reset() { own_.reset(); }
  void test() {
    scattered_.test();
    own_.test();
  }

 private:
  Sum take_sum(const Line& mesh, const FlatPlaces& places) {
    if constexpr (stay_owed) {
      return owed_.take(mesh, places.all());
    } else {
      Sum result = sum_ ? std::move(*sum_) : Sum(mesh, {places.size()});
      sum_.reset();
      return result;
    }
  }

  FlatSum<E, Line> owed_;
  InFlight<Sum> scattered_;
  std::optional<Sum> sum_;
  InFlight<Own> own_;
};

}  // namespace meshwise::detail
