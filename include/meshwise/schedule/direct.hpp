// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// The ranks share the work by blocks and touch each other's memory at will: rank b sees to block b of everybody.
///
/// all_reduce: rank b reads block b of everybody, combines in rank order and stores the result at everybody: every
/// input byte is read once and every output byte written once, the floor of any memory-to-memory all-reduce.
/// reduce_scatter: rank b combines block b. reduce: rank b combines block b and stores it at the root. all_gather:
/// every rank multicasts its block. broadcast: rank b multicasts the root's block b. gather: every rank pushes its
/// block to the root. scatter: every rank pulls its block from the root. all_to_all: every rank pulls its p blocks,
/// beginning with its own. Scans: rank b walks along block b of ranks 0, 1, ..., each prefix being the one before and
/// one contribution more; no rank ever waits for another's step. exclusive_scan in place must read a contribution
/// before the prefix overwrites it, and carries the running prefix in scratch.
///
/// Rounds: 1; scans one for each rank along the walk, which only order the moves of one rank.
/// Cost per rank, in blocks of a p-th of the vector, of other ranks: all_reduce reads p - 1 and writes p - 1;
/// reduce_scatter and all_to_all read p - 1; reduce reads p - 1 and writes 1; all_gather writes p - 1; broadcast reads
/// 1 and writes p - 1; gather writes 1; scatter reads 1; a scan reads at most 2(p - 1), an exclusive one in place at
/// most p, and writes at most p - 1.
/// Scratch: exclusive_scan in place up to 3 slots, else none. Order: a left fold over the ranks from 0 on, at once or,
/// in scans, prefix by prefix; hence reproducible.
struct Direct {
  static constexpr const char* name = "direct";

  static constexpr bool supports(const Shape& shape) { return valid(shape) && shape.operation != Operation::exchange; }

  static constexpr int rounds(const Shape& shape) {
    if (shape.operation == Operation::inclusive_scan) return shape.ranks;
    if (shape.operation == Operation::exclusive_scan) return carried(shape) ? shape.ranks : shape.ranks - 1;
    return 1;
  }

