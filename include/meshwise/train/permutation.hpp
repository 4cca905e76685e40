// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/core/random.hpp"

namespace meshwise {

/// The numbers below `count` in an order that depends on count and seed only: shuffling without a table.
///
/// A value of 3 KiB. Cost: making one draws its keys, a call is a philox block for each of 6 log2(count) + 8
/// rounds, 128 for a million. The bits are the same on every processor. Errors: a number not below count.
/// Source: the swap-or-not shuffle of Hoang, Morris, Rogaway, "An Enciphering Scheme Based on a Card Shuffle",
/// CRYPTO 2012.
class Permutation {
 public:
  Permutation(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(seed) {
    for (std::uint64_t left = count; left > 1; left -= left / 2) rounds_ += 6;
    const std::uint64_t keys = stream_seed(seed, 0);
    for (std::size_t r = 0; r < rounds_ && count != 0; ++r) keys_[r] = random_bits(keys, r) % count;
  }

  std::uint64_t count() const { return count_; }

  /// What stands at place `index`.
  std::uint64_t operator()(std::uint64_t index) const {
    if (index >= count_) {
      fail("Permutation", "a number below " + std::to_string(count_), std::to_string(index), "ask for those there are");
    }
    for (std::size_t r = 0; r < rounds_; ++r) {
      // Every key pairs the numbers up; a coin for each pair says whether the two change places.
      const std::uint64_t partner = keys_[r] >= index ? keys_[r] - index : keys_[r] + (count_ - index);
      const std::uint64_t pair = partner > index ? partner : index;
      const std::uint64_t block = static_cast<std::uint64_t>(r) << 48 ^ pair;
      if (detail::random_pair(seed_, block, detail::RandomUse::shuffle).even % 2 == 1) index = partner;
    }
    return index;
  }

 private:
  std::uint64_t count_, seed_;
  std::size_t rounds_ = 8;
  std::array<std::uint64_t, 8 + 6 * 64> keys_{};
};

}  // namespace meshwise
