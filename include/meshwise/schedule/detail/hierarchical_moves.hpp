// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/schedule/detail/hierarchical_stage.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise::detail {

/// What a rank does in a round of Hierarchical, and who reads from it.
class HierarchicalMoves {
  using Tree = GroupTree;
  using Stage = HierarchicalStage;
  using Phase = Stage::Phase;

 public:
  /// A round of a reduce-scatter among the children of a group.
  static constexpr void up(std::vector<Move>& moves, const Shape& shape, const Stage& stage) {
    if (stage.idle) return;
    const bool to_output = stage.outermost_step() && shape.operation == Operation::reduce_scatter;
    stage.each_run(stage.index, stage.count, false, [&](int block, int end) {
      while (block < end) {
        Move move;
        move.by = stage.rank;
        move.block = block;
        int stop = end;
        if (stage.direct) {
          for (int i = 0; i < stage.n; ++i) {
            const Tree::Node child = stage.child(i);
            const Tree::Charge charge = stage.tree.in_charge(child, block);
            stop = smaller(stop, charge.end);
            move.from.push_back(brought(shape, child, charge.rank, block, 1));
          }
        } else {
          const Tree::Node own = stage.child(stage.index);
          const Tree::Node other = stage.child((stage.index + stage.n - stage.distance) % stage.n);
          const Tree::Charge charge = stage.tree.in_charge(other, block);
          stop = smaller(stop, charge.end);
          // In the first step a child has joined the sums of the cuts that are less than half way around.
          const int cut = stage.tree.cut(stage.group, block).child;
          const int ahead = (cut - stage.index + stage.n) % stage.n + stage.distance;
          const bool joined = stage.step > 0;
          move.from.push_back(joined && ahead < stage.n / 2 ? sum(shape, charge.rank, block, 1)
                                                            : brought(shape, other, charge.rank, block, 1));
          move.from.push_back(joined ? sum(shape, stage.rank, block, 1) : brought(shape, own, stage.rank, block, 1));
        }
        for (Piece& piece : move.from) piece.count = stop - block;
        move.to.push_back(to_output ? Piece{stage.rank, Buffer::output, 0, stop - block}
                                    : sum(shape, stage.rank, block, stop - block));
        extend(moves, std::move(move));
        block = stop;
      }
    });
  }

  /// A round of an all-gather among them.
  static constexpr void down(std::vector<Move>& moves, const Shape& shape, const Stage& stage) {
    if (stage.idle || stands_for(shape, stage.child(stage.index))) return;
    const auto pull = [&](int block, int end) {
      while (block < end) {
        const int from =
            stage.direct ? stage.tree.cut(stage.group, block).child : (stage.index + stage.distance) % stage.n;
        const Tree::Node child = stage.child(from);
        Piece source{shape.root, Buffer::input, block, end - block};
        if (!stands_for(shape, child)) {
          const Tree::Charge charge = stage.tree.in_charge(child, block);
          source = Piece{charge.rank, Buffer::output, block, smaller(end, charge.end) - block};
          if (shape.operation == Operation::all_gather && stage.outermost_step()) {
            source.buffer = Buffer::input;
            source.slot = 0;
          }
        }
        extend(moves, copy(stage.rank, block, source, Piece{stage.rank, Buffer::output, block, source.count}));
        block += source.count;
      }
    };
    if (stage.direct) {
      stage.each_run(0, stage.index, false, pull);
      stage.each_run(stage.index + 1, stage.n - 1 - stage.index, false, pull);
    } else {
      stage.each_run((stage.index + stage.distance) % stage.n, stage.count, false, pull);
    }
  }

  /// The first round of a broadcast: everybody pulls from the root what it is in charge of.
  static constexpr void scatter(std::vector<Move>& moves, const Shape& shape, const Stage& stage) {
    const int rank = stage.rank;
    const auto pull = [&](int block, int end) {
      extend(moves, copy(rank, block, Piece{shape.root, Buffer::input, block, end - block},
                         Piece{rank, Buffer::output, block, end - block}));
    };
    if (rank == shape.root) {
      add_copy(moves, shape, rank, 0, Piece{rank, Buffer::input, 0, shape.ranks},
               Piece{rank, Buffer::output, 0, shape.ranks});
      return;
    }
    int level = 0;
    while (!stage.tree.of(level, rank).contains(shape.root)) ++level;
    stage.tree.each_run(stage.tree.charge_of(rank, level), pull);
  }

