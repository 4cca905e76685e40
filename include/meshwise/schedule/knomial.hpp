// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

namespace detail {

/// "binomial" for radix 2, else "knomial" and the radix.
template <int radix>
constexpr std::array<char, 24> knomial_name() {
  std::array<char, 24> text{};
  std::size_t length = 0;
  for (const char* letter = radix == 2 ? "binomial" : "knomial"; *letter != '\0'; ++letter) text[length++] = *letter;
  if (radix == 2) return text;
  std::size_t digits = 0;
  for (int rest = radix; rest > 0; rest /= 10) ++digits;
  for (int rest = radix; rest > 0; rest /= 10) text[length + --digits] = static_cast<char>('0' + rest % 10);
  return text;
}

template <int radix>
inline constexpr std::array<char, 24> knomial_text = knomial_name<radix>();

}  // namespace detail

/// One tree over the ranks in the order root, root + 1, ..., in which a parent is found by clearing the lowest digit
/// of the own place that is not zero, in base `radix`; a sub-tree is a range of places.
///
/// Rounds: ceil(log_radix p), one for each digit. broadcast: from the highest digit down, a child pulls all p blocks
/// from its parent. reduce: from the lowest digit up, a parent folds its own partial sum and those of its children.
/// gather and scatter move each sub-tree as one range of blocks, two where it wraps at the last rank. One rank copies
/// locally.
///
/// Blocks: broadcast and reduce p for each of p - 1 edges; the root of a reduce reads p for each of its children,
/// (radix - 1) p a round. gather and scatter: each edge carries its sub-tree, p - 1 at the root, the least possible.
/// Order: the contributors of a reduce are root, root + 1, ..., which is rank order if the root is rank 0, combined
/// as a tree, not as a left fold. Scratch: reduce p slots (partial sums of inner ranks); gather and scatter the
/// largest sub-tree below the root, at most p / 2 for radix 2; none where all children are leaves.
/// Source: the binomial trees of message-passing libraries, here derived from the digits of a place.
template <int radix>
struct Knomial {
  static_assert(radix >= 2 && radix <= 1024, "a tree needs at least one child for each digit");

  static constexpr const char* name = detail::knomial_text<radix>.data();

  static constexpr bool supports(const Shape& shape) { return valid(shape) && rooted(shape.operation); }

  static constexpr int rounds(const Shape& shape) {
    if (shape.ranks > 1) return digits(shape.ranks);
    return shape.operation == Operation::broadcast && shape.in_place ? 0 : 1;
  }

