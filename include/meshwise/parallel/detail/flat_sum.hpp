// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/core/split.hpp"
#include "meshwise/parallel/detail/data_axes.hpp"
#include "meshwise/tensor/elementwise.hpp"

namespace meshwise::detail {

/// Gradients that come one by one and are added up, one behind the other, in one flat tensor that owes a sum over Line.
///
/// Its memory is allocated when the first one comes, counted as gradients. What never comes counts as zero.
template <class E, class Line>
class FlatSum {
 public:
  using Owed = Tensor<E, Dims<flat>, owed_on<Line>>;

  /// Adds a gradient of one of the pieces. places: where all of them lie.
  void add(const Line& mesh, const std::vector<Range>& places, std::size_t piece, std::span<const E> gradient) {
    if (!sum_) {
      const CategoryScope scope(mesh.memory(), Category::gradients);
      sum_.emplace(mesh, Extents<Dims<flat>>{places.empty() ? 0 : places.back().end()}, uninitialised{});
      come_.assign(places.size(), false);
    }
    E* const out = written(*sum_) + places[piece].begin;
    if (!come_[piece]) {
      if (!gradient.empty()) std::memcpy(static_cast<void*>(out), gradient.data(), gradient.size_bytes());
      come_[piece] = true;
    } else {
      for (std::size_t i = 0; i < gradient.size(); ++i) out[i] = Plus{}(out[i], gradient[i]);
    }
  }

  bool empty() const { return !sum_; }

  /// The sums, and nothing is kept.
  Owed take(const Line& mesh, const std::vector<Range>& places) {
    if (!sum_) {
      const CategoryScope scope(mesh.memory(), Category::gradients);
      return Owed(mesh, {places.empty() ? 0 : places.back().end()});
    }
    E* const out = written(*sum_);
    for (std::size_t i = 0; i < places.size() && sum_->storage().backed(); ++i) {
      if (!come_[i]) fill(out + places[i].begin, places[i].size, E{});
    }
    Owed result = std::move(*sum_);
    sum_.reset();
    return result;
  }

 private:
  std::optional<Owed> sum_;
  List<bool> come_;
};

}  // namespace meshwise::detail
