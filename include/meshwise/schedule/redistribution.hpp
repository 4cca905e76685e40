// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/schedule/routes.hpp"

namespace meshwise {

/// What an exchange needs to know to bring a vector from one contiguous split to another.
struct Redistribution {
  Routes routes;
  std::vector<std::size_t> sizes;  ///< elements of each block, none empty

  friend constexpr bool operator==(const Redistribution&, const Redistribution&) = default;
};

namespace detail {

constexpr std::size_t elements_of(const std::vector<std::size_t>& counts, const char* which) {
  std::size_t sum = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] > std::numeric_limits<std::size_t>::max() - sum) {
      fail("routes_between", "counts whose sum fits 64 bits", std::string("more ") + which,
           "rank " + std::to_string(rank) + " with " + std::to_string(counts[rank]) + " elements is one too many");
    }
    sum += counts[rank];
  }
  return sum;
}

}  // namespace detail

/// The routes from one contiguous split of a vector to another: rank r has counts_before[r] elements, after those of
/// the ranks before it, and gets counts_after[r] of the same vector. Zero counts are ranks that hold or get nothing.
///
/// Blocks are the pieces between the cuts of both splits, numbered along the vector, so a rank's slots lie behind one
/// another in its memory, in order.
/// Cost: at most 2 ranks - 1 blocks, linear time. Errors: `invalid_argument` if the splits are not of as many ranks and
/// as many elements, or have more elements than 64 bits can count.
constexpr Redistribution routes_between(const std::vector<std::size_t>& counts_before,
                                        const std::vector<std::size_t>& counts_after) {
  if (counts_before.size() != counts_after.size()) {
    fail("routes_between", "a count after for each of " + std::to_string(counts_before.size()) + " ranks",
         std::to_string(counts_after.size()) + " counts", "give every rank a count before and after, 0 if it has none");
  }
  const std::size_t before = detail::elements_of(counts_before, "before");
  const std::size_t after = detail::elements_of(counts_after, "after");
  if (before != after) {
    fail("routes_between", std::to_string(before) + " elements after as before", std::to_string(after) + " elements",
         "both splits must be of the same vector");
  }
  std::vector<std::vector<int>> held(counts_before.size());
  std::vector<std::vector<int>> wanted(counts_after.size());
  std::vector<std::size_t> sizes;
  std::size_t giver = 0;
  std::size_t taker = 0;
  std::size_t given = 0;  // of the giver's elements
  std::size_t taken = 0;
  for (std::size_t done = 0; done < before; done += sizes.back()) {
    for (; given == counts_before[giver]; given = 0) ++giver;
    for (; taken == counts_after[taker]; taken = 0) ++taker;
    const std::size_t left = counts_before[giver] - given;
    const std::size_t missing = counts_after[taker] - taken;
    const std::size_t size = left < missing ? left : missing;
    held[giver].push_back(static_cast<int>(sizes.size()));
    wanted[taker].push_back(static_cast<int>(sizes.size()));
    sizes.push_back(size);
    given += size;
    taken += size;
  }
  const int blocks = static_cast<int>(sizes.size());
  Redistribution result;
  result.routes = Routes(blocks, std::move(held), std::move(wanted));
  result.sizes = std::move(sizes);
  return result;
}

}  // namespace meshwise
