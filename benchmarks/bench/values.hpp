// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "elements.hpp"

namespace harness {

/// Bits that depend on who, where and which repetition, and look random: what is lost, late, doubled or in another's
/// place shows.
inline std::uint32_t bits_of(std::uint32_t seed, int rank, std::size_t index) {
  std::uint32_t h = static_cast<std::uint32_t>(index) * 0x9e3779b1U + static_cast<std::uint32_t>(rank) * 0x85ebca6bU +
                    seed * 0xc2b2ae35U + static_cast<std::uint32_t>(index >> 32);
  h ^= h >> 15;
  h *= 0x2c1b3c6dU;
  h ^= h >> 12;
  return h;
}

/// Element `index` of what a rank puts in: any integer, or a fraction in [-1/4, 3/4); to be multiplied, in [1/2, 3/2).
template <class T>
T value_of(std::uint32_t seed, int rank, std::size_t index, Redop redop) {
  const std::uint32_t bits = bits_of(seed, rank, index);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(sizeof(T) == 8 ? (std::uint64_t{bits} << 32 | (bits * 0x9e3779b1U)) : bits);
  } else {
    const float fraction = static_cast<float>(bits >> 8) * 0x1p-24F;
    return static_cast<T>(fraction + (redop == Redop::prod ? 0.5F : -0.25F));
  }
}

/// The type in which expected values are computed: wide enough that its own errors do not count, or one that wraps as
/// the integers do.
template <class T>
using Expected =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<sizeof(T) == 8 || std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_same_v<T, double>, long double, double>>;

template <class T>
Expected<T> widened(T value) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return static_cast<Expected<T>>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

template <class E>
E combined(E a, E b, Redop redop) {
  switch (redop) {
    case Redop::prod:
      if constexpr (std::is_integral_v<E>) {
        return static_cast<E>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      } else {
        return a * b;
      }
    case Redop::min: return b < a ? b : a;
    case Redop::max: return a < b ? b : a;
    default:
      if constexpr (std::is_integral_v<E>) {
        return static_cast<E>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      } else {
        return a + b;
      }
  }
}

/// The largest relative error of one rounding to T.
template <class T>
constexpr double rounding() {
  if constexpr (std::is_same_v<T, meshwise::bf16>) return 0x1p-8;
  if constexpr (std::is_same_v<T, meshwise::fp16>) return 0x1p-11;
  return std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
}

/// Whether a result is wrong. magnitude: the sum of the absolute values that were added up, or the absolute product: in
/// whatever order it is done, n contributions are rounded n times at most. Integers, minima and maxima are exact.
template <class T>
bool is_wrong(T found, Expected<T> expected, Expected<T> magnitude, int ranks, Redop redop) {
  if constexpr (std::is_integral_v<T>) {
    return found != static_cast<T>(expected);
  } else {
    if (ranks == 1 || redop == Redop::min || redop == Redop::max) return widened(found) != expected;
    const Expected<T> tiny = std::is_same_v<T, meshwise::fp16> ? 0x1p-24 : 0x1p-126;
    const Expected<T> bound = 1.01 * ranks * rounding<T>() * magnitude + tiny;
    return !(std::fabs(widened(found) - expected) <= bound);  // not a number is wrong
  }
}

}  // namespace harness
