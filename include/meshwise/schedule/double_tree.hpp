// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <vector>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

namespace detail {

/// A binary search tree over the positions `lowest` to `highest`, lowest 1 or 2: the bottom of a position's sub-tree
/// is as far away as its lowest set bit says, so odd positions are leaves and even ones are inner.
///
/// A position with lowest bit b has the positions b / 2 below and above it as children, and its sub-tree ends b - 1
/// from it on both sides; where a right child would lie beyond the end, the right child's left branch takes its place.
struct InorderTree {
  int lowest = 1;
  int highest = 0;

  constexpr bool empty() const { return highest < lowest; }

  constexpr int root() const { return static_cast<int>(std::bit_floor(static_cast<unsigned>(highest))); }

  /// 0 for the root.
  constexpr int parent(int position) const {
    if (position == root()) return 0;
    auto at = static_cast<unsigned>(position);
    do {
      const unsigned bit = at & (~at + 1);
      at = (at ^ bit) | (bit << 1);
    } while (at > static_cast<unsigned>(highest));
    return static_cast<int>(at);
  }

  /// 0 if there is none.
  constexpr int left(int position) const {
    const int half = (position & -position) / 2;
    return half == 0 || position - half < lowest ? 0 : position - half;
  }

  constexpr int right(int position) const {
    for (int half = (position & -position) / 2; half > 0; half /= 2) {
      if (position + half <= highest) return position + half;
    }
    return 0;
  }

  constexpr int depth(int position) const {
    int edges = 0;
    for (int at = parent(position); at != 0; at = parent(at)) ++edges;
    return edges;
  }

  /// The edges on the longest way down from the root.
  constexpr int height() const {
    if (highest <= lowest) return 0;
    return static_cast<int>(std::bit_width(static_cast<unsigned>(highest))) - 1;
  }
};

}  // namespace detail

/// Two binary trees, each for half of the blocks; a rank is a leaf in at least one of them, so that both directions of
/// its links are in use all the time.
///
/// all_reduce: both trees hold all ranks; partial sums climb to the tree's root, in the output, and the total descends.
/// broadcast and reduce: the trees hold the other ranks, counted from the root, which feeds both tree roots or combines
/// what they hold. A rank's round follows from its depth: its parent pulls one round after it has pulled from its own
/// children, which is what lanes need to pipeline the trees. One rank copies locally.
///
/// Rounds: all_reduce 2 floor(lg(p + 1)), broadcast 1 + floor(lg(p - 1)), reduce 1 + floor(lg p), but 1 for two ranks.
/// Blocks: every edge carries half a vector, once up or down: all_reduce reads 2p(p - 1) in all, broadcast and reduce
/// p(p - 1); the busiest rank 2p, p and p, and up to one block more if p is odd. Order: the second tree is the first
/// one shifted by a rank, both are search trees over ranks, and a rank folds left sub-tree, own, right sub-tree:
/// contributors stay in rank order (reduce: if the root is rank 0), combined as a tree. For that the second tree is a
/// level deeper if p + 1 (reduce: p) is a power of two; broadcast has no order to keep and wraps around instead.
/// Scratch: for reduce half of the blocks, the partial sums of inner ranks; otherwise none.
///
/// Source: Sanders, Speck and Traff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009; these
/// trees are derived from the bits of a position.
struct DoubleTree {
  static constexpr const char* name = "double_tree";

  static constexpr bool supports(const Shape& shape) {
    return valid(shape) && (shape.operation == Operation::all_reduce || shape.operation == Operation::broadcast ||
                            shape.operation == Operation::reduce);
  }

  static constexpr int rounds(const Shape& shape) {
    if (shape.ranks == 1) return shape.operation != Operation::reduce && shape.in_place ? 0 : 1;
    const int height = detail::larger(tree(shape, 0).height(), tree(shape, 1).height());
    return shape.operation == Operation::all_reduce ? 2 * height : height + 1;
  }

