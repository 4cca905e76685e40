// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace meshwise::detail {

// What the library needs of <algorithm>, which costs a compiler as much as ten of its own headers. Elements and
// Numbers: a std::vector, a List or the like.

template <class T>
constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T larger(T a, T b) {
  return a < b ? b : a;
}

template <class T>
constexpr void fill(T* out, std::size_t count, T value) {
  for (std::size_t i = 0; i < count; ++i) out[i] = value;
}

/// The place of the first element that does not come before something else, by bisection; all that do are in front.
template <class Elements, class Before>
constexpr std::size_t first_not_before(const Elements& elements, Before before) {
  std::size_t low = 0;
  for (std::size_t high = elements.size(); low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (before(elements[middle])) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Whether each number is larger than the one before.
template <class Numbers>
constexpr bool ascending(const Numbers& numbers) {
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] <= numbers[i - 1]) return false;
  }
  return true;
}

/// Whether ascending numbers are all among others, which ascend too.
template <class Numbers>
constexpr bool all_among(const Numbers& some, const Numbers& all) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < some.size(); ++i, ++at) {
    while (at < all.size() && all[at] < some[i]) ++at;
    if (at == all.size() || some[i] < all[at]) return false;
  }
  return true;
}

}  // namespace meshwise::detail