  /// The last round of a reduce: the root pulls.
  static constexpr void gather(std::vector<Move>& moves, const Shape& shape, const Stage& stage) {
    if (stage.rank != shape.root) return;
    for (int block = 0; block < shape.ranks;) {
      const Tree::Charge charge = stage.tree.in_charge(stage.tree.whole(), block);
      const int count = charge.end - block;
      if (charge.rank != shape.root) {
        extend(moves, copy(stage.rank, block, sum(shape, charge.rank, block, count),
                           Piece{stage.rank, Buffer::output, block, count}));
      }
      block = charge.end;
    }
  }

  /// The ranks that pull from a rank in a round up or down; some of them may be named more than once.
  static constexpr void readers(std::vector<int>& result, const Shape& shape, const Stage& stage) {
    if (stage.idle) return;
    const bool upwards = stage.phase == Phase::up;
    const bool stands_in = stands_for(shape, stage.child(stage.index));
    if (stands_in && stage.rank != shape.root) return;
    const auto add = [&](int child, int block, int end) {
      if (stands_for(shape, stage.child(child))) return;
      while (block < end) {
        const Tree::Charge charge = stage.tree.in_charge(stage.child(child), block);
        result.push_back(charge.rank);
        block = charge.end;
      }
    };
    if (!stage.direct) {
      const int child = (stage.index + (upwards ? stage.distance : stage.n - stage.distance)) % stage.n;
      stage.each_run(upwards ? child : stage.index, stage.count, stands_in,
                     [&](int block, int end) { add(child, block, end); });
    } else if (upwards) {
      const auto taken = [&](int block, int end) { add(stage.tree.cut(stage.group, block).child, block, end); };
      stage.each_run(0, stage.index, false, taken);
      stage.each_run(stage.index + 1, stage.n - 1 - stage.index, false, taken);
    } else {
      stage.each_run(stage.index, 1, stands_in, [&](int block, int end) {
        for (int child = 0; child < stage.n; ++child) {
          if (child != stage.index) add(child, block, end);
        }
      });
    }
  }

 private:
  /// Where the sum of more than one contribution lies.
  static constexpr Piece sum(const Shape& shape, int rank, int block, int count) {
    const bool output =
        shape.operation == Operation::all_reduce || (shape.operation == Operation::reduce && rank == shape.root);
    return Piece{rank, output ? Buffer::output : Buffer::scratch, block, count};
  }

  /// Where the rank in charge in a child holds what it brings to its group; a single rank has summed nothing yet.
  static constexpr Piece brought(const Shape& shape, const Tree::Node& child, int rank, int block, int count) {
    if (child.size() == 1) return Piece{rank, Buffer::input, block, count};
    return sum(shape, rank, block, count);
  }

  /// Adds a move, as a longer last one if it goes on where that ends.
  static constexpr void extend(std::vector<Move>& moves, Move move) {
    const int count = move.from[0].count;
    bool continues = !moves.empty() && moves.back().from.size() == move.from.size() &&
                     moves.back().block + moves.back().from[0].count == move.block;
    const auto follows = [](const Piece& a, const Piece& b) {
      return a.rank == b.rank && a.buffer == b.buffer && a.slot + a.count == b.slot;
    };
    for (std::size_t i = 0; continues && i < move.from.size(); ++i) {
      continues = follows(moves.back().from[i], move.from[i]);
    }
    if (!continues || !follows(moves.back().to[0], move.to[0])) {
      moves.push_back(std::move(move));
      return;
    }
    for (Piece& piece : moves.back().from) piece.count += count;
    moves.back().to[0].count += count;
  }

  /// Whether a child's part in a broadcast is played by the root, which holds everything.
  static constexpr bool stands_for(const Shape& shape, const Tree::Node& child) {
    return shape.operation == Operation::broadcast && child.contains(shape.root);
  }
};

}  // namespace meshwise::detail
