// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "meshwise/core/positions.hpp"

namespace meshwise::detail {

/// Turns global indices into local ones; quick where the indices held are a range.
class LocalPlaces {
 public:
  explicit LocalPlaces(Positions positions)
      : all_(std::move(positions)), range_(all_.range()), plain_(all_.is_range()) {}

  std::size_t size() const { return all_.size(); }
  /// The local index of a global one; at least size() if it is not held here.
  std::size_t of(std::size_t index) const {
    if (plain_) return index - range_.begin;  // wraps to something large below the range
    return all_.find(index);
  }

 private:
  Positions all_;
  Range range_;
  bool plain_;
};

}  // namespace meshwise::detail
