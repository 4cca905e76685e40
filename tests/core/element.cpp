// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/element.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace meshwise;

static_assert(sizeof(bf16) == 2 && sizeof(fp16) == 2);
static_assert(std::is_trivially_copyable_v<bf16> && std::is_trivially_default_constructible_v<bf16>);
static_assert(std::is_trivially_copyable_v<fp16> && std::is_trivially_default_constructible_v<fp16>);
static_assert(!std::is_convertible_v<float, bf16> && std::is_convertible_v<bf16, float>);
static_assert(!std::is_convertible_v<float, fp16> && std::is_convertible_v<fp16, float>);
static_assert(Element<float> && Element<double> && Element<bf16> && Element<fp16> && Element<std::int8_t>);
static_assert(!Element<bool> && !Element<char> && !Element<long double> && !Element<const float> && !Element<void>);
static_assert(Element<f8e4m3> && Element<f8e5m2> && FloatElement<f8e5m2> && FloatElement<double>);
static_assert(!FloatElement<std::int32_t> && !FloatElement<int*>);
static_assert(static_cast<int>(ElementKind::f32) == 0 && static_cast<int>(ElementKind::u64) == 9);
static_assert(static_cast<int>(ElementKind::f8e4m3) == 10 && static_cast<int>(ElementKind::f8e5m2) == 11);
static_assert(std::is_same_v<accumulate_t<f8e4m3>, float> && std::is_same_v<accumulate_t<f8e5m2>, float>);
static_assert(element_kind<fp16> == ElementKind::f16 && element_kind<std::uint64_t> == ElementKind::u64);
static_assert(std::is_same_v<accumulate_t<bf16>, float> && std::is_same_v<accumulate_t<fp16>, float>);
static_assert(std::is_same_v<accumulate_t<double>, double> && std::is_same_v<accumulate_t<std::int8_t>, std::int8_t>);
static_assert(float(bf16(1.5F)) == 1.5F && float(fp16(-0.1F)) == -0x1.998p-4F && bf16(3).bits == 0x4040);

namespace {

template <class T>
bool is_nan(T value) {
  return std::isnan(static_cast<float>(value));
}

// Every finite value with its successor: the representable values themselves, the points around their middle, and the
// middle itself, which goes to the one with an even last bit. `Wide` is the type that is rounded.
template <class T, class Wide>
void check_rounding(std::uint16_t infinity) {
  const Wide far = std::numeric_limits<Wide>::infinity();
  for (std::uint16_t bits = 0; bits < infinity; ++bits) {
    const auto next_bits = static_cast<std::uint16_t>(bits + 1);
    const auto wide = [](std::uint16_t b) { return static_cast<Wide>(static_cast<float>(T::from_bits(b))); };
    const Wide low = wide(bits);
    // Beyond the largest value rounding goes on as if the next power of two were representable.
    const Wide step = next_bits < infinity ? wide(next_bits) - low : low - wide(static_cast<std::uint16_t>(bits - 1));
    const Wide middle = low + step / 2;
    const std::uint16_t even = bits % 2 == 0 ? bits : next_bits;
    bool good = T(low).bits == bits && T(middle).bits == even;
    good = good && T(std::nextafter(middle, -far)).bits == bits && T(std::nextafter(middle, far)).bits == next_bits;
    good = good && T(-middle).bits == (even | 0x8000U) && T(-low).bits == (bits | 0x8000U);
    REQUIRE_MESSAGE(good, "after the value with the bits ", bits);
  }
}

template <class T>
void check_special(std::uint16_t infinity, std::uint16_t quiet) {
  using Limits = std::numeric_limits<float>;
  CHECK(T(Limits::infinity()).bits == infinity);
  CHECK(T(-Limits::infinity()).bits == (infinity | 0x8000U));
  CHECK(T(Limits::max()).bits == infinity);
  CHECK(T(std::numeric_limits<double>::max()).bits == infinity);
  CHECK(T(std::numeric_limits<double>::denorm_min()).bits == 0);
  CHECK(T(-std::numeric_limits<double>::denorm_min()).bits == 0x8000U);
  CHECK(T(-0.0F).bits == 0x8000U);
  CHECK(T(-0.0F) == T(0.0F));
  CHECK(T(Limits::quiet_NaN()) != T(Limits::quiet_NaN()));
  CHECK(is_nan(T(std::numeric_limits<double>::quiet_NaN())));
  CHECK(T(-7) < T(2.5));
  for (std::uint32_t payload = 1; payload < 0x00800000U; payload += 4099) {
    const T nan(std::bit_cast<float>(0xff800000U | payload));
    REQUIRE(is_nan(nan));
    REQUIRE((nan.bits & (0x8000U | quiet)) == (0x8000U | quiet));
  }
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const T value = T::from_bits(static_cast<std::uint16_t>(bits));
    const bool nan = (bits & 0x7fffU) > infinity;
    REQUIRE(is_nan(value) == nan);
    REQUIRE(T(static_cast<float>(value)).bits == (nan ? bits | quiet : bits));
  }
}

}  // namespace

TEST_CASE("16-bit floats round to nearest even, once, from float and from double") {
  check_rounding<bf16, float>(0x7f80);
  check_rounding<bf16, double>(0x7f80);
  check_rounding<fp16, float>(0x7c00);
  check_rounding<fp16, double>(0x7c00);
}

TEST_CASE("16-bit floats keep infinities, signs and NaN, and survive a round trip") {
  check_special<bf16>(0x7f80, 0x0040);
  check_special<fp16>(0x7c00, 0x0200);
  CHECK(fp16(65519.0F).bits == 0x7bff);
  CHECK(fp16(65520.0F).bits == 0x7c00);
  CHECK(float(fp16::from_bits(1)) == 0x1p-24F);
}

TEST_CASE("element kinds have names and sizes") {
  const auto check = [](auto zero, const char* name) {
    using T = decltype(zero);
    CHECK(std::strcmp(element_name(element_kind<T>), name) == 0);
    CHECK(element_size(element_kind<T>) == sizeof(T));
  };
  check(0.0F, "f32");
  check(0.0, "f64");
  check(bf16(0), "bf16");
  check(fp16(0), "f16");
  check(std::int8_t{}, "i8");
  check(std::uint8_t{}, "u8");
  check(std::int32_t{}, "i32");
  check(std::uint32_t{}, "u32");
  check(std::int64_t{}, "i64");
  check(std::uint64_t{}, "u64");
  check(f8e4m3(0), "f8e4m3");
  check(f8e5m2(0), "f8e5m2");
  CHECK(std::strcmp(element_name(static_cast<ElementKind>(200)), "unknown") == 0);
  CHECK(element_size(static_cast<ElementKind>(200)) == 0);
}
