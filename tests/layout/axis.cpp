// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/axis.hpp"

#include <doctest/doctest.h>

#include "meshwise/layout/dim.hpp"

namespace {

using namespace meshwise;

struct rows : axis {};
struct heavy : axis {
  [[maybe_unused]] int content;
};
struct unrelated {};

static_assert(Axis<dp> && Axis<tp> && Axis<cp> && Axis<pp> && Axis<ep> && Axis<rows>);
static_assert(!Axis<axis> && !Axis<heavy> && !Axis<unrelated> && !Axis<int> && !Axis<seq>);

TEST_CASE("axes: checked when this file is compiled") { CHECK(Axis<rows>); }

}  // namespace
