// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/split_rule.hpp"

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

#include "meshwise/layout/dim.hpp"

namespace {

using namespace meshwise;

static_assert(ShardEntry<tp> && ShardEntry<Chunked<tp>> && ShardEntry<Zigzag<cp>> && ShardEntry<Striped<cp>> &&
              ShardEntry<Counted<ep>>);
static_assert(!ShardEntry<seq> && !ShardEntry<int> && !ShardEntry<SplitRule>);
template <class E, class A, SplitRule rule>
inline constexpr bool is_entry =
    std::is_same_v<detail::axis_of<E>, A>&& detail::entry_traits<E>::rule == rule&& std::is_empty_v<E>;
static_assert(is_entry<tp, tp, SplitRule::contiguous> && is_entry<Chunked<tp>, tp, SplitRule::chunked>);
static_assert(is_entry<Zigzag<cp>, cp, SplitRule::zigzag> && is_entry<Striped<cp>, cp, SplitRule::striped>);
static_assert(is_entry<Counted<ep>, ep, SplitRule::counted>);

template <class E>
concept can_be_wrapped = requires {
  typename Zigzag<E>;
};
static_assert(can_be_wrapped<tp> && !can_be_wrapped<Zigzag<tp>> && !can_be_wrapped<seq>);  // one rule for an axis

TEST_CASE("split rules have names") {
  CHECK(std::string(split_rule_name(SplitRule::contiguous)) == "contiguous");
  CHECK(std::string(split_rule_name(SplitRule::zigzag)) == "zigzag");
  CHECK(std::string(split_rule_name(SplitRule::counted)) == "counted");
}

}  // namespace
