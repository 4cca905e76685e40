// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/fp8.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "meshwise/core/random.hpp"

using namespace meshwise;

static_assert(sizeof(f8e4m3) == 1 && sizeof(f8e5m2) == 1);
static_assert(std::is_trivially_copyable_v<f8e4m3> && std::is_trivially_default_constructible_v<f8e4m3>);
static_assert(std::is_trivially_copyable_v<f8e5m2> && std::is_trivially_default_constructible_v<f8e5m2>);
static_assert(!std::is_convertible_v<float, f8e4m3> && std::is_convertible_v<f8e4m3, float>);
static_assert(!std::is_convertible_v<float, f8e5m2> && std::is_convertible_v<f8e5m2, float>);
static_assert(float(f8e4m3(448)) == 448.0F && f8e4m3(448).bits == 0x7e && f8e4m3(-1.0).bits == 0xb8);
static_assert(float(f8e5m2(57344)) == 57344.0F && f8e5m2(57344).bits == 0x7b && f8e5m2(-1.0).bits == 0xbc);

namespace {

/// What the specification says of a format.
template <class T>
struct Format;
template <>
struct Format<f8e4m3> {
  static constexpr int fraction_bits = 3, bias = 7;
  static constexpr int largest = 0x7e;   ///< code of the largest finite value
  static constexpr int overflow = 0x7f;  ///< what lies beyond it: NaN
};
template <>
struct Format<f8e5m2> {
  static constexpr int fraction_bits = 2, bias = 15;
  static constexpr int largest = 0x7b;
  static constexpr int overflow = 0x7c;  ///< infinity
};

/// The value of a code without a sign, by the formula; codes beyond the largest go on as if they were finite.
template <class T>
double formula(int code) {
  using F = Format<T>;
  const int exponent = code >> F::fraction_bits;
  const int fraction = code & ((1 << F::fraction_bits) - 1);
  const int one = exponent == 0 ? 0 : 1 << F::fraction_bits;
  return std::ldexp(one + fraction, (exponent == 0 ? 1 : exponent) - F::bias - F::fraction_bits);
}

/// The code nearest to |value|, by search through all of them; of two equally near the even one. Exact: distances
/// of doubles close to each other are doubles.
template <class T>
int nearest(double value) {
  value = std::fabs(value);
  int best = 0;
  for (int code = 1; code <= Format<T>::largest + 1; ++code) {
    const double now = std::fabs(formula<T>(code) - value);
    const double before = std::fabs(formula<T>(best) - value);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best > Format<T>::largest ? Format<T>::overflow : best;
}

template <class T, class Wide>
bool rounds(Wide value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  return T(value).bits == (nearest<T>(static_cast<double>(value)) | sign);
}

template <class T>
void check_codes() {
  for (int code = 0; code < 256; ++code) {
    const T value = T::from_bits(static_cast<std::uint8_t>(code));
    const int magnitude = code & 0x7f;
    const auto wide = static_cast<float>(value);
    CAPTURE(code);
    REQUIRE(value.bits == code);
    if (magnitude <= Format<T>::largest) {
      REQUIRE(static_cast<double>(std::fabs(wide)) == formula<T>(magnitude));
      REQUIRE(std::signbit(wide) == (code >= 0x80));
      REQUIRE(T(wide).bits == code);
      REQUIRE(T(static_cast<double>(wide)).bits == code);
    } else if (std::is_same_v<T, f8e5m2> && magnitude == 0x7c) {
      REQUIRE(std::isinf(wide));
      REQUIRE(std::signbit(wide) == (code >= 0x80));
      REQUIRE(T(wide).bits == code);
    } else {
      REQUIRE(std::isnan(wide));
      REQUIRE(value != value);
      // A NaN stays one, with its sign, quieted where the format tells.
      REQUIRE(T(wide).bits == (std::is_same_v<T, f8e5m2> ? code | 0x02 : code));
    }
  }
}

/// The points where rounding turns: each value, the middle to the next, and their neighbours.
template <class T, class Wide>
void check_turns() {
  const Wide far = std::numeric_limits<Wide>::infinity();
  for (int code = 0; code <= Format<T>::largest; ++code) {
    const auto low = static_cast<Wide>(formula<T>(code));
    const auto middle = static_cast<Wide>((formula<T>(code) + formula<T>(code + 1)) / 2);
    for (const Wide at : {low, middle}) {
      for (const Wide value : {at, std::nextafter(at, -far), std::nextafter(at, far)}) {
        CAPTURE(static_cast<double>(value));
        REQUIRE(rounds<T>(value));
        REQUIRE(rounds<T>(-value));
      }
    }
  }
}

template <class T>
void check_random() {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    // Exponents from below the smallest subnormal to beyond the largest value, all fractions alike.
    const std::uint64_t bits = random_bits(7, i);
    const int exponent = static_cast<int>(bits % 40) - 21;
    const double value = std::ldexp(1.0 + static_cast<double>(bits >> 12) * 0x1p-52, exponent);
    const double sign = (bits >> 8 & 1) != 0 ? -1.0 : 1.0;
    REQUIRE(rounds<T>(sign * value));
    REQUIRE(rounds<T>(static_cast<float>(sign * value)));
  }
}

template <class T>
void check_far(int overflow) {
  using Floats = std::numeric_limits<float>;
  using Doubles = std::numeric_limits<double>;
  CHECK(T(Floats::infinity()).bits == overflow);
  CHECK(T(-Doubles::infinity()).bits == (overflow | 0x80));
  CHECK(T(Floats::max()).bits == overflow);
  CHECK(T(Doubles::lowest()).bits == (overflow | 0x80));
  CHECK(T(Doubles::denorm_min()).bits == 0);
  CHECK(T(-Floats::denorm_min()).bits == 0x80);
  CHECK(T(-0.0F).bits == 0x80);
  CHECK(T(-0.0F) == T(0));
  CHECK(std::isnan(float(T(Floats::quiet_NaN()))));
  CHECK(std::isnan(float(T(Floats::signaling_NaN()))));
  CHECK(std::isnan(float(T(-Doubles::quiet_NaN()))));
  CHECK(T(std::int64_t{-3}).bits == T(-3.0F).bits);
  CHECK(T(std::numeric_limits<std::uint64_t>::max()).bits == overflow);
  for (std::uint32_t payload = 1; payload < 0x00800000U; payload += 4099) {
    REQUIRE(std::isnan(float(T(std::bit_cast<float>(0x7f800000U | payload)))));
    REQUIRE((T(std::bit_cast<float>(0xff800000U | payload)).bits & 0x80) != 0);
  }
}

}  // namespace

TEST_CASE("8-bit floats: every code has the value of the formula and survives a round trip") {
  check_codes<f8e4m3>();
  check_codes<f8e5m2>();
}

TEST_CASE("8-bit floats round once, to the nearest of all codes, ties to even") {
  check_turns<f8e4m3, float>();
  check_turns<f8e4m3, double>();
  check_turns<f8e5m2, float>();
  check_turns<f8e5m2, double>();
  check_random<f8e4m3>();
  check_random<f8e5m2>();
}

TEST_CASE("8-bit floats do not saturate") {
  check_far<f8e4m3>(0x7f);
  check_far<f8e5m2>(0x7c);
  CHECK(f8e4m3(464.0F).bits == 0x7e);
  CHECK(f8e4m3(std::nextafter(464.0, 465.0)).bits == 0x7f);
  CHECK(f8e4m3(-480.0F).bits == 0xff);
  CHECK(f8e5m2(std::nextafter(61440.0F, 0.0F)).bits == 0x7b);
  CHECK(f8e5m2(61440.0F).bits == 0x7c);
}
