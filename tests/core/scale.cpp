// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/scale.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "meshwise/core/random.hpp"

using namespace meshwise;

namespace {

constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000, 65537};

template <class T>
std::vector<T> draw(std::size_t count, std::uint64_t seed) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random_bits(seed, i);
    if constexpr (std::is_integral_v<T>) {
      values[i] = static_cast<T>(bits);
    } else {
      values[i] = T((static_cast<double>(bits >> 11) * 0x1p-53 - 0.5) * 8.0);
    }
  }
  return values;
}

/// Runs `kernel(count, from, to)` out of place at odd addresses with guards, then in place, against `expected`.
template <class T, class Kernel>
void check(const std::vector<T>& input, const std::vector<T>& expected, const Kernel& kernel) {
  const std::size_t bytes = input.size() * sizeof(T);
  std::vector<unsigned char> from(bytes + 3), to(bytes + 65, 0xa5);
  if (bytes > 0) std::memcpy(from.data() + 3, input.data(), bytes);
  const std::vector<unsigned char> before = from;
  kernel(input.size(), from.data() + 3, to.data() + 1);
  REQUIRE((bytes == 0 || std::memcmp(to.data() + 1, expected.data(), bytes) == 0));
  REQUIRE(to[0] == 0xa5);
  for (std::size_t i = bytes + 1; i < to.size(); ++i) REQUIRE(to[i] == 0xa5);
  REQUIRE(from == before);
  kernel(input.size(), from.data() + 3, from.data() + 3);
  REQUIRE((bytes == 0 || std::memcmp(from.data() + 3, expected.data(), bytes) == 0));
}

template <class T>
T scaled(T x, double factor) {
  if constexpr (std::is_integral_v<T>) {
    const std::uint64_t whole =
        factor < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(factor)) : static_cast<std::uint64_t>(factor);
    return static_cast<T>(static_cast<std::uint64_t>(x) * whole);
  } else {
    using A = accumulate_t<T>;
    return static_cast<T>(static_cast<A>(x) * static_cast<A>(factor));
  }
}

std::vector<detail::Isa> isas() {
  std::vector<detail::Isa> all = {detail::Isa::baseline};
  if (detail::best_isa() != detail::Isa::baseline) all.push_back(detail::Isa::avx2);
  if (detail::best_isa() == detail::Isa::avx512) all.push_back(detail::Isa::avx512);
  return all;
}

template <class T>
T divided(T x, int ranks) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>(static_cast<Wide>(x) / static_cast<Wide>(ranks));
  } else {
    using A = accumulate_t<T>;
    return static_cast<T>(static_cast<A>(x) / static_cast<A>(ranks));
  }
}

/// The kernels of one instruction set. Whole factors of integers are values of the unsigned type.
template <class T>
void scale_on(detail::Isa isa, std::size_t n, const void* from, void* to, double factor) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    detail::with_value<U, Product>(isa, from, to, n * sizeof(T), static_cast<U>(scaled(T{1}, factor)));
  } else {
    detail::with_value<T, Product>(isa, from, to, n * sizeof(T), static_cast<accumulate_t<T>>(factor));
  }
}
template <FloatElement T>
void divide_on(detail::Isa isa, std::size_t n, const void* from, void* to, int ranks) {
  detail::with_value<T, detail::Quotient>(isa, from, to, n * sizeof(T), static_cast<accumulate_t<T>>(ranks));
}

template <class T>
void check_element() {
  CAPTURE(std::string(element_name(element_kind<T>)));
  std::uint64_t seed = 0;
  for (const std::size_t count : sizes) {
    const std::vector<T> input = draw<T>(count, ++seed);
    std::vector<T> expected(count);
    const double factors[] = {1, -3, 200, std::is_integral_v<T> ? 0x1.8p62 : 0.1};
    for (const double factor : factors) {
      CAPTURE(factor);
      for (std::size_t i = 0; i < count; ++i) expected[i] = scaled(input[i], factor);
      check(input, expected,
            [=](std::size_t n, const void* from, void* to) { scale_elements<T>(n, from, to, factor); });
      for (const detail::Isa isa : isas()) {
        check(input, expected,
              [=](std::size_t n, const void* from, void* to) { scale_on<T>(isa, n, from, to, factor); });
      }
    }
    for (const int ranks : {1, 2, 7, 1000}) {
      CAPTURE(ranks);
      for (std::size_t i = 0; i < count; ++i) expected[i] = divided(input[i], ranks);
      check(input, expected,
            [=](std::size_t n, const void* from, void* to) { average_kernel<T>()(n, from, to, ranks); });
      if constexpr (FloatElement<T>) {
        for (const detail::Isa isa : isas()) {
          check(input, expected,
                [=](std::size_t n, const void* from, void* to) { divide_on<T>(isa, n, from, to, ranks); });
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("scaling multiplies in the accumulate type and averaging divides there, for every element") {
  check_element<float>();
  check_element<double>();
  check_element<bf16>();
  check_element<fp16>();
  check_element<f8e4m3>();
  check_element<f8e5m2>();
  check_element<std::int8_t>();
  check_element<std::uint8_t>();
  check_element<std::int32_t>();
  check_element<std::uint32_t>();
  check_element<std::int64_t>();
  check_element<std::uint64_t>();
}

TEST_CASE("the factors of integers are whole numbers, the others are refused") {
  std::int64_t x = 3;
  scale_elements<std::int64_t>(1, &x, &x, -0x1p63);
  CHECK(x == std::numeric_limits<std::int64_t>::lowest());
  std::uint64_t u = 1;
  scale_elements<std::uint64_t>(1, &u, &u, 0x1.fffffffffffffp63);
  CHECK(u == 0xfffffffffffff800ULL);
  std::int8_t b = 3;
  scale_elements<std::int8_t>(1, &b, &b, 257);
  CHECK(b == 3);
  for (const double factor :
       {0.5, 0x1p64, -0x1.8p63, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(scale_elements<std::int32_t>(1, &x, &x, factor), Error);
  }
  CHECK_THROWS_WITH_AS(scale_elements<std::int32_t>(1, &x, &x, 0.5),
                       "scale_elements: expected a whole factor from -2^63 to below 2^64 for integers, found 0.500000; "
                       "convert the data to a float type, or divide after the sum",
                       Error);
  CHECK_NOTHROW(scale_elements<float>(0, nullptr, nullptr, 0.5));
}

TEST_CASE("an average of no ranks is refused") {
  float x = 1;
  CHECK_THROWS_WITH_AS(average_elements<float>(1, &x, &x, 0),
                       "average_elements: expected at least 1 rank, found 0; pass the size of the group", Error);
  CHECK_THROWS_AS(average_elements<std::int32_t>(1, &x, &x, -1), Error);
  CHECK_NOTHROW(average_elements<std::int32_t>(0, nullptr, nullptr, 3));
}