  static constexpr int scratch_slots(const Shape& shape) {
    return shape.operation == Operation::reduce && shape.ranks > 2 ? (shape.ranks + 1) / 2 : 0;
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    if (p == 1 || (shape.operation == Operation::broadcast && rank == shape.root && round == 0)) {
      const Piece input{rank, Buffer::input, 0, p};
      const Piece output{rank, Buffer::output, 0, p};
      if (shape.operation != Operation::reduce) {
        detail::add_copy(moves, shape, rank, 0, input, output);
      } else {
        moves.push_back(detail::copy(rank, 0, input, output));
      }
    }
    if (p == 1) return moves;
    for (const int half : {0, 1}) {
      const detail::InorderTree tree = DoubleTree::tree(shape, half);
      const int height = tree.height();
      const int position = DoubleTree::position(shape, half, rank);
      if (position == 0) {
        if (shape.operation == Operation::reduce && round == height) {
          Move move = detail::copy(rank, first(shape, half), piece(shape, half, rank, Buffer::input),
                                   piece(shape, half, rank, Buffer::output));
          move.from.push_back(partial(shape, half, tree, tree.root()));
          moves.push_back(std::move(move));
        }
        continue;
      }
      const int depth = tree.depth(position);
      if (shape.operation != Operation::broadcast && round == height - 1 - depth) {
        climb(moves, shape, half, tree, position);
      }
      if (shape.operation != Operation::reduce && round == descent(shape, height) + depth &&
          (depth > 0 || shape.operation == Operation::broadcast)) {
        const int source = depth > 0 ? DoubleTree::rank(shape, half, tree.parent(position)) : shape.root;
        moves.push_back(detail::copy(rank, first(shape, half),
                                     piece(shape, half, source, depth > 0 ? Buffer::output : Buffer::input),
                                     piece(shape, half, rank, Buffer::output)));
      }
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    std::vector<int> result;
    if (shape.ranks == 1) return result;
    const auto add = [&result](int partner) {
      for (const int known : result) {
        if (known == partner) return;
      }
      result.push_back(partner);
    };
    for (const int half : {0, 1}) {
      const detail::InorderTree tree = DoubleTree::tree(shape, half);
      const int height = tree.height();
      const int position = DoubleTree::position(shape, half, rank);
      if (position == 0) {
        if (shape.operation == Operation::broadcast && round == 0) add(DoubleTree::rank(shape, half, tree.root()));
        continue;
      }
      const int depth = tree.depth(position);
      if (shape.operation != Operation::broadcast && round == height - depth) {
        if (depth > 0) {
          add(DoubleTree::rank(shape, half, tree.parent(position)));
        } else if (shape.operation == Operation::reduce) {
          add(shape.root);
        }
      }
      if (shape.operation != Operation::reduce && round == descent(shape, height) + depth + 1) {
        for (const int child : {tree.left(position), tree.right(position)}) {
          if (child != 0) add(DoubleTree::rank(shape, half, child));
        }
      }
    }
    return result;
  }

 private:
  /// The first block of a tree; the deeper second tree has the smaller half.
  static constexpr int first(const Shape& shape, int half) { return half == 0 ? 0 : (shape.ranks + 1) / 2; }
  static constexpr int count(const Shape& shape, int half) { return (shape.ranks + 1 - half) / 2; }

  static constexpr int members(const Shape& shape) {
    return shape.operation == Operation::all_reduce ? shape.ranks : shape.ranks - 1;
  }

  static constexpr detail::InorderTree tree(const Shape& shape, int half) {
    const int n = members(shape);
    return half == 0 || shape.operation == Operation::broadcast ? detail::InorderTree{1, n}
                                                                : detail::InorderTree{2, n + 1};
  }

  /// The place of a rank in a tree, 0 for the root of a rooted operation, which is in neither.
  static constexpr int position(const Shape& shape, int half, int rank) {
    if (shape.operation == Operation::all_reduce) return rank + 1 + half;
    const int place = detail::around(shape.ranks, rank, -shape.root);
    if (place == 0 || half == 0) return place;
    return shape.operation == Operation::broadcast ? place % (shape.ranks - 1) + 1 : place + 1;
  }

  static constexpr int rank(const Shape& shape, int half, int position) {
    if (shape.operation == Operation::all_reduce) return position - 1 - half;
    int place = position;
    if (half == 1) place = shape.operation != Operation::broadcast || position > 1 ? position - 1 : shape.ranks - 1;
    return (place + shape.root) % shape.ranks;
  }

  /// The round in which the root of a tree would pull, on the way down.
  static constexpr int descent(const Shape& shape, int height) {
    return shape.operation == Operation::broadcast ? 0 : height - 1;
  }

  static constexpr Piece piece(const Shape& shape, int half, int rank, Buffer buffer) {
    return Piece{rank, buffer, buffer == Buffer::scratch ? 0 : first(shape, half), count(shape, half)};
  }

  /// Where the sum over the sub-tree of a position lies.
  static constexpr Piece partial(const Shape& shape, int half, const detail::InorderTree& tree, int position) {
    const bool leaf = tree.left(position) == 0 && tree.right(position) == 0;
    const Buffer inner = shape.operation == Operation::reduce ? Buffer::scratch : Buffer::output;
    return piece(shape, half, DoubleTree::rank(shape, half, position), leaf ? Buffer::input : inner);
  }

  /// An inner rank combines its own contribution with the sums of its children.
  static constexpr void climb(std::vector<Move>& moves, const Shape& shape, int half, const detail::InorderTree& tree,
                              int position) {
    const int left = tree.left(position);
    const int right = tree.right(position);
    if (left == 0 && right == 0) return;
    const int by = rank(shape, half, position);
    Move move;
    move.by = by;
    move.block = first(shape, half);
    if (left != 0) move.from.push_back(partial(shape, half, tree, left));
    move.from.push_back(piece(shape, half, by, Buffer::input));
    if (right != 0) move.from.push_back(partial(shape, half, tree, right));
    move.to.push_back(partial(shape, half, tree, position));
    moves.push_back(std::move(move));
  }
};

static_assert(Generator<DoubleTree>);

}  // namespace meshwise