  static constexpr int scratch_slots(const Shape& shape) {
    const int p = shape.ranks;
    if (shape.operation == Operation::broadcast) return 0;
    if (shape.operation == Operation::reduce) return p > radix + 1 ? p : 0;
    // The children of the root with the highest digit, or the highest but one if p cuts those short.
    if (p <= radix + 1) return 0;
    const std::int64_t top = stride(digits(p) - 1);
    return static_cast<int>(detail::larger(detail::smaller(top, p - top), top / radix));
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    if (round == 0) begin(moves, shape, rank);
    if (p == 1) return moves;
    const Node node(shape, rank, round);
    if (downwards(shape)) {
      if (node.parent < 0) {
        // What an inner rank keeps for itself of what it forwarded.
        if (shape.operation == Operation::scatter && round == digits(p) - 1 && rank != shape.root &&
            subtree(p, node.place) > 1) {
          moves.push_back(
              detail::copy(rank, rank, Piece{rank, Buffer::scratch, 0, 1}, Piece{rank, Buffer::output, 0, 1}));
        }
        return moves;
      }
      if (shape.operation == Operation::broadcast) {
        const int parent = absolute(shape, node.parent);
        const Buffer source = node.parent == 0 ? Buffer::input : Buffer::output;
        moves.push_back(detail::copy(rank, 0, Piece{parent, source, 0, p}, Piece{rank, Buffer::output, 0, p}));
      } else {
        transfer(moves, shape, rank, node.place, node.parent, node.place, subtree(p, node.place));
      }
      return moves;
    }
    if (node.children == 0) return moves;
    if (shape.operation == Operation::reduce) {
      Move move;
      move.by = rank;
      const Piece result = partial(shape, node.place);
      move.from.push_back(round == 0 ? Piece{rank, Buffer::input, 0, p} : result);
      for (int d = 1; d <= node.children; ++d) {
        const int child = node.place + d * node.stride;
        const bool leaf = round == 0 || child + 1 >= p;
        move.from.push_back(leaf ? Piece{absolute(shape, child), Buffer::input, 0, p} : partial(shape, child));
      }
      move.to.push_back(result);
      moves.push_back(std::move(move));
    } else {
      for (int d = 1; d <= node.children; ++d) {
        const int child = node.place + d * node.stride;
        transfer(moves, shape, rank, child, child, node.place, detail::smaller(node.stride, p - child));
      }
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    std::vector<int> result;
    if (shape.ranks == 1) return result;
    const Node node(shape, rank, round);
    if (downwards(shape)) {
      for (int d = 1; d <= node.children; ++d) result.push_back(absolute(shape, node.place + d * node.stride));
    } else if (node.parent >= 0) {
      result.push_back(absolute(shape, node.parent));
    }
    return result;
  }

 private:
  static constexpr int digits(int ranks) {
    int count = 0;
    for (std::int64_t reach = 1; reach < ranks; reach *= radix) ++count;
    return count;
  }

  static constexpr std::int64_t stride(int digit) {
    std::int64_t result = 1;
    for (int k = 0; k < digit; ++k) result *= radix;
    return result;
  }

  static constexpr bool downwards(const Shape& shape) {
    return shape.operation == Operation::broadcast || shape.operation == Operation::scatter;
  }

  static constexpr int absolute(const Shape& shape, int place) { return (place + shape.root) % shape.ranks; }

  /// The edges of a rank's node in one round.
  struct Node {
    int place;         ///< counted from the root
    int stride;        ///< the weight of the digit of this round
    int parent = -1;   ///< the place of the parent if the edge to it is one of this round
    int children = 0;  ///< those at place + d * stride, d from 1

    constexpr Node(const Shape& shape, int rank, int round)
        : place(detail::around(shape.ranks, rank, -shape.root)),
          stride(static_cast<int>(Knomial::stride(downwards(shape) ? digits(shape.ranks) - 1 - round : round))) {
      if (place % stride != 0) return;
      const int digit = place / stride % radix;
      if (digit != 0) {
        parent = place - digit * stride;
      } else {
        children = detail::smaller(radix - 1, (shape.ranks - 1 - place) / stride);
      }
    }
  };

  /// The number of places below a place other than 0, itself included.
  static constexpr int subtree(int p, int place) {
    std::int64_t size = 1;
    while (place % (size * radix) == 0) size *= radix;
    return static_cast<int>(detail::smaller<std::int64_t>(size, p - place));
  }

  /// Where the partial sums of an inner place lie.
  static constexpr Piece partial(const Shape& shape, int place) {
    return Piece{absolute(shape, place), place == 0 ? Buffer::output : Buffer::scratch, 0, shape.ranks};
  }

  /// The blocks of `count` places from `first` on, from the memory of one place to that of another one.
  static constexpr void transfer(std::vector<Move>& moves, const Shape& shape, int by, int first, int from, int to,
                                 int count) {
    for (int done = 0; done < count;) {
      const int block = absolute(shape, first + done);
      const int run = detail::smaller(count - done, shape.ranks - block);
      moves.push_back(
          detail::copy(by, block, holding(shape, from, first + done, run), holding(shape, to, first + done, run)));
      done += run;
    }
  }

  /// Where a place holds the blocks of `count` places from `first` on, which do not wrap.
  static constexpr Piece holding(const Shape& shape, int place, int first, int count) {
    const bool gather = shape.operation == Operation::gather;
    const int rank = absolute(shape, place);
    if (place == 0) return Piece{rank, gather ? Buffer::output : Buffer::input, absolute(shape, first), count};
    if (subtree(shape.ranks, place) == 1) return Piece{rank, gather ? Buffer::input : Buffer::output, 0, 1};
    return Piece{rank, Buffer::scratch, first - place, count};
  }

  /// The local copies of the first round.
  static constexpr void begin(std::vector<Move>& moves, const Shape& shape, int rank) {
    const int p = shape.ranks;
    const bool root = rank == shape.root;
    switch (shape.operation) {
      case Operation::broadcast:
        if (root)
          detail::add_copy(moves, shape, rank, 0, Piece{rank, Buffer::input, 0, p}, Piece{rank, Buffer::output, 0, p});
        break;
      case Operation::reduce:
        if (p == 1)
          moves.push_back(detail::copy(rank, 0, Piece{rank, Buffer::input, 0, 1}, Piece{rank, Buffer::output, 0, 1}));
        break;
      case Operation::gather: {
        const int place = detail::around(p, rank, -shape.root);
        if (root || subtree(p, place) > 1) {
          moves.push_back(detail::copy(rank, rank, Piece{rank, Buffer::input, 0, 1}, holding(shape, place, place, 1)));
        }
        break;
      }
      case Operation::scatter:
        if (root)
          moves.push_back(
              detail::copy(rank, rank, Piece{rank, Buffer::input, rank, 1}, Piece{rank, Buffer::output, 0, 1}));
        break;
      default: break;
    }
  }
};

/// The tree of radix 2: each rank has at most one child a round.
using Binomial = Knomial<2>;

static_assert(Generator<Binomial> && Generator<Knomial<4>>);

}  // namespace meshwise
