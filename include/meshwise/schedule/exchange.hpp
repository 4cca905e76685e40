// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sort.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// The general redistribution: one round in which every rank fetches the blocks it wants, from itself what it holds.
///
/// Who serves a block that several ranks hold is decided by the routes alone: takers are dealt to holders in turn, and
/// which holder comes first depends on the first taker, so that blocks with one taker each spread too. Neighbouring
/// blocks with the same holders and takers have the same source. Wanted slots whose blocks, source and slots there are
/// all consecutive are one move. Moves begin with the own blocks and go up the ranks from there, so that not everybody
/// starts at the same source.
///
/// Cost per rank: one block read for each wanted one that it does not hold; one message per pair of ranks. A look-up is
/// logarithmic in the holders and takers of a block; `partners` looks at the takers that are dealt to this rank. No
/// scratch, no reduction. Out of place only.
struct Exchange {
  static constexpr const char* name = "exchange";

  static constexpr bool supports(const Shape& shape) { return shape.operation == Operation::exchange && valid(shape); }

  static constexpr int rounds(const Shape&) { return 1; }

  static constexpr int scratch_slots(const Shape&) { return 0; }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int) {
    const std::vector<int>& wanted = shape.routes->wanted[static_cast<std::size_t>(rank)];
    std::vector<Move> moves;
    for (int slot = 0; slot < static_cast<int>(wanted.size()); ++slot) {
      const int block = wanted[static_cast<std::size_t>(slot)];
      const Routes::Place source = source_of(*shape.routes, block, rank, slot);
      if (!moves.empty() && extend(moves.back(), block, source)) continue;
      moves.push_back(detail::copy(rank, block, Piece{source.rank, Buffer::input, source.slot, 1},
                                   Piece{rank, Buffer::output, slot, 1}));
    }
    detail::sort_stably(moves.data(), moves.data() + moves.size(), [&](const Move& a, const Move& b) {
      const int distance = detail::around(shape.ranks, a.from[0].rank, -rank);
      const int other = detail::around(shape.ranks, b.from[0].rank, -rank);
      return distance != other ? distance < other : a.to[0].slot < b.to[0].slot;
    });
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int) {
    const Routes& routes = *shape.routes;
    std::vector<int> result;
    const std::vector<int>& held = routes.held[static_cast<std::size_t>(rank)];
    for (int slot = 0; slot < static_cast<int>(held.size()); ++slot) {
      const int block = held[static_cast<std::size_t>(slot)];
      const auto& holders = routes.holders[static_cast<std::size_t>(block)];
      const auto& takers = routes.takers[static_cast<std::size_t>(block)];
      if (takers.empty()) continue;
      const int number = static_cast<int>(holders.size());
      const int mine = position(holders, Routes::Place{rank, slot});
      const int begin = first_holder(takers, number);
      for (int i = (mine - begin + number) % number; i < static_cast<int>(takers.size()); i += number) {
        const int taker = takers[static_cast<std::size_t>(i)].rank;
        if (own(holders, taker) < 0) result.push_back(taker);
      }
    }
    detail::sort_and_unite(result);
    return result;
  }

 private:
  using Places = detail::List<Routes::Place>;

  /// The index of the first place that is not before `place`.
  static constexpr int position(const Places& places, Routes::Place place) {
    return static_cast<int>(detail::first_not_before(places, [place](const Routes::Place& other) {
      return other.rank != place.rank ? other.rank < place.rank : other.slot < place.slot;
    }));
  }

  /// The index of a rank's own copy, or -1.
  static constexpr int own(const Places& holders, int rank) {
    const int index = position(holders, Routes::Place{rank, 0});
    return index < static_cast<int>(holders.size()) && holders[static_cast<std::size_t>(index)].rank == rank ? index
                                                                                                             : -1;
  }

  /// The holder that serves the first taker: the digits of its rank, added up. Ranks at a stride, in which meshes
  /// lay replicas and takers out, would all meet at one holder if it were the remainder.
  static constexpr int first_holder(const Places& takers, int holders) {
    if (holders == 1) return 0;
    int sum = 0;
    for (int rest = takers[0].rank; rest > 0; rest /= holders) sum = (sum + rest % holders) % holders;
    return sum;
  }

  static constexpr Routes::Place source_of(const Routes& routes, int block, int rank, int slot) {
    const Places& holders = routes.holders[static_cast<std::size_t>(block)];
    int index = own(holders, rank);
    if (index < 0) {
      const Places& takers = routes.takers[static_cast<std::size_t>(block)];
      const int number = static_cast<int>(holders.size());
      index = (first_holder(takers, number) + position(takers, Routes::Place{rank, slot}) % number) % number;
    }
    return holders[static_cast<std::size_t>(index)];
  }

  /// Lengthens a move by the block that follows its last one, if that is what the next slot takes.
  static constexpr bool extend(Move& move, int block, Routes::Place source) {
    Piece& from = move.from[0];
    if (source.rank != from.rank || source.slot != from.slot + from.count || block != move.block + from.count) {
      return false;
    }
    ++from.count;
    ++move.to[0].count;
    return true;
  }
};

static_assert(Generator<Exchange>);

}  // namespace meshwise
