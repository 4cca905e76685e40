// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "meshwise/core/detail/list.hpp"

namespace meshwise::detail {

/// Sorts stably, in n log n steps; `before(a, b)` says whether a has to come before b. A merge of longer and longer
/// runs: a tenth of what std::sort costs a compiler for every type and every order.
template <class T, class Before>
constexpr void sort_stably(T* first, T* last, Before before) {
  const auto size = static_cast<std::size_t>(last - first);
  List<T> other(size);
  T* from = first;
  T* to = other.data();
  for (std::size_t run = 1; run < size; run *= 2) {
    for (std::size_t begin = 0; begin < size; begin += 2 * run) {
      const std::size_t middle = size - begin < run ? size : begin + run;
      const std::size_t end = size - middle < run ? size : middle + run;
      std::size_t left = begin;
      std::size_t right = middle;
      for (std::size_t i = begin; i < end; ++i) {
        const bool take_right = left == middle || (right < end && before(from[right], from[left]));
        to[i] = std::move(from[take_right ? right++ : left++]);
      }
    }
    T* const merged = to;
    to = from;
    from = merged;
  }
  if (from == first) return;
  for (std::size_t i = 0; i < size; ++i) first[i] = std::move(from[i]);
}

/// Sorts numbers and leaves each of them once. Numbers: a std::vector or a List.
template <class Numbers>
constexpr void sort_and_unite(Numbers& numbers) {
  sort_stably(numbers.data(), numbers.data() + numbers.size(), [](auto a, auto b) { return a < b; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i == 0 || numbers[i] != numbers[kept - 1]) numbers[kept++] = numbers[i];
  }
  while (numbers.size() > kept) numbers.pop_back();
}

}  // namespace meshwise::detail
