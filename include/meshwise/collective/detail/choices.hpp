// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/combination.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise::detail {

/// A schedule that a caller can name by its type alone.
template <class G>
concept NamedGenerator = Generator<G> && std::is_default_constructible_v<G>;

struct NoChoice {};

template <class... Choices>
struct ChosenCombination {
  using is = Sum;
};
template <class C, class... Choices>
struct ChosenCombination<C, Choices...> {
  using is = typename ChosenCombination<Choices...>::is;
};
template <Combination C, class... Choices>
struct ChosenCombination<C, Choices...> {
  using is = C;
};

template <class... Choices>
struct ChosenGenerator {
  using is = NoChoice;
};
template <class G, class... Choices>
struct ChosenGenerator<G, Choices...> {
  using is = typename ChosenGenerator<Choices...>::is;
};
template <NamedGenerator G, class... Choices>
struct ChosenGenerator<G, Choices...> {
  using is = G;
};

template <class... Choices>
using combination_in = typename ChosenCombination<Choices...>::is;
template <class... Choices>
using generator_in = typename ChosenGenerator<Choices...>::is;

template <class... Choices>
inline constexpr int generators_among = (0 + ... + (NamedGenerator<Choices> ? 1 : 0));
template <class... Choices>
inline constexpr int combinations_among = (0 + ... + (Combination<Choices> ? 1 : 0));

/// Template arguments of a collective that only copies: at most an algorithm.
template <class... Choices>
concept Copying = sizeof...(Choices) <= 1 && generators_among<Choices...> == static_cast<int>(sizeof...(Choices));

/// Template arguments of a collective that combines elements of T: an algorithm, a combination, or both.
template <class T, class... Choices>
concept Reducing = generators_among<Choices...>
<= 1 && combinations_among<Choices...> <= 1 &&
    generators_among<Choices...> + combinations_among<Choices...> == static_cast<int>(sizeof...(Choices)) &&
    Combines<combination_in<Choices...>, T>;

/// The same where not all ranks contribute to all results, so that there is no average.
template <class T, class... Choices>
concept Scanning = Reducing<T, Choices...> && !std::is_same_v<combination_in<Choices...>, Average>;

/// Joins a number to a hash. Source: the multiplication and shift of splitmix64.
constexpr std::uint64_t join_signature(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t hash = (seed ^ value) * 0x9e3779b97f4a7c15ULL;
  hash ^= hash >> 29;
  return (hash + value) * 0xbf58476d1ce4e5b9ULL;
}

constexpr std::uint64_t name_signature(const char* name) {
  std::uint64_t hash = 0;
  for (; *name != 0; ++name) hash = join_signature(hash, static_cast<unsigned char>(*name));
  return hash;
}

}  // namespace meshwise::detail
