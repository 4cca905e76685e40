// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/schedule/detail/group_tree.hpp"
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
      : begins_(std::move(begins)), widest_direct_(widest_direct) {
    for (std::size_t level = 0; level < begins_.size(); ++level) {
      const std::vector<int>& own = begins_[level];
      if (own.empty() || own[0] != 0 || !ascending(own)) {
        refuse("groups that begin at rank 0 and then at higher and higher ranks", level);
      }
      int widest = 0;
      if (level > 0) {
        const std::vector<int>& below = begins_[level - 1];
        if (!std::includes(below.begin(), below.end(), own.begin(), own.end())) {
          refuse("groups that are unions of groups of the level below", level);
        }
        for (std::size_t i = 0, from = 0; i < own.size(); ++i) {
          std::size_t to = from;
          while (to < below.size() && (i + 1 == own.size() || below[to] < own[i + 1])) ++to;
          widest = std::max(widest, static_cast<int>(to - from));
          from = to;
        }
      } else {
        for (std::size_t i = 0; i + 1 < own.size(); ++i) widest = std::max(widest, own[i + 1] - own[i]);
      }
      widest_.push_back(widest);
    }
  }

  constexpr const std::vector<std::vector<int>>& begins() const { return begins_; }

  /// The first ranks of the groups of each level, innermost first, and how many children take one round, such as
  /// "hierarchical{0, 2, 4, 6}{0, 4}, direct up to 16".
  std::string description() const {
    std::string text = name;
    for (const std::vector<int>& level : begins_) text += detail::list_text(level);
    return text + ", direct up to " + std::to_string(widest_direct_);
  }

  constexpr bool supports(const Shape& shape) const {
    if (!valid(shape) || (!begins_.empty() && begins_[0].back() >= shape.ranks)) return false;
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
    for (int level = 0; level <= top(); ++level) once += rounds_of(shape, level);
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
    const Stage stage(*this, shape, rank, round);
    switch (stage.phase) {
      case Phase::scatter: scatter(moves, shape, stage); break;
      case Phase::up: up(moves, shape, stage); break;
      case Phase::down: down(moves, shape, stage); break;
      case Phase::gather: gather(moves, shape, stage); break;
    }
    return moves;
  }

  constexpr std::vector<int> partners(const Shape& shape, int rank, int round) const {
    std::vector<int> result;
    if (shape.ranks == 1) return result;
    const Stage stage(*this, shape, rank, round);
    switch (stage.phase) {
      case Phase::scatter:
        if (rank == shape.root) return detail::others(shape.ranks, rank);
        break;
      case Phase::gather: {
        bool any = false;
        if (rank != shape.root) stage.tree.each_run(stage.tree.charge_of(rank, top()), [&](int, int) { any = true; });
        if (any) result.push_back(shape.root);
        break;
      }
      default: readers(result, shape, stage); break;
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  friend constexpr bool operator==(const Hierarchical& a, const Hierarchical& b) {
    return a.begins_ == b.begins_ && a.widest_direct_ == b.widest_direct_;
  }

 private:
  using Tree = detail::GroupTree;
  enum class Phase { scatter, up, down, gather };

  static constexpr bool ascending(const std::vector<int>& numbers) {
    return std::adjacent_find(numbers.begin(), numbers.end(), [](int a, int b) { return a >= b; }) == numbers.end();
  }

  [[noreturn]] static void refuse(const char* expected, std::size_t level) {
    fail("Hierarchical", expected, "level " + std::to_string(level) + " is not so",
         "give each level as the first ranks of its groups, innermost level first, without the group of all ranks");
  }

  constexpr int top() const { return static_cast<int>(begins_.size()); }

  /// The children of the largest group of a level.
  constexpr int widest(const Shape& shape, int level) const {
    const auto at = static_cast<std::size_t>(level);
    if (level == top()) return level == 0 ? shape.ranks : static_cast<int>(begins_[at - 1].size());
    return level == 0 ? std::max(widest_[0], shape.ranks - begins_[0].back()) : widest_[at];
  }

  static constexpr int log_rounds(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

  constexpr int rounds_of(const Shape& shape, int level) const {
    const int n = widest(shape, level);
    return n == 1 ? 0 : n <= widest_direct_ ? 1 : log_rounds(n);
  }

  /// n halved k times, rounded up.
  static constexpr int skip(int n, int k) {
    for (; k > 0; --k) n -= n / 2;
    return n;
  }

  /// What a round is for one rank: its group of the level at work, and how far that level is.
  struct Stage {
    Tree tree;
    int rank;
    Phase phase = Phase::scatter;
    int step = 0;            ///< of the level, counted as in a reduce-scatter
    bool outermost = false;  ///< no group above has more than one child
    Tree::Node group;
    int n = 1;      ///< children of the group
    int index = 0;  ///< of the rank's own child
    bool idle = false;
    bool direct = true;
    int distance = 1;  ///< to the child that a child pulls from, in circulant rounds
    int count = 1;     ///< the cuts it pulls

    constexpr Stage(const Hierarchical& self, const Shape& shape, int own_rank, int round)
        : tree(self.begins_, shape.ranks,
               shape.operation == Operation::reduce_scatter || shape.operation == Operation::all_gather),
          rank(own_rank) {
      const int top = self.top();
      if (shape.operation == Operation::broadcast && round-- == 0) return;
      int level = 0;
      phase = Phase::up;
      const bool sums = shape.operation != Operation::broadcast && shape.operation != Operation::all_gather;
      while (sums && level <= top && round >= self.rounds_of(shape, level)) round -= self.rounds_of(shape, level++);
      if (!sums || level > top) {
        phase = shape.operation == Operation::reduce ? Phase::gather : Phase::down;
        if (phase == Phase::gather) return;
        level = top;
        while (round >= self.rounds_of(shape, level)) round -= self.rounds_of(shape, level--);
      }
      outermost = true;
      for (int above = level + 1; above <= top; ++above) outermost = outermost && self.rounds_of(shape, above) == 0;
      group = tree.of(level, rank);
      n = tree.children(group);
      index = tree.child_of(group, rank);
      direct = n <= self.widest_direct_;
      const int steps = n == 1 ? 0 : direct ? 1 : log_rounds(n);
      idle = round >= steps;
      if (idle) return;
      step = phase == Phase::up ? round : steps - 1 - round;
      if (direct) return;
      distance = skip(n, step + 1);
      count = skip(n, step) - distance;
    }

    /// Whether this is the last round of sums, or the first one of copies.
    constexpr bool outermost_step() const { return outermost && (direct || distance == 1); }
    constexpr Tree::Node child(int i) const { return tree.child(group, i); }

    /// Runs of blocks that children `low`, low + 1, ..., `number` of them and modulo n, have a right to, and for which
    /// `rank` is in charge in its own child; if `all`, whoever is.
    template <class Visit>
    constexpr void each_run(int low, int number, bool all, Visit visit) const {
      std::vector<Tree::Claim> claims;
      if (!all) claims = tree.charge_of(rank, group.level - 1);
      claims.push_back(Tree::Claim{group, low, std::min(low + number, n)});
      if (number > 0) tree.each_run(claims, visit);
      if (low + number <= n) return;
      claims.back() = Tree::Claim{group, 0, low + number - n};
      tree.each_run(claims, visit);
    }
  };

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
            stop = std::min(stop, charge.end);
            move.from.push_back(brought(shape, child, charge.rank, block, 1));
          }
        } else {
          const Tree::Node own = stage.child(stage.index);
          const Tree::Node other = stage.child((stage.index + stage.n - stage.distance) % stage.n);
          const Tree::Charge charge = stage.tree.in_charge(other, block);
          stop = std::min(stop, charge.end);
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
          source = Piece{charge.rank, Buffer::output, block, std::min(end, charge.end) - block};
          if (shape.operation == Operation::all_gather && stage.outermost_step()) {
            source.buffer = Buffer::input;
            source.slot = 0;
          }
        }
        extend(moves, detail::copy(stage.rank, block, source, Piece{stage.rank, Buffer::output, block, source.count}));
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

  /// Whether a child's part in a broadcast is played by the root, which holds everything.
  static constexpr bool stands_for(const Shape& shape, const Tree::Node& child) {
    return shape.operation == Operation::broadcast && child.contains(shape.root);
  }

  static constexpr void scatter(std::vector<Move>& moves, const Shape& shape, const Stage& stage) {
    const int rank = stage.rank;
    const auto pull = [&](int block, int end) {
      extend(moves, detail::copy(rank, block, Piece{shape.root, Buffer::input, block, end - block},
                                 Piece{rank, Buffer::output, block, end - block}));
    };
    if (rank == shape.root) {
      detail::add_copy(moves, shape, rank, 0, Piece{rank, Buffer::input, 0, shape.ranks},
                       Piece{rank, Buffer::output, 0, shape.ranks});
      return;
    }
    int level = 0;
    while (!stage.tree.of(level, rank).contains(shape.root)) ++level;
    stage.tree.each_run(stage.tree.charge_of(rank, level), pull);
  }

  static constexpr void gather(std::vector<Move>& moves, const Shape& shape, const Stage& stage) {
    if (stage.rank != shape.root) return;
    for (int block = 0; block < shape.ranks;) {
      const Tree::Charge charge = stage.tree.in_charge(stage.tree.whole(), block);
      const int count = charge.end - block;
      if (charge.rank != shape.root) {
        extend(moves, detail::copy(stage.rank, block, sum(shape, charge.rank, block, count),
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

  std::vector<std::vector<int>> begins_;
  std::vector<int> widest_;  ///< by level, as far as it does not depend on the number of ranks
  int widest_direct_ = 16;
};

static_assert(Generator<Hierarchical>);

}  // namespace meshwise
