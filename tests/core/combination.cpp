// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/combination.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace meshwise;

static_assert(!Reduction<Average> && !Reduction<PreMultipliedSum> && !Reduces<Average, float>);
static_assert(Combination<Average> && Combination<PreMultipliedSum> && Combination<Sum> && Combination<LogicalOr>);
static_assert(!Combination<int> && !Combination<void>);
static_assert(std::is_same_v<reduction_of<Average>, Sum> && std::is_same_v<reduction_of<PreMultipliedSum>, Sum>);
static_assert(std::is_same_v<reduction_of<Max>, Max>);
static_assert(Combines<Average, f8e4m3> && Combines<Average, std::int8_t> && Combines<PreMultipliedSum, std::uint64_t>);
static_assert(Combines<BitOr, std::int8_t> && !Combines<BitOr, float> && !Combines<Average, bool>);
static_assert(combination_kind<Average> == ReductionKind::average && combination_kind<Min> == ReductionKind::min);

// Truncation towards zero, on both sides of it.
static_assert(Average::finish<std::int8_t>(-7, 2) == -3 && Average::finish<std::int8_t>(7, 2) == 3);
static_assert(Average::finish<std::int8_t>(-128, 1) == -128 && Average::finish<std::int8_t>(-128, 129) == 0);
static_assert(Average::finish<std::int8_t>(-128, 127) == -1 && Average::finish<std::uint8_t>(255, 2) == 127);
static_assert(Average::finish<std::uint64_t>(std::numeric_limits<std::uint64_t>::max(), 2) ==
              std::uint64_t{std::numeric_limits<std::int64_t>::max()});
static_assert(Average::finish(std::numeric_limits<std::int64_t>::lowest(), 1) ==
              std::numeric_limits<std::int64_t>::lowest());
static_assert(Average::finish(1.0F, 3) == 1.0F / 3.0F && Average::finish(-0.0, 7) == 0.0);

TEST_CASE("combinations have names") {
  CHECK(std::strcmp(Average::name, "average") == 0);
  CHECK(std::strcmp(PreMultipliedSum::name, "pre_multiplied_sum") == 0);
  CHECK(std::strcmp(reduction_name(combination_kind<PreMultipliedSum>), "pre_multiplied_sum") == 0);
  CHECK(PreMultipliedSum{0.5}.factor == 0.5);
}
