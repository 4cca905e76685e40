// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/detail/sort.hpp"
#include "meshwise/schedule/detail/hierarchical_moves.hpp"
#include "meshwise/schedule/detail/hierarchical_stage.hpp"
#include "meshwise/schedule/detail/nested_groups.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// Collectives over nested groups of ranks, such as sockets in nodes in racks, of any depth and of uneven sizes.
///
/// On each level the children of a group are peers that hold the same kind of data, spread over their ranks: for each
/// block one rank in each child is in charge. A reduce-scatter among the children leaves every block with one of them,
/// and its rank in charge there is in charge for the whole group; so the work of every level is shared by all ranks,
/// and only data that is fully reduced inside a group leaves it. all_reduce: reduce-scatters from the innermost level
/// out, then all-gathers back in. reduce_scatter and all_gather: one half of it. reduce: the first half, then the root
/// pulls. broadcast: a rank pulls from the root what it is in charge of in the smallest group that holds both; then
/// all-gathers, in which the root stands for all groups that contain it. One rank copies locally.
///
/// A group of at most `widest_direct` children takes one round: the rank in charge folds what all children hold. A
/// larger one takes ceil(lg n) circulant rounds for n children. A level takes as long as its largest group, and none if
/// it adds nothing to the level below.
/// Rounds: with t the sum over the levels, all_reduce 2t, reduce_scatter and all_gather t, broadcast and reduce t + 1.
/// Blocks that cross between the n children of a group: reduce_scatter, all_gather and broadcast (n - 1) p, all_reduce
/// 2(n - 1) p, the least possible; reduce (n - 1) p and then, on the levels above the root together, up to p that the
/// root pulls. Each rank has its share of them as far as the sizes allow.
/// Order: rank order, as a tree of left folds, if no group is circulant. Scratch: p slots for reduce and, if it takes
/// more than one round, for reduce_scatter; otherwise none.
/// Cost of `by` and `partners`: the levels times the logarithm of the groups, for each run of blocks in the rank's
/// charge: few, except in reduce_scatter and all_gather, where block b must end at or begin from rank b: one for each
/// innermost group.
///
/// Source: derived here. For two even levels it is the known composition of reduce-scatter in the node, all-reduce
/// between equal places of the nodes, and all-gather in the node.
class Hierarchical {
 public:
  static constexpr const char* name = "hierarchical";

  /// One flat group.
  constexpr Hierarchical() = default;

  /// begins: for each level, innermost first, the first ranks of its groups, ascending from 0; the groups of a level
  /// are unions of groups of the level below. The outermost group of all ranks is not named. Empty: one flat group.
  /// widest_direct: how many children a group may have for its level to take one round only.
  /// Cost: the number of groups. Errors: `invalid_argument`.
  explicit constexpr Hierarchical(std::vector<std::vector<int>> begins, int widest_direct = 16)
      : groups_(std::move(begins), widest_direct) {}

  constexpr const std::vector<std::vector<int>>& begins() const { return groups_.begins(); }

  /// The first ranks of the groups of each level, innermost first, and how many children take one round, such as
  /// "hierarchical{0, 2, 4, 6}{0, 4}, direct up to 16".
  std::string description() const {
    std::string text = name;
    for (const std::vector<int>& level : begins()) text += detail::list_text(level);
    return text + ", direct up to " + std::to_string(groups_.widest_direct());
  }

  constexpr bool supports(const Shape& shape) const {
    if (!valid(shape) || (!begins().empty() && begins()[0].back() >= shape.ranks)) return false;
    switch (shape.operation) {
      case Operation::all_reduce:
      case Operation::reduce_scatter:
      case Operation::all_gather:
      case Operation::broadcast:
      case Operation::reduce: return true;
      default: return false;
    }
  }

  constexpr int rounds(const Shape& shape) const {
    if (shape.ranks == 1) return shape.operation != Operation::reduce && shape.in_place ? 0 : 1;
    int once = 0;
    for (int level = 0; level <= groups_.top(); ++level) once += groups_.rounds_of(shape.ranks, level);
    if (shape.operation == Operation::all_reduce) return 2 * once;
    return rooted(shape.operation) ? once + 1 : once;
  }

  constexpr int scratch_slots(const Shape& shape) const {
    if (shape.ranks == 1) return 0;
    if (shape.operation == Operation::reduce) return shape.ranks;
    return shape.operation == Operation::reduce_scatter && rounds(shape) > 1 ? shape.ranks : 0;
  }

  constexpr std::vector<Move> by(const Shape& shape, int rank, int round) const {
    std::vector<Move> moves;
    const Piece input{rank, Buffer::input, 0, 1};
    if (shape.ranks == 1) {
      if (shape.operation == Operation::reduce) {
        moves.push_back(detail::copy(0, 0, input, Piece{0, Buffer::output, 0, 1}));
      } else {
        detail::add_copy(moves, shape, 0, 0, input, Piece{0, Buffer::output, 0, 1});
      }
      return moves;
    }
    if (round == 0 && shape.operation == Operation::all_gather) {
      detail::add_copy(moves, shape, rank, rank, input, Piece{rank, Buffer::output, rank, 1});
    }
    const detail::HierarchicalStage stage(groups_, shape, rank, round);
    switch (stage.phase) {
      case Phase::scatter: Moves::scatter(moves, shape, stage); break;
      case Phase::up: Moves::up(moves, shape, stage); break;
      case Phase::down: Moves::down(moves, shape, stage); break;
      case Phase::gather: Moves::gather(moves, shape, stage); break;
    }
    return moves;
  }

  constexpr std::vector<int> partners(const Shape& shape, int rank, int round) const {
    std::vector<int> result;
    if (shape.ranks == 1) return result;
    const detail::HierarchicalStage stage(groups_, shape, rank, round);
    switch (stage.phase) {
      case Phase::scatter:
        if (rank == shape.root) return detail::others(shape.ranks, rank);
        break;
      case Phase::gather: {
        bool any = false;
        if (rank != shape.root) {
          stage.tree.each_run(stage.tree.charge_of(rank, groups_.top()), [&](int, int) { any = true; });
        }
        if (any) result.push_back(shape.root);
        break;
      }
      default: Moves::readers(result, shape, stage); break;
    }
    detail::sort_and_unite(result);
    return result;
  }

  friend constexpr bool operator==(const Hierarchical& a, const Hierarchical& b) { return a.groups_ == b.groups_; }

 private:
  using Moves = detail::HierarchicalMoves;
  using Phase = detail::HierarchicalStage::Phase;

  detail::NestedGroups groups_;
};

static_assert(Generator<Hierarchical>);

}  // namespace meshwise
