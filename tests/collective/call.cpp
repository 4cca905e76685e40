// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/call.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace meshwise;

TEST_CASE("a region has as many elements as its runs") {
  static_assert(Region{}.size() == 0);
  static_assert(Region{5, 3, 10, 4}.size() == 12);
  static_assert(Region{0, 7, 0, 1}.size() == 7);
}

TEST_CASE("algorithms have names") {
  CHECK(std::string(algorithm_name(Algorithm::automatic)) == "automatic");
  CHECK(std::string(algorithm_name(Algorithm::direct)) == "direct");
  CHECK(std::string(algorithm_name(Algorithm::ring)) == "ring");
  CHECK(std::string(algorithm_name(static_cast<Algorithm>(99))) == "unknown");
}

TEST_CASE("options say nothing unless told") {
  const CollectiveOptions options;
  CHECK(options.algorithm == Algorithm::automatic);
  CHECK(options.generator.empty());
  CHECK(!options.wire.set);
  CHECK(options.factor == 1);
  CollectiveOptions other;
  other.wire = ElementKind::bf16;
  CHECK(other.wire.set);
  CHECK(other.wire.kind == ElementKind::bf16);
}
