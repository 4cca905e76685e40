// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/schedule/detail/group_tree.hpp"
#include "meshwise/schedule/detail/nested_groups.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise::detail {

/// What a round is for one rank: its group of the level at work, and how far that level is.
struct HierarchicalStage {
  enum class Phase { scatter, up, down, gather };

  GroupTree tree;
  int rank;
  Phase phase = Phase::scatter;
  int step = 0;            ///< of the level, counted as in a reduce-scatter
  bool outermost = false;  ///< no group above has more than one child
  GroupTree::Node group;
  int n = 1;      ///< children of the group
  int index = 0;  ///< of the rank's own child
  bool idle = false;
  bool direct = true;
  int distance = 1;  ///< to the child that a child pulls from, in circulant rounds
  int count = 1;     ///< the cuts it pulls

  constexpr HierarchicalStage(const NestedGroups& groups, const Shape& shape, int own_rank, int round)
      : tree(groups.begins(), shape.ranks,
             shape.operation == Operation::reduce_scatter || shape.operation == Operation::all_gather),
        rank(own_rank) {
    const int top = groups.top();
    const auto rounds_of = [&](int level) { return groups.rounds_of(shape.ranks, level); };
    if (shape.operation == Operation::broadcast && round-- == 0) return;
    int level = 0;
    phase = Phase::up;
    const bool sums = shape.operation != Operation::broadcast && shape.operation != Operation::all_gather;
    while (sums && level <= top && round >= rounds_of(level)) round -= rounds_of(level++);
    if (!sums || level > top) {
      phase = shape.operation == Operation::reduce ? Phase::gather : Phase::down;
      if (phase == Phase::gather) return;
      level = top;
      while (round >= rounds_of(level)) round -= rounds_of(level--);
    }
    outermost = true;
    for (int above = level + 1; above <= top; ++above) outermost = outermost && rounds_of(above) == 0;
    group = tree.of(level, rank);
    n = tree.children(group);
    index = tree.child_of(group, rank);
    direct = n <= groups.widest_direct();
    const int steps = n == 1 ? 0 : direct ? 1 : NestedGroups::log_rounds(n);
    idle = round >= steps;
    if (idle) return;
    step = phase == Phase::up ? round : steps - 1 - round;
    if (direct) return;
    distance = skip(n, step + 1);
    count = skip(n, step) - distance;
  }

  /// Whether this is the last round of sums, or the first one of copies.
  constexpr bool outermost_step() const { return outermost && (direct || distance == 1); }
  constexpr GroupTree::Node child(int i) const { return tree.child(group, i); }

  /// Runs of blocks that children `low`, low + 1, ..., `number` of them and modulo n, have a right to, and for which
  /// `rank` is in charge in its own child; if `all`, whoever is.
  template <class Visit>
  constexpr void each_run(int low, int number, bool all, Visit visit) const {
    List<GroupTree::Claim> claims;
    if (!all) claims = tree.charge_of(rank, group.level - 1);
    claims.push_back(GroupTree::Claim{group, low, smaller(low + number, n)});
    if (number > 0) tree.each_run(claims, visit);
    if (low + number <= n) return;
    claims.back() = GroupTree::Claim{group, 0, low + number - n};
    tree.each_run(claims, visit);
  }

 private:
  /// n halved k times, rounded up.
  static constexpr int skip(int n, int k) {
    for (; k > 0; --k) n -= n / 2;
    return n;
  }
};

}  // namespace meshwise::detail
