// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/name.hpp"

#include <doctest/doctest.h>

#include "meshwise/layout/layout.hpp"

struct model : meshwise::axis {};
struct channels : meshwise::dim {};

namespace {

using namespace meshwise;

TEST_CASE("types are named as a user spells them") {
  CHECK(name_of<tp>() == "tp");
  CHECK(name_of<seq>() == "seq");
  CHECK(name_of<key<seq>>() == "key<seq>");
  CHECK(name_of<model>() == "model");
  CHECK(name_of<channels>() == "channels");
  CHECK(name_of<Mesh<dp, tp>>() == "Mesh<dp, tp>");
  CHECK(name_of<Shard<batch, dp, ep>>() == "Shard<batch, dp, ep>");
  CHECK(name_of<Partial<tp>>().find("Partial<tp") == 0);
}

}  // namespace
