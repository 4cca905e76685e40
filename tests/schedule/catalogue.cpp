// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/catalogue.hpp"

#include <doctest/doctest.h>

#include <string>

#include "all_shapes.hpp"
#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/any_generator.hpp"
#include "meshwise/schedule/verify.hpp"

using namespace meshwise;

TEST_CASE("every algorithm has its generator, by the same name") {
  const Catalogue flat(Topology::flat(12));
  const Catalogue nodes(Topology::nodes({5, 7}));
  const Catalogue torus(Topology::torus({3, 4}));
  for (int k = 0; k < algorithm_count; ++k) {
    const auto algorithm = static_cast<Algorithm>(k);
    CAPTURE(algorithm_name(algorithm));
    const bool none = algorithm == Algorithm::automatic || algorithm == Algorithm::custom;
    CHECK(flat.find(algorithm).empty() ==
          (none || algorithm == Algorithm::torus || algorithm == Algorithm::hierarchical));
    CHECK(nodes.find(algorithm).empty() == (none || algorithm == Algorithm::torus));
    CHECK(torus.find(algorithm).empty() == (none || algorithm == Algorithm::hierarchical));
    for (const Catalogue* catalogue : {&flat, &nodes, &torus}) {
      const AnyGenerator generator = catalogue->find(algorithm);
      if (generator.empty()) continue;
      const std::string name = algorithm == Algorithm::knomial ? "knomial4" : algorithm_name(algorithm);
      CHECK(generator.name == name);
    }
  }
}

TEST_CASE("parameters fit the topology: what the catalogue supports is right") {
  const Topology racks(9, {Level{{0, 3, 4, 7}, Link::shared_memory(), 1}, Level{{0, 4}, Link::network(), 1}},
                       Link::network());
  for (const Topology& topology : {Topology::flat(9), Topology::nodes({2, 7}), Topology::torus({3, 3}), racks}) {
    const Catalogue catalogue(topology);
    for (const Shape& shape : test::all_shapes(9)) {
      if (shape.root % 4 != 0) continue;
      int supported = 0;
      for (int k = 0; k < algorithm_count; ++k) {
        const AnyGenerator generator = catalogue.find(static_cast<Algorithm>(k));
        if (!generator.supports(shape)) continue;
        CAPTURE(generator.name);
        CAPTURE(test::describe(shape));
        CHECK(verify(materialise(generator, shape)).ok());
        ++supported;
      }
      CHECK(supported > 0);
    }
  }
}

TEST_CASE("parameters are those of the topology") {
  const Catalogue torus(Topology::torus({3, 4}));
  const Shape twelve{Operation::all_reduce, 12, 0, false};
  CHECK(torus.find(Algorithm::torus).supports(twelve));
  CHECK_FALSE(torus.find(Algorithm::torus).supports(Shape{Operation::all_reduce, 13, 0, false}));
  CHECK(torus.find(Algorithm::torus).rounds(twelve) == 2 * (2 + 3));
}

TEST_CASE("a generator behind pointers says what it says itself") {
  const AnyGenerator ring = AnyGenerator::of<Ring>();
  const Torus torus{{2, 3}};
  const AnyGenerator bucket(torus);
  CHECK(AnyGenerator().empty());
  const auto same = [](const auto& generator, const AnyGenerator& any) {
    CHECK_FALSE(any.empty());
    CHECK(std::string(any.name) == generator.name);
    for (const Shape& shape : test::all_shapes(6)) {
      REQUIRE(any.supports(shape) == generator.supports(shape));
      CHECK_FALSE(AnyGenerator().supports(shape));
      if (!generator.supports(shape)) continue;
      CHECK(any.rounds(shape) == generator.rounds(shape));
      CHECK(any.scratch_slots(shape) == generator.scratch_slots(shape));
      for (int round = 0; round < any.rounds(shape); ++round) {
        CHECK(any.alike(shape, round) == generator.alike(shape, round));
        for (int rank = 0; rank < 6; ++rank) {
          CHECK(any.partners(shape, rank, round) == generator.partners(shape, rank, round));
          const std::vector<Move> moves = any.by(shape, rank, round);
          const std::vector<Move> expected = generator.by(shape, rank, round);
          REQUIRE(moves.size() == expected.size());
          for (std::size_t k = 0; k < moves.size(); ++k) {
            CHECK(moves[k].by == expected[k].by);
            CHECK(moves[k].block == expected[k].block);
            CHECK(moves[k].from == expected[k].from);
            CHECK(moves[k].to == expected[k].to);
          }
        }
      }
    }
  };
  same(Ring{}, ring);
  same(torus, bucket);
  CHECK(AnyGenerator::of<Direct>().alike(Shape{Operation::all_reduce, 4, 0, false}, 0) == 1);
}
