// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/refused.hpp"

#include <doctest/doctest.h>

using namespace meshwise;

namespace {

template <class T>
  requires(T(1) / 2 == 0)
T halved(T number) { return number / 2; }
template <class T>
  requires(T(1) / 2 != 0)
auto halved(T) -> refused<because::elements_differ, try_<use_one_element_type, or_<int>>, T>;

template <class T>
inline constexpr bool can_be_halved = requires(T number) {
  halved(number);
};

}  // namespace

TEST_CASE("a refusal is an answer that nothing can be done with, and `requires` sees it") {
  static_assert(can_be_halved<int> && !can_be_halved<double>);
  CHECK(halved(4) == 2);
}
