// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// For ranks that cannot reach each other's buffers: a rank's input and output are touched by that rank only, and what
/// crosses ranks lies in scratch that its owner writes and the others read.
///
/// all_reduce: every rank copies the blocks of the others to its scratch, rank b combines block b of everybody into its
/// output and its scratch, and all copy the results of the others from there. reduce_scatter is the first two of these
/// rounds; in reduce only the root takes the third. all_gather, broadcast, gather, scatter, all_to_all: who has what
/// others want copies it to its scratch, then they copy it from there. Scans are a chain: rank r combines the prefix in
/// the scratch of rank r - 1 and its own contribution into its output and its scratch; an exclusive one copies the
/// prefix of rank r - 1 to its output a round later, when its contribution, which may lie there, has been read.
///
/// Rounds: all_reduce and reduce 3; reduce_scatter, all_gather, broadcast, gather, scatter, all_to_all 2; scans p; on
/// one rank those of Direct. From the first round in which a rank does something or somebody reads its scratch to the
/// last there are at most `span`, so that slices of the blocks can follow each other through few copies of the scratch.
/// Cost per rank, in blocks of a p-th of the vector, read from others: all_reduce 2(p - 1); reduce p - 1, and the root
/// twice as many; reduce_scatter, all_gather, all_to_all and gather's root p - 1; scatter 1; broadcast p;
/// inclusive_scan p; exclusive_scan p, and p more for all ranks but the first and the last. Nobody writes to another
/// rank's memory; what others read, its owner has copied or combined once.
/// Scratch: p slots; reduce_scatter, scatter and all_to_all p - 1; all_gather and gather 1. In place too.
/// Order: a left fold over the ranks from 0 on in one move, in scans prefix by prefix: the bits of Direct, hence
/// reproducible.
struct Staged {
  static constexpr const char* name = "staged";
  static constexpr int span = 3;  ///< rounds

  static constexpr bool supports(const Shape& shape) { return Direct::supports(shape); }

  static constexpr int rounds(const Shape& shape) {
    if (shape.ranks == 1) return Direct::rounds(shape);
    switch (shape.operation) {
      case Operation::all_reduce:
      case Operation::reduce: return 3;
      case Operation::inclusive_scan:
      case Operation::exclusive_scan: return shape.ranks;
      default: return 2;
    }
  }

