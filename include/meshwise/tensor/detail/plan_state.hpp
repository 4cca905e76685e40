// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "meshwise/tensor/detail/conversion.hpp"
#include "meshwise/tensor/detail/run_dense.hpp"

namespace meshwise::detail {

/// What one rank holds while the plan of a conversion is carried out, and where it stands in its mesh.
class PlanState {
 protected:
  /// held: of each dim, before the first step.
  PlanState(const Conversion& conversion, const Range* held, LocalPiece piece)
      : c_(conversion), view_(conversion.view), seat_(view_), piece_(piece) {
    for (int d = 0; d < dims(); ++d) held_[number(d)] = held[d];
  }

  static constexpr std::size_t number(int i) { return static_cast<std::size_t>(i); }
  int dims() const { return c_.kind.plan.from.dims; }

  std::size_t product(const LocalShape& shape, int first, int last) const {
    std::size_t n = 1;
    for (int d = first; d < last; ++d) n *= shape[number(d)].size;
    return n;
  }
  std::size_t size_of(const LocalShape& shape) const { return product(shape, 0, dims()); }
  /// The sizes alone.
  struct Sizes {
    std::array<std::size_t, LayoutValue::most_dims> of{};
    std::size_t count = 0;
    operator std::span<const std::size_t>() const { return {of.data(), count}; }  // NOLINT: it is such a span
  };
  Sizes sizes(const LocalShape& shape) const {
    Sizes result;
    for (int d = 0; d < dims(); ++d) result.of[result.count++] = shape[number(d)].size;
    return result;
  }
  const std::byte* data() const { return piece_.data(c_); }

  const Conversion& c_;
  const GridView& view_;
  const Seat seat_;
  LocalPiece piece_;
  int step_ = 0;
  LocalShape held_{};
};

}  // namespace meshwise::detail