  static constexpr int scratch_slots(const Shape& shape) {
    if (!carried(shape)) return 0;
    return shape.ranks < 5 ? shape.ranks - 2 : 3;
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    switch (shape.operation) {
      case Operation::all_reduce:
      case Operation::reduce_scatter:
      case Operation::reduce: fold(moves, shape, rank); break;
      case Operation::all_gather: multicast(moves, shape, rank, rank, Piece{rank, Buffer::input, 0, 1}); break;
      case Operation::broadcast: multicast(moves, shape, rank, rank, Piece{shape.root, Buffer::input, rank, 1}); break;
      case Operation::all_to_all:
        for (int k = 0; k < shape.ranks; ++k) {
          const int peer = (rank + k) % shape.ranks;
          moves.push_back(detail::copy(rank, peer * shape.ranks + rank, Piece{peer, Buffer::input, rank, 1},
                                       Piece{rank, Buffer::output, peer, 1}));
        }
        break;
      case Operation::gather:
        moves.push_back(
            detail::copy(rank, rank, Piece{rank, Buffer::input, 0, 1}, Piece{shape.root, Buffer::output, rank, 1}));
        break;
      case Operation::scatter:
        moves.push_back(
            detail::copy(rank, rank, Piece{shape.root, Buffer::input, rank, 1}, Piece{rank, Buffer::output, 0, 1}));
        break;
      case Operation::inclusive_scan:
        if (round == 0) {
          detail::add_copy(moves, shape, rank, rank, Piece{0, Buffer::input, rank, 1},
                           Piece{0, Buffer::output, rank, 1});
        } else {
          moves.push_back(detail::copy(rank, rank, Piece{round - 1, Buffer::output, rank, 1},
                                       Piece{round, Buffer::output, rank, 1}));
          moves.back().from.push_back(Piece{round, Buffer::input, rank, 1});
        }
        break;
      case Operation::exclusive_scan:
        carried(shape) ? carry(moves, shape, rank, round) : walk(moves, rank, round);
        break;
      case Operation::exchange: break;
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    bool touched = true;
    if (shape.operation == Operation::gather || shape.operation == Operation::scatter) touched = rank == shape.root;
    if (shape.operation == Operation::inclusive_scan) touched = round == rank || round == rank + 1;
    if (shape.operation == Operation::exclusive_scan) {
      touched = round == rank || round == rank - 1 || (rank == 0 && round == 1 && carried(shape));
    }
    if (!touched) return {};
    return detail::others(shape.ranks, rank);
  }

 private:
  /// Whether the running prefix needs scratch: where a prefix overwrites a contribution that somebody still needs.
  static constexpr bool carried(const Shape& shape) {
    return shape.operation == Operation::exclusive_scan && shape.in_place && shape.ranks > 2;
  }

  static constexpr void fold(std::vector<Move>& moves, const Shape& shape, int rank) {
    // One rank in place would copy its vector onto itself; a reduce must not look at whether it is in place.
    if (shape.ranks == 1 && shape.in_place && !rooted(shape.operation)) return;
    Move move;
    move.by = rank;
    move.block = rank;
    for (int peer = 0; peer < shape.ranks; ++peer) move.from.push_back(Piece{peer, Buffer::input, rank, 1});
    if (shape.operation == Operation::reduce_scatter) {
      move.to.push_back(Piece{rank, Buffer::output, 0, 1});
    } else if (shape.operation == Operation::reduce) {
      move.to.push_back(Piece{shape.root, Buffer::output, rank, 1});
    } else {
      for (int peer = 0; peer < shape.ranks; ++peer) move.to.push_back(Piece{peer, Buffer::output, rank, 1});
    }
    moves.push_back(std::move(move));
  }

  static constexpr void multicast(std::vector<Move>& moves, const Shape& shape, int rank, int block, Piece from) {
    Move move;
    move.by = rank;
    move.block = block;
    move.from.push_back(from);
    for (int peer = 0; peer < shape.ranks; ++peer) {
      const Piece to{peer, Buffer::output, block, 1};
      if (place(shape, from) != place(shape, to)) move.to.push_back(to);
    }
    if (!move.to.empty()) moves.push_back(std::move(move));
  }

  /// exclusive_scan, round k: the output of rank k + 1 from the output and the input of rank k.
  static constexpr void walk(std::vector<Move>& moves, int rank, int round) {
    Move move;
    move.by = rank;
    move.block = rank;
    if (round > 0) move.from.push_back(Piece{round, Buffer::output, rank, 1});
    move.from.push_back(Piece{round, Buffer::input, rank, 1});
    move.to.push_back(Piece{round + 1, Buffer::output, rank, 1});
    moves.push_back(std::move(move));
  }

  /// exclusive_scan in place, round k: the prefix for rank k + 2 from that for rank k + 1 and the input of rank k + 1;
  /// and the output of rank k, whose input the round before has read. Three prefixes are alive at a time.
  static constexpr void carry(std::vector<Move>& moves, const Shape& shape, int rank, int round) {
    const auto prefix = [rank](int reader) {
      return reader == 1 ? Piece{0, Buffer::input, rank, 1} : Piece{rank, Buffer::scratch, (reader - 2) % 3, 1};
    };
    if (round > 0) {
      moves.push_back(detail::copy(rank, rank, prefix(round), Piece{round, Buffer::output, rank, 1}));
    }
    if (round + 2 < shape.ranks) {
      moves.push_back(detail::copy(rank, rank, prefix(round + 1), prefix(round + 2)));
      moves.back().from.push_back(Piece{round + 1, Buffer::input, rank, 1});
    }
  }
};

static_assert(Generator<Direct>);

}  // namespace meshwise
