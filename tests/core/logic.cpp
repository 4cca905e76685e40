// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/logic.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "meshwise/core/reduction.hpp"

using namespace meshwise;

static_assert(Reduces<BitAnd, std::int8_t> && Reduces<BitOr, std::uint64_t> && Reduces<BitXor, std::int32_t>);
static_assert(Reduces<LogicalAnd, std::int8_t> && Reduces<LogicalOr, std::uint32_t> &&
              Reduces<LogicalXor, std::int64_t>);
static_assert(!Reduces<BitAnd, float> && !Reduces<BitOr, bf16> && !Reduces<BitXor, f8e4m3>);
static_assert(!Reduces<LogicalAnd, double> && !Reduces<LogicalOr, fp16> && !Reduces<LogicalXor, f8e5m2>);
static_assert(!BitAnd::linear && !BitOr::linear && !BitXor::linear && !LogicalAnd::linear && !LogicalXor::linear);
static_assert(BitAnd::apply<std::uint8_t>(0xcc, 0xaa) == 0x88 && BitOr::apply<std::uint8_t>(0xcc, 0xaa) == 0xee);
static_assert(BitXor::apply<std::int8_t>(-1, 1) == -2);
static_assert(LogicalAnd::apply(2, 4) == 1 && LogicalAnd::apply(2, 0) == 0 && LogicalOr::apply(0, -5) == 1);
static_assert(LogicalXor::apply(2, 4) == 0 && LogicalXor::apply(0, 4) == 1);

namespace {

template <class I, class Op>
void check_operation() {
  using Limits = std::numeric_limits<I>;
  const I values[] = {0, 1, 2, 3, 77, Limits::max(), Limits::lowest(), static_cast<I>(Limits::max() / 3)};
  const I neutral = Op::template identity<I>();
  for (const I a : values) {
    const I expected = detail::is_logical<Op> ? static_cast<I>(a != 0) : a;
    CHECK(Op::apply(a, neutral) == expected);
    CHECK(Op::apply(neutral, a) == expected);
    for (const I b : values) {
      CHECK(Op::apply(a, b) == Op::apply(b, a));
      for (const I c : values) CHECK(Op::apply(Op::apply(a, b), c) == Op::apply(a, Op::apply(b, c)));
    }
  }
}

template <class I>
void check_all() {
  check_operation<I, BitAnd>();
  check_operation<I, BitOr>();
  check_operation<I, BitXor>();
  check_operation<I, LogicalAnd>();
  check_operation<I, LogicalOr>();
  check_operation<I, LogicalXor>();
}

}  // namespace

TEST_CASE("bitwise and logical operations are commutative and associative, with their identities") {
  check_all<std::int8_t>();
  check_all<std::uint8_t>();
  check_all<std::int32_t>();
  check_all<std::uint32_t>();
  check_all<std::int64_t>();
  check_all<std::uint64_t>();
}
