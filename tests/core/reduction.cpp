// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/reduction.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace meshwise;

static_assert(Reduction<Sum> && Reduction<Product> && Reduction<Min> && Reduction<Max> && !Reduction<int>);
static_assert(Sum::linear && !Product::linear && !Min::linear && !Max::linear);
static_assert(Sum::commutative && Product::commutative && Min::commutative && Max::commutative);
static_assert(reduction_kind<Sum> == ReductionKind::sum && reduction_kind<Max> == ReductionKind::max);
static_assert(Sum::apply<std::int8_t>(127, 1) == -128 && Product::apply<std::int32_t>(65536, 65536) == 0);
static_assert(Sum::apply(std::numeric_limits<std::int64_t>::max(), std::int64_t{1}) ==
              std::numeric_limits<std::int64_t>::min());
static_assert(Product::apply<std::uint8_t>(200, 200) == (200 * 200) % 256);
static_assert(std::bit_cast<std::uint32_t>(Min::apply(0.0F, -0.0F)) == 0x80000000U);
static_assert(std::bit_cast<std::uint32_t>(Max::apply(-0.0F, 0.0F)) == 0U);
static_assert(std::is_same_v<decltype(Max::identity<bf16>()), float>);

namespace {

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class F>
void check_floats() {
  using Limits = std::numeric_limits<F>;
  const F values[] = {0,
                      -F{0},
                      1,
                      -1,
                      F(0.1),
                      Limits::denorm_min(),
                      -Limits::denorm_min(),
                      Limits::max(),
                      Limits::lowest(),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::quiet_NaN(),
                      -Limits::quiet_NaN()};
  for (const F a : values) {
    for (const F b : values) {
      const F low = Min::apply(a, b);
      const F high = Max::apply(a, b);
      CHECK(same_bits(low, Min::apply(b, a)));
      CHECK(same_bits(high, Max::apply(b, a)));
      if (std::isnan(a) || std::isnan(b)) {
        CHECK(std::isnan(low));
        CHECK(std::isnan(high));
        CHECK(std::isnan(Sum::apply(a, b)));
        CHECK(std::isnan(Product::apply(a, b)));
        continue;
      }
      CHECK(((same_bits(low, a) && same_bits(high, b)) || (same_bits(low, b) && same_bits(high, a))));
      CHECK(low <= high);
      CHECK((low != high || std::signbit(low) >= std::signbit(high)));
      CHECK(same_bits(low, -Max::apply(-a, -b)));
    }
    if (!std::isnan(a)) {
      CHECK(Sum::apply(a, Sum::identity<F>()) == a);
      CHECK(same_bits(Product::apply(a, Product::identity<F>()), a));
      CHECK(same_bits(Min::apply(a, Min::identity<F>()), a));
      CHECK(same_bits(Max::apply(a, Max::identity<F>()), a));
    }
  }
}

template <class I, class Op>
void check_integers() {
  using Limits = std::numeric_limits<I>;
  const I values[] = {0,
                      1,
                      2,
                      3,
                      77,
                      Limits::max(),
                      Limits::lowest(),
                      static_cast<I>(Limits::max() / 3),
                      static_cast<I>(Limits::lowest() + 1)};
  for (const I a : values) {
    CHECK(Op::apply(a, Op::template identity<I>()) == a);
    for (const I b : values) {
      CHECK(Op::apply(a, b) == Op::apply(b, a));
      for (const I c : values) CHECK(Op::apply(Op::apply(a, b), c) == Op::apply(a, Op::apply(b, c)));
    }
  }
}

template <class I>
void check_integers() {
  check_integers<I, Sum>();
  check_integers<I, Product>();
  check_integers<I, Min>();
  check_integers<I, Max>();
}

}  // namespace

TEST_CASE("min and max of floats: symmetric, NaN propagates, -0 is below +0") {
  check_floats<float>();
  check_floats<double>();
}

TEST_CASE("integer reductions are commutative, associative and wrap") {
  check_integers<std::int8_t>();
  check_integers<std::uint8_t>();
  check_integers<std::int32_t>();
  check_integers<std::uint32_t>();
  check_integers<std::int64_t>();
  check_integers<std::uint64_t>();
}

TEST_CASE("reductions have names") {
  CHECK(std::strcmp(reduction_name(ReductionKind::none), "none") == 0);
  CHECK(std::strcmp(reduction_name(reduction_kind<Sum>), "sum") == 0);
  CHECK(std::strcmp(reduction_name(reduction_kind<Product>), "product") == 0);
  CHECK(std::strcmp(reduction_name(reduction_kind<Min>), "min") == 0);
  CHECK(std::strcmp(reduction_name(reduction_kind<Max>), "max") == 0);
  CHECK(std::strcmp(reduction_name(static_cast<ReductionKind>(99)), "unknown") == 0);
}
