// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/reduction.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "meshwise/core/reduction_kind.hpp"

using namespace meshwise;

static_assert(Reduction<Sum> && Reduction<Product> && Reduction<Min> && Reduction<Max> && !Reduction<int>);
static_assert(Reduction<BitAnd> && Reduction<LogicalXor>);
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
static_assert(Reduces<Sum, f8e4m3> && Reduces<Max, std::uint8_t> && Reduces<Product, double> && !Reduces<Sum, bool>);
static_assert(Min::identity<f8e4m3>() == 448.0F && Max::identity<f8e4m3>() == -448.0F);
static_assert(static_cast<int>(ReductionKind::max) == 4 && static_cast<int>(ReductionKind::bit_and) == 5);
static_assert(static_cast<int>(ReductionKind::logical_xor) == 10 && static_cast<int>(ReductionKind::user) == 13);

namespace {

/// The value that is farther from zero: a user's operation.
struct Farthest {
  static constexpr const char* name = "farthest";
  static constexpr ReductionKind kind = ReductionKind::user;
  static constexpr bool commutative = false;
  static constexpr bool linear = false;
  template <Element T>
  static constexpr accumulate_t<T> identity() {
    return accumulate_t<T>{0};
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    return (a < 0 ? -a : a) < (b < 0 ? -b : b) ? b : a;
  }
};
struct Renamed : Farthest {
  static constexpr const char* name = "furthest";
};
struct Commutative : Farthest {
  static constexpr bool commutative = true;
};
struct FloatsOnly : Farthest {
  static constexpr float apply(float a, float b) { return Farthest::apply(a, b); }
};
struct PosesAsSum : Farthest {
  static constexpr ReductionKind kind = ReductionKind::sum;
};
struct InheritsFromSum : Sum {};
struct HasState : Farthest {
  float state;
};
struct SaysNothing {
  template <class A>
  static constexpr A apply(A a, A) {
    return a;
  }
};

}  // namespace

static_assert(Reduction<Farthest> && Reduction<FloatsOnly> && reduction_kind<Farthest> == ReductionKind::user);
static_assert(Reduces<Farthest, float> && Reduces<Farthest, bf16> && Reduces<Farthest, std::int64_t>);
static_assert(Reduces<FloatsOnly, float> && Reduces<FloatsOnly, f8e5m2> && !Reduces<FloatsOnly, double>);
static_assert(!Reduces<FloatsOnly, std::int32_t> && !Reduces<Farthest, long double> && !Reduces<int, float>);
static_assert(!Reduction<PosesAsSum> && !Reduction<InheritsFromSum> && !Reduction<HasState> && !Reduction<SaysNothing>);
static_assert(reduction_signature<Farthest> != reduction_signature<Renamed>);
static_assert(reduction_signature<Farthest> != reduction_signature<Commutative>);
static_assert(reduction_signature<Farthest> == reduction_signature<FloatsOnly>);
static_assert(reduction_signature<Sum> != reduction_signature<Product>);

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

TEST_CASE("identities can be stored as elements and are neutral there") {
  const auto check = [](auto zero, int codes) {
    using T = decltype(zero);
    for (int code = 0; code < codes; ++code) {
      const T x = T::from_bits(static_cast<decltype(T::bits)>(code));
      const auto with = [&](auto op) {
        using Op = decltype(op);
        const T neutral(Op::template identity<T>());
        return static_cast<float>(T(Op::apply(static_cast<float>(x), static_cast<float>(neutral))));
      };
      const auto value = static_cast<float>(x);
      if (std::isnan(value)) continue;
      REQUIRE(with(Sum{}) == value);
      REQUIRE(same_bits(with(Product{}), value));
      REQUIRE(same_bits(with(Min{}), value));
      REQUIRE(same_bits(with(Max{}), value));
    }
  };
  check(f8e4m3(0), 256);
  check(f8e5m2(0), 256);
  check(bf16(0), 65536);
  check(fp16(0), 65536);
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
  CHECK(std::strcmp(reduction_name(reduction_kind<LogicalOr>), "logical_or") == 0);
  CHECK(std::strcmp(reduction_name(ReductionKind::user), "user") == 0);
  for (int kind = 0; kind <= static_cast<int>(ReductionKind::user); ++kind) {
    CHECK(std::strcmp(reduction_name(static_cast<ReductionKind>(kind)), "unknown") != 0);
  }
  CHECK(std::strcmp(reduction_name(static_cast<ReductionKind>(99)), "unknown") == 0);
}
