// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "meshwise/core/detail/rounded.hpp"

namespace meshwise {

/// Philox4x32-10: 128 random bits as a bijection of the counter, chosen by the key.
///
/// Cost: 20 multiplications of 32 bits; no state. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as
/// easy as 1, 2, 3", SC 2011.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xd2511f53U} * counter[0];
    const std::uint64_t second = std::uint64_t{0xcd9e8d57U} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9e3779b9U;
    key[1] += 0xbb67ae85U;
  }
  return counter;
}

namespace detail {

/// The last word of the counter: what the block is used for, so that no two uses share one.
enum class RandomUse : std::uint32_t { bits, normal, seed, shuffle };

struct RandomPair {
  std::uint64_t even, odd;
};

/// 64 random bits each for the indices 2 * block and 2 * block + 1.
constexpr RandomPair random_pair(std::uint64_t seed, std::uint64_t block, RandomUse use) {
  const auto r = philox(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, static_cast<std::uint32_t>(use)},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return {(std::uint64_t{r[1]} << 32) | r[0], (std::uint64_t{r[3]} << 32) | r[2]};
}

template <class T>
constexpr T to_uniform(std::uint64_t bits) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "uniform numbers are float or double");
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(static_cast<std::int32_t>(bits >> 40)) * 0x1p-24F;
  } else {
    return static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-53;
  }
}

/// The natural logarithm of a normal positive number, by 2 atanh((m - 1) / (m + 1)) with m in [sqrt(1/2), sqrt(2)).
/// Written out, like the sine below, because a C library's results depend on its version and on the processor.
constexpr double log_of(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::int64_t exponent = static_cast<std::int64_t>(bits - 0x3fe6a09e667f3bcdULL) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double series = 1.0 / 21.0;
  for (int k = 19; k > 1; k -= 2) series = multiply_add(series, z, 1.0 / k);
  const double atanh = multiply_add(s * z, series, s);
  return multiply_add(static_cast<double>(exponent), 0x1.62e42fefa39efp-1, 2.0 * atanh);
}

struct SineCosine {
  double sine, cosine;
};

/// Sine and cosine of 2 pi u for u in [0, 1): Taylor series on the nearest quarter turn.
constexpr SineCosine sine_cosine_of_turns(double u) {
  const int quarter = static_cast<int>(multiply_add(u, 4.0, 0.5));
  const double a = multiply_add(u, 4.0, -static_cast<double>(quarter)) * 0x1.921fb54442d18p+0;
  const double z = a * a;
  double s = 1.0, c = 1.0;
  for (int k = 16; k > 0; k -= 2) {
    s = multiply_add(s * z, -1.0 / (k * (k + 1)), 1.0);
    c = multiply_add(c * z, -1.0 / (k * (k - 1)), 1.0);
  }
  s *= a;
  const double sine = quarter % 2 == 0 ? s : c;
  const double cosine = quarter % 2 == 0 ? c : -s;
  return quarter % 4 < 2 ? SineCosine{sine, cosine} : SineCosine{-sine, -cosine};
}

struct NormalPair {
  double even, odd;
};

inline NormalPair normal_pair(std::uint64_t seed, std::uint64_t block) {
  const RandomPair bits = random_pair(seed, block, RandomUse::normal);
  const double u = to_uniform<double>(bits.even) + 0x1p-53;  // in (0, 1]
  const double radius = __builtin_sqrt(-2.0 * log_of(u));
  const SineCosine angle = sine_cosine_of_turns(to_uniform<double>(bits.odd));
  return {radius * angle.cosine, radius * angle.sine};
}

}  // namespace detail

/// 64 random bits that depend on the seed and the index and on nothing else.
///
/// Every seed and every index is as good as any other, neighbours included. Give tensors the global index of an
/// element: then values do not depend on how it is split. Cost: one philox block, which two indices share.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  const detail::RandomPair pair = detail::random_pair(seed, index / 2, detail::RandomUse::bits);
  return index % 2 == 0 ? pair.even : pair.odd;
}

/// The seed of the stream with the given number: independent numbers for each use of one seed (a parameter, a dropout
/// site, an epoch). Streams of streams are allowed.
///
/// The mix is the first 64 bits of the philox block with key `seed` and counter (stream, 0, 2), which no other function
/// here uses: a bijection of neither argument, so that seeds meet by chance only (one pair in 2^64).
constexpr std::uint64_t stream_seed(std::uint64_t seed, std::uint64_t stream) {
  return detail::random_pair(seed, stream, detail::RandomUse::seed).even;
}

/// A number in [0, 1), uniform over multiples of 2^-24 (float) or 2^-53 (double), from the leading bits of
/// `random_bits(seed, index)`: the float is the double rounded down.
template <class T = double>
constexpr T uniform(std::uint64_t seed, std::uint64_t index) {
  return detail::to_uniform<T>(random_bits(seed, index));
}

/// A number from the normal distribution with mean 0 and variance 1; as float, the double rounded to nearest.
///
/// Indices 2k and 2k + 1 are the two results of one Box-Muller transform; |value| is at most 8.6. The bits are the same
/// on every processor. Cost: a philox block, a logarithm and a sine, about 50 ns.
template <class T = double>
inline T normal(std::uint64_t seed, std::uint64_t index) {
  static_assert(std::is_floating_point_v<T>, "normal numbers are float or double");
  const detail::NormalPair pair = detail::normal_pair(seed, index / 2);
  return static_cast<T>(index % 2 == 0 ? pair.even : pair.odd);
}

/// out[i] = random_bits(seed, first + i) for i < count, faster than one by one. Indices wrap modulo 2^64.
inline void fill_random_bits(std::uint64_t seed, std::uint64_t first, std::uint64_t* out, std::size_t count) {
  std::size_t i = 0;
  if (count > 0 && first % 2 == 1) out[i++] = random_bits(seed, first);
  for (; i + 2 <= count; i += 2) {
    const auto pair = detail::random_pair(seed, (first + i) / 2, detail::RandomUse::bits);
    out[i] = pair.even;
    out[i + 1] = pair.odd;
  }
  if (i < count) out[i] = random_bits(seed, first + i);
}

/// out[i] = uniform<T>(seed, first + i) for i < count, faster than one by one.
template <class T>
void fill_uniform(std::uint64_t seed, std::uint64_t first, T* out, std::size_t count) {
  std::uint64_t bits[64];
  for (std::size_t i = 0; i < count; i += 64) {
    const std::size_t n = count - i < 64 ? count - i : 64;
    fill_random_bits(seed, first + i, bits, n);
    for (std::size_t k = 0; k < n; ++k) out[i + k] = detail::to_uniform<T>(bits[k]);
  }
}

/// out[i] = normal<T>(seed, first + i) for i < count, in half the time of one by one.
template <class T>
void fill_normal(std::uint64_t seed, std::uint64_t first, T* out, std::size_t count) {
  std::size_t i = 0;
  if (count > 0 && first % 2 == 1) out[i++] = normal<T>(seed, first);
  for (; i + 2 <= count; i += 2) {
    const auto pair = detail::normal_pair(seed, (first + i) / 2);
    out[i] = static_cast<T>(pair.even);
    out[i + 1] = static_cast<T>(pair.odd);
  }
  if (i < count) out[i] = normal<T>(seed, first + i);
}

}  // namespace meshwise