  static constexpr int scratch_slots(const Shape& shape) {
    if (shape.ranks == 1) return Direct::scratch_slots(shape);
    switch (shape.operation) {
      case Operation::all_gather:
      case Operation::gather: return 1;
      case Operation::reduce_scatter:
      case Operation::scatter:
      case Operation::all_to_all: return shape.ranks - 1;
      default: return shape.ranks;
    }
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    if (shape.ranks == 1) return Direct::by(shape, rank, round);
    std::vector<Move> moves;
    switch (shape.operation) {
      case Operation::all_reduce:
      case Operation::reduce:
      case Operation::reduce_scatter:
        if (round == 0) give(moves, shape, rank);
        if (round == 1) fold(moves, shape, rank);
        if (round == 2 && (shape.operation == Operation::all_reduce || rank == shape.root)) {
          for (const int peer : detail::others(shape.ranks, rank)) {
            moves.push_back(detail::copy(rank, peer, scratch(peer, peer), Piece{rank, Buffer::output, peer, 1}));
          }
        }
        break;
      case Operation::all_gather:
      case Operation::gather: collect(moves, shape, rank, round); break;
      case Operation::scatter:
        if (round == 0 && rank == shape.root) {
          moves.push_back(detail::copy(rank, rank, Piece{rank, Buffer::input, rank, 1}, Piece{rank, Buffer::output}));
          give(moves, shape, rank);
        }
        if (round == 1 && rank != shape.root) {
          moves.push_back(detail::copy(rank, rank, given(shape, shape.root, rank), Piece{rank, Buffer::output, 0, 1}));
        }
        break;
      case Operation::all_to_all:
        if (round == 0) {
          give(moves, shape, rank);
          moves.push_back(detail::copy(rank, rank * shape.ranks + rank, Piece{rank, Buffer::input, rank, 1},
                                       Piece{rank, Buffer::output, rank, 1}));
        } else {
          for (const int peer : detail::others(shape.ranks, rank)) {
            moves.push_back(detail::copy(rank, peer * shape.ranks + rank, given(shape, peer, rank),
                                         Piece{rank, Buffer::output, peer, 1}));
          }
        }
        break;
      case Operation::broadcast:
        if (round == 0 && rank == shape.root) {
          moves.push_back(
              detail::copy(rank, 0, whole(shape, rank, Buffer::input), whole(shape, rank, Buffer::scratch)));
          if (!shape.in_place) moves.back().to.push_back(whole(shape, rank, Buffer::output));
        }
        if (round == 1 && rank != shape.root) {
          moves.push_back(
              detail::copy(rank, 0, whole(shape, shape.root, Buffer::scratch), whole(shape, rank, Buffer::output)));
        }
        break;
      case Operation::inclusive_scan:
      case Operation::exclusive_scan: chain(moves, shape, rank, round); break;
      case Operation::exchange: break;
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    if (shape.ranks == 1) return {};
    const bool root = rank == shape.root;
    switch (shape.operation) {
      case Operation::inclusive_scan:
      case Operation::exclusive_scan: {
        const bool exclusive = shape.operation == Operation::exclusive_scan;
        const bool read = round == rank + 1 || (exclusive && round == rank + 2);
        if (!read || round >= shape.ranks) return {};
        return {rank + 1};
      }
      case Operation::gather:
        if (round == 0 || root) return {};
        return {shape.root};
      case Operation::reduce:
        if (round != 2) break;
        if (root) return {};
        return {shape.root};
      case Operation::broadcast:
      case Operation::scatter:
        if (!root) return {};
        break;
      default: break;
    }
    if (round == 0) return {};
    return detail::others(shape.ranks, rank);
  }

 private:
  static constexpr Piece scratch(int rank, int slot) { return Piece{rank, Buffer::scratch, slot, 1}; }
  static constexpr Piece whole(const Shape& shape, int rank, Buffer buffer) {
    return Piece{rank, buffer, 0, shape.ranks};
  }

  /// Where `giver` keeps what it gives to `taker`: blocks follow each other, its own one only where a result takes its
  /// place.
  static constexpr Piece given(const Shape& shape, int giver, int taker) {
    return scratch(giver, scratch_slots(shape) < shape.ranks && taker > giver ? taker - 1 : taker);
  }

  /// A rank copies what is for the others: the blocks before its own one and those behind it.
  static constexpr void give(std::vector<Move>& moves, const Shape& shape, int rank) {
    const auto add = [&](int first, int last) {
      if (first == last) return;
      const int block = shape.operation == Operation::all_to_all ? rank * shape.ranks + first : first;
      moves.push_back(detail::copy(rank, block, Piece{rank, Buffer::input, first, last - first},
                                   Piece{rank, Buffer::scratch, given(shape, rank, first).slot, last - first}));
    };
    add(0, rank);
    add(rank + 1, shape.ranks);
  }

  /// A rank combines its block of all ranks.
  static constexpr void fold(std::vector<Move>& moves, const Shape& shape, int rank) {
    Move move;
    move.by = rank;
    move.block = rank;
    for (int peer = 0; peer < shape.ranks; ++peer) {
      move.from.push_back(peer == rank ? Piece{rank, Buffer::input, rank, 1} : given(shape, peer, rank));
    }
    if (shape.operation == Operation::reduce_scatter) {
      move.to.push_back(Piece{rank, Buffer::output, 0, 1});
    } else {
      const bool keeps = shape.operation == Operation::all_reduce || rank == shape.root;
      if (keeps) move.to.push_back(Piece{rank, Buffer::output, rank, 1});
      if (shape.operation == Operation::all_reduce || rank != shape.root) move.to.push_back(scratch(rank, rank));
    }
    moves.push_back(std::move(move));
  }

  static constexpr void collect(std::vector<Move>& moves, const Shape& shape, int rank, int round) {
    const bool all = shape.operation == Operation::all_gather;
    const bool takes = all || rank == shape.root;
    const Piece input{rank, Buffer::input, 0, 1};
    if (round == 1) {
      if (!takes) return;
      for (const int peer : detail::others(shape.ranks, rank)) {
        moves.push_back(detail::copy(rank, peer, scratch(peer, 0), Piece{rank, Buffer::output, peer, 1}));
      }
      return;
    }
    Move move{rank, rank, {input}, {}};
    const Piece output{rank, Buffer::output, rank, 1};
    if (all || !takes) move.to.push_back(scratch(rank, 0));
    // Whether a gather is in place knows only its root; an all_gather in place has its input in the output.
    if (takes && !(all && shape.in_place)) move.to.push_back(output);
    moves.push_back(std::move(move));
  }

  static constexpr void chain(std::vector<Move>& moves, const Shape& shape, int rank, int round) {
    const bool exclusive = shape.operation == Operation::exclusive_scan;
    const bool last = rank == shape.ranks - 1;
    const Piece input = whole(shape, rank, Buffer::input);
    const Piece output = whole(shape, rank, Buffer::output);
    if (round == rank && !(exclusive && last)) {
      Move move{rank, 0, {}, {}};
      if (rank > 0) move.from.push_back(whole(shape, rank - 1, Buffer::scratch));
      move.from.push_back(input);
      if (!last) move.to.push_back(whole(shape, rank, Buffer::scratch));
      if (!exclusive && !(rank == 0 && shape.in_place)) move.to.push_back(output);
      moves.push_back(std::move(move));
    }
    if (exclusive && rank > 0 && round == (last ? rank : rank + 1)) {
      moves.push_back(detail::copy(rank, 0, whole(shape, rank - 1, Buffer::scratch), output));
    }
  }
};

static_assert(Generator<Staged>);

}  // namespace meshwise
