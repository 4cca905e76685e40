// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/detail/hierarchical_stage.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "meshwise/schedule/hierarchical.hpp"

using namespace meshwise;
using detail::HierarchicalStage;
using detail::NestedGroups;

namespace {

using Phase = HierarchicalStage::Phase;
using Begins = std::vector<std::vector<int>>;

const Begins uneven{{0, 2, 5, 6, 10, 11}, {0, 5, 10}};

template <class Visit>
void each_stage(Operation operation, const Visit& visit) {
  for (const int widest_direct : {1, 16}) {
    const NestedGroups groups(uneven, widest_direct);
    const Shape shape{operation, 13, 4, true};
    const int rounds = Hierarchical(uneven, widest_direct).rounds(shape);
    for (int round = 0; round < rounds; ++round) {
      for (int rank = 0; rank < shape.ranks; ++rank) {
        visit(HierarchicalStage(groups, shape, rank, round), rank, round, rounds);
      }
    }
  }
}

TEST_CASE("sums go out level by level, copies come back in the opposite order") {
  each_stage(Operation::all_reduce, [](const HierarchicalStage& stage, int rank, int round, int rounds) {
    CHECK((stage.phase == Phase::up) == (round < rounds / 2));
    CHECK((stage.phase == Phase::down) == (round >= rounds / 2));
    CHECK(stage.rank == rank);
    CHECK(stage.group.contains(rank));
    CHECK(stage.child(stage.index).contains(rank));
  });
  each_stage(Operation::broadcast, [](const HierarchicalStage& stage, int, int round, int) {
    CHECK((stage.phase == Phase::scatter) == (round == 0));
  });
  each_stage(Operation::reduce, [](const HierarchicalStage& stage, int, int round, int rounds) {
    CHECK((stage.phase == Phase::gather) == (round == rounds - 1));
  });
}

TEST_CASE("a step pulls from another child, at most what all of them have") {
  each_stage(Operation::all_reduce, [](const HierarchicalStage& stage, int, int, int) {
    if (stage.idle) return;
    CHECK(stage.step >= 0);
    CHECK(stage.count >= 1);
    CHECK(stage.count <= stage.n);
    CHECK((stage.direct || (stage.distance >= 1 && stage.distance < stage.n)));
  });
}

TEST_CASE("the runs of all children of a group are all blocks, each once") {
  each_stage(Operation::all_reduce, [](const HierarchicalStage& stage, int, int, int) {
    if (stage.n == 1) return;
    for (const bool all : {false, true}) {
      std::vector<int> seen(13, 0), inside(13, 0);
      const auto add = [](std::vector<int>& to) {
        return [&to](int block, int end) {
          for (; block < end; ++block) ++to[static_cast<std::size_t>(block)];
        };
      };
      stage.each_run(0, stage.n, all, add(seen));
      for (int child = 0; child < stage.n; ++child) stage.each_run(child, 1, all, add(inside));
      CHECK(seen == inside);
      stage.each_run(stage.index, stage.n, all, add(seen));  // round and round
      for (std::size_t block = 0; block < seen.size(); ++block) {
        CHECK(seen[block] == 2 * inside[block]);
        CHECK(inside[block] <= 1);
        if (all) CHECK(inside[block] == 1);
      }
    }
  });
}

}  // namespace
