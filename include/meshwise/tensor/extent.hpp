// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"

namespace meshwise {

/// The global size of one dim, and of one that is `Counted` the sizes of its parts: a number where they do not matter.
///
/// Cost: a copy shares the counts. Equal are extents with the same size and the same counts.
class Extent {
 public:
  Extent(std::size_t size = 0) noexcept : size_(size) {}  // NOLINT: extents are written as numbers

  /// The extent of a dim whose part k has counts[k] indices. Errors: counts whose sum does not fit 64 bits.
  static Extent of_parts(std::vector<std::size_t> counts) {
    Extent result;
    for (const std::size_t n : counts) {
      if (__builtin_add_overflow(result.size_, n, &result.size_)) {
        fail("Extent::of_parts", "counts whose sum fits 64 bits", std::to_string(n) + " as one of them",
             "a negative number makes a huge count");
      }
    }
    result.counts_ = std::make_shared<const std::vector<std::size_t>>(std::move(counts));
    return result;
  }

  operator std::size_t() const noexcept { return size_; }  // NOLINT: as above
  std::size_t size() const noexcept { return size_; }

  /// Whether it knows the sizes of parts.
  bool counted() const noexcept { return counts_ != nullptr; }
  /// The sizes of the parts, empty unless `counted`.
  std::span<const std::size_t> counts() const noexcept {
    return counts_ == nullptr ? std::span<const std::size_t>() : std::span<const std::size_t>(*counts_);
  }
  /// Forgets them.
  void drop_counts() noexcept {
    if (counts_ != nullptr) counts_.reset();
  }

  // A template, so that comparing with a number compares numbers.
  template <std::same_as<Extent> E>
  friend bool operator==(const E& a, const E& b) {
    if (a.size_ != b.size_ || a.counted() != b.counted()) return false;
    return a.counts_ == b.counts_ || *a.counts_ == *b.counts_;
  }

 private:
  std::size_t size_;
  std::shared_ptr<const std::vector<std::size_t>> counts_;
};

/// Global extents of a tensor, in the order of its Dims.
template <class D>
using Extents = std::array<Extent, static_cast<std::size_t>(D::rank)>;

}  // namespace meshwise
