// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace meshwise::test {

/// A small generator of numbers that every platform agrees on.
struct Dice {
  std::uint64_t state;

  int roll(int sides) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(sides));
  }
};

}  // namespace meshwise::test
