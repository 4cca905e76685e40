// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sorted.hpp"

namespace meshwise::detail {

/// Ranks in nested groups, and for every group the rule by which its children share the blocks.
///
/// A node is a run of ranks: level -1 is a single rank, level 0 an innermost group, the highest level everybody. Block
/// b belongs, in a node, to the child that `cut` says; following the cuts down to one rank gives the rank in charge of
/// b in that node, so that the rank in charge in a node is in charge in one of its children too.
///
/// Two rules. By position: the blocks are cut as digits in a mixed radix, members of an innermost group first, so that
/// a rank's blocks are a run of which each further level takes a part: few long pieces. By home: block b belongs to
/// rank b at last; a node that does not contain rank b cuts like the node of its level that does, in proportion.
/// Cost: of every member the levels times the logarithm of the groups. Lifetime: refers to `begins`.
class GroupTree {
 public:
  struct Node {
    int level = -1;
    int first = 0;
    int last = 1;  ///< one past the end

    constexpr int size() const { return last - first; }
    constexpr bool contains(int rank) const { return first <= rank && rank < last; }
  };

  /// A child, and the first block that may belong to another one.
  struct Cut {
    int child = 0;
    int end = 0;
  };

  /// The rank in charge of a block, and the first block that may have another one.
  struct Charge {
    int rank = 0;
    int end = 0;
  };

  /// Blocks that children `low` to `high` - 1 of a node have a right to.
  struct Claim {
    Node node;
    int low = 0;
    int high = 0;
  };

  constexpr GroupTree(const std::vector<std::vector<int>>& begins, int ranks, bool by_home)
      : begins_(begins), ranks_(ranks), by_home_(by_home) {}

  constexpr int top() const { return static_cast<int>(begins_.size()); }
  constexpr Node whole() const { return Node{top(), 0, ranks_}; }

  constexpr Node of(int level, int rank) const {
    if (level < 0) return Node{-1, rank, rank + 1};
    if (level == top()) return whole();
    return run(level, ordinal(level, rank));
  }

  constexpr int children(const Node& node) const {
    if (node.level == 0) return node.size();
    return ordinal(node.level - 1, node.last - 1) - ordinal(node.level - 1, node.first) + 1;
  }

  constexpr Node child(const Node& node, int index) const {
    if (node.level == 0) return Node{-1, node.first + index, node.first + index + 1};
    return run(node.level - 1, ordinal(node.level - 1, node.first) + index);
  }

  constexpr int child_of(const Node& node, int rank) const {
    if (node.level == 0) return rank - node.first;
    return ordinal(node.level - 1, rank) - ordinal(node.level - 1, node.first);
  }

  constexpr Cut cut(const Node& node, int block) const {
    const int n = children(node);
    if (by_home_) {
      const Node home = of(node.level, block);
      const std::int64_t like = children(home);
      const auto index = static_cast<int>(child_of(home, block) * std::int64_t{n} / like);
      const auto next = static_cast<int>(((index + 1) * like + n - 1) / n);
      return Cut{index, next < like ? child(home, next).first : home.last};
    }
    const std::int64_t digits = weight(node, n) * n;
    const std::int64_t digit = block * digits / ranks_;
    return Cut{static_cast<int>(digit % n), beginning(digit + 1, digits)};
  }

  /// The first block, from `block` on, that meets a claim; `ranks` or more if there is none.
  constexpr int next(const Claim& claim, int block) const {
    const int n = children(claim.node);
    if (claim.low <= 0 && claim.high >= n) return block;
    while (block < ranks_) {
      const int index = cut(claim.node, block).child;
      if (claim.low <= index && index < claim.high) return block;
      if (by_home_) {
        const Node home = of(claim.node.level, block);
        const std::int64_t like = children(home);
        const auto wanted = static_cast<int>((claim.low * like + n - 1) / n);
        block = index < claim.low && wanted < like ? child(home, wanted).first : home.last;
      } else {
        const std::int64_t digits = weight(claim.node, n) * n;
        const std::int64_t digit = block * digits / ranks_;
        block = beginning(digit - index + claim.low + (index < claim.low ? 0 : n), digits);
      }
    }
    return block;
  }

  constexpr Charge in_charge(Node node, int block) const {
    int end = ranks_;
    while (node.level >= 0) {
      const Cut here = cut(node, block);
      end = smaller(end, here.end);
      node = child(node, here.child);
    }
    return Charge{node.first, end};
  }

  /// What makes `rank` the one in charge in its node of a level: a claim in each node from level 0 up to there.
  constexpr List<Claim> charge_of(int rank, int level) const {
    List<Claim> claims;
    for (int l = 0; l <= level; ++l) {
      const Node node = of(l, rank);
      const int index = child_of(node, rank);
      claims.push_back(Claim{node, index, index + 1});
    }
    return claims;
  }

  /// Calls visit(begin, end) for all runs of blocks that meet all claims, in order; no cut of a claim changes in a run.
  template <class Visit>
  constexpr void each_run(const List<Claim>& claims, Visit visit) const {
    for (int block = 0; block < ranks_;) {
      const int before = block;
      for (const Claim& claim : claims) {
        block = next(claim, block);
        if (block >= ranks_) return;
      }
      if (block != before) continue;
      int end = ranks_;
      for (const Claim& claim : claims) end = smaller(end, cut(claim.node, block).end);
      visit(block, end);
      block = end;
    }
  }

 private:
  /// Which group of a level a rank belongs to.
  constexpr int ordinal(int level, int rank) const {
    const std::vector<int>& begins = begins_[static_cast<std::size_t>(level)];
    return static_cast<int>(first_not_before(begins, [rank](int begin) { return begin <= rank; })) - 1;
  }

  constexpr Node run(int level, int index) const {
    const std::vector<int>& begins = begins_[static_cast<std::size_t>(level)];
    const auto at = static_cast<std::size_t>(index);
    return Node{level, begins[at], at + 1 < begins.size() ? begins[at + 1] : ranks_};
  }

  /// The ranks of a child, rounded up from the average: into how many runs the levels below cut the blocks.
  static constexpr std::int64_t weight(const Node& node, int children) {
    return (node.size() + children - 1) / children;
  }

  /// The first block of a digit, or of a later one if that is empty.
  constexpr int beginning(std::int64_t digit, std::int64_t digits) const {
    return static_cast<int>((digit * ranks_ + digits - 1) / digits);
  }

  const std::vector<std::vector<int>>& begins_;
  int ranks_;
  bool by_home_;
};

}  // namespace meshwise::detail
