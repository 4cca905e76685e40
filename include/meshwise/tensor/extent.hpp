// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "meshwise/core/detail/shared.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/layout/refused.hpp"

namespace meshwise {

namespace detail {

/// The sizes of the parts of a dim.
struct PartSizes final : Counting {
  explicit PartSizes(std::vector<std::size_t> each) : sizes(std::move(each)) {}
  const std::vector<std::size_t> sizes;
};

}  // namespace detail

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
    result.counts_ = detail::Shared<detail::PartSizes>(new detail::PartSizes(std::move(counts)));
    return result;
  }

  operator std::size_t() const noexcept { return size_; }  // NOLINT: as above
  std::size_t size() const noexcept { return size_; }

  /// Whether it knows the sizes of parts.
  bool counted() const noexcept { return counts_ != nullptr; }
  /// The sizes of the parts, empty unless `counted`.
  std::span<const std::size_t> counts() const noexcept {
    return counts_ == nullptr ? std::span<const std::size_t>() : std::span<const std::size_t>(counts_->sizes);
  }
  /// Forgets them.
  void drop_counts() noexcept {
    if (counts_ != nullptr) counts_.reset();
  }

  // A template, so that comparing with a number compares numbers.
  template <std::same_as<Extent> E>
  friend bool operator==(const E& a, const E& b) {
    if (a.size_ != b.size_ || a.counted() != b.counted()) return false;
    return a.counts_ == b.counts_ || a.counts_->sizes == b.counts_->sizes;
  }

 private:
  std::size_t size_;
  detail::Shared<detail::PartSizes> counts_;
};

namespace detail {

template <std::size_t>
using extent_of_dim = Extent;

template <class Numbers>
struct ExtentsOf;
/// One extent for each dim: with fewer in braces an array would have the others be 0, and the tensor be empty.
template <std::size_t... is>
struct ExtentsOf<std::index_sequence<is...>> : std::array<Extent, sizeof...(is)> {
  ExtentsOf(extent_of_dim<is>... each) : std::array<Extent, sizeof...(is)>{std::move(each)...} {}  // NOLINT: braces
  explicit ExtentsOf(const std::array<Extent, sizeof...(is)>& all) : std::array<Extent, sizeof...(is)>(all) {}

  template <class Try = try_<give_one_extent_for_each_dim>, std::convertible_to<Extent>... Ns>
    requires(sizeof...(Ns) != sizeof...(is))
  ExtentsOf(Ns...)
  = delete;
};

}  // namespace detail

/// Global extents of a tensor, in the order of its Dims: `{4, 8}`. An array that is made of one extent for each dim.
template <class D>
using Extents = detail::ExtentsOf<std::make_index_sequence<static_cast<std::size_t>(D::rank)>>;

}  // namespace meshwise
