// SPDX-License-Identifier: Apache-2.0
// That the moves add up to a collective is proven in hierarchical.cpp; here that they are what the phases say.
#include "meshwise/schedule/detail/hierarchical_moves.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

using namespace meshwise;
using detail::HierarchicalMoves;
using detail::HierarchicalStage;
using detail::NestedGroups;

namespace {

using Phase = HierarchicalStage::Phase;
const std::vector<std::vector<int>> uneven{{0, 2, 5, 6, 10, 11}, {0, 5, 10}};

std::vector<Move> moves_of(const Shape& shape, const HierarchicalStage& stage) {
  std::vector<Move> moves;
  if (stage.phase == Phase::up) HierarchicalMoves::up(moves, shape, stage);
  if (stage.phase == Phase::down) HierarchicalMoves::down(moves, shape, stage);
  if (stage.phase == Phase::scatter) HierarchicalMoves::scatter(moves, shape, stage);
  if (stage.phase == Phase::gather) HierarchicalMoves::gather(moves, shape, stage);
  return moves;
}

TEST_CASE("the readers of a rank are the ranks whose moves read from it; sums stay in a group, moves are joined") {
  for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                    Operation::broadcast, Operation::reduce}) {
    for (const int widest_direct : {1, 2, 16}) {
      const NestedGroups groups(uneven, widest_direct);
      const Shape shape{operation, 13, 7, operation != Operation::all_gather};
      int rounds = 0;
      for (int level = 0; level <= groups.top(); ++level) rounds += groups.rounds_of(shape.ranks, level);
      if (operation == Operation::all_reduce) rounds *= 2;
      if (rooted(operation)) ++rounds;
      for (int round = 0; round < rounds; ++round) {
        std::vector<std::set<int>> reading(13);
        bool peers = false;
        for (int rank = 0; rank < shape.ranks; ++rank) {
          const HierarchicalStage stage(groups, shape, rank, round);
          peers = stage.phase == Phase::up || stage.phase == Phase::down;
          const std::vector<Move> moves = moves_of(shape, stage);
          for (std::size_t i = 0; i < moves.size(); ++i) {
            const Move& move = moves[i];
            CHECK(move.by == rank);
            CHECK(move.to.size() == 1);
            CHECK(move.to[0].rank == rank);
            for (const Piece& piece : move.from) {
              CHECK(piece.count == move.to[0].count);
              if (stage.phase == Phase::up) CHECK(stage.group.contains(piece.rank));
              if (piece.rank != rank) reading[static_cast<std::size_t>(piece.rank)].insert(rank);
            }
            CHECK((stage.phase == Phase::up || move.from.size() == 1));
            const bool goes_on = i > 0 && move.from.size() == 1 && moves[i - 1].from.size() == 1 &&
                                 moves[i - 1].from[0].rank == move.from[0].rank &&
                                 moves[i - 1].from[0].buffer == move.from[0].buffer &&
                                 moves[i - 1].block + moves[i - 1].to[0].count == move.block &&
                                 moves[i - 1].from[0].slot + moves[i - 1].from[0].count == move.from[0].slot &&
                                 moves[i - 1].to[0].slot + moves[i - 1].to[0].count == move.to[0].slot;
            CHECK_FALSE(goes_on);
          }
        }
        for (int rank = 0; peers && rank < shape.ranks; ++rank) {
          std::vector<int> readers;
          HierarchicalMoves::readers(readers, shape, HierarchicalStage(groups, shape, rank, round));
          std::set<int> named(readers.begin(), readers.end());
          named.erase(rank);
          CHECK(named == reading[static_cast<std::size_t>(rank)]);
        }
      }
    }
  }
}

}  // namespace
