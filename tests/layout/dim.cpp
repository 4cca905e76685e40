// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/dim.hpp"

#include <doctest/doctest.h>

#include "meshwise/layout/axis.hpp"

namespace {

using namespace meshwise;

struct channels : dim {};
struct heavy : dim {
  [[maybe_unused]] int content;
};

static_assert(Dim<batch> && Dim<seq> && Dim<hidden> && Dim<ffn> && Dim<heads> && Dim<head_dim> && Dim<vocab>);
static_assert(Dim<flat> && Dim<channels> && Dim<key<seq>> && Dim<key<channels>>);
static_assert(!Dim<dim> && !Dim<heavy> && !Dim<int> && !Dim<tp> && !std::is_same_v<key<seq>, seq>);
static_assert(Dims<>::rank == 0 && Dims<batch, seq, hidden>::rank == 3);
static_assert(std::is_same_v<detail::dims_of<Dims<batch, seq>>, detail::list<batch, seq>>);
static_assert(std::is_same_v<detail::dims_from<detail::list<batch, seq>>, Dims<batch, seq>>);
static_assert(std::is_same_v<detail::dims_from<detail::list<>>, Dims<>>);

TEST_CASE("dims: checked when this file is compiled") { CHECK(Dims<batch, seq>::rank == 2); }

}  // namespace
