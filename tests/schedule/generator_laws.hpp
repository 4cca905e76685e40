// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "all_shapes.hpp"
#include "meshwise/schedule/verify.hpp"
#include "runs.hpp"

namespace meshwise::test {

/// All shapes on `ranks` ranks; beyond nine ranks with some of the roots only: the ends, the middle, and one more.
inline std::vector<Shape> sampled_shapes(int ranks) {
  std::vector<Shape> shapes;
  for (const Shape& shape : all_shapes(ranks)) {
    const int root = shape.root;
    if (ranks <= 9 || root < 2 || root == ranks / 2 || root == ranks - 3 || root == ranks - 1) shapes.push_back(shape);
  }
  return shapes;
}

/// The ranks other than its performer whose buffers a move touches.
inline std::set<int> touched(const Move& move) {
  std::set<int> ranks;
  for (const auto* pieces : {&move.from, &move.to}) {
    for (const Piece& piece : *pieces) {
      if (piece.rank != move.by) ranks.insert(piece.rank);
    }
  }
  return ranks;
}

/// Whoever touches a buffer of a rank is among its partners, each once and never the rank itself. Returns how many
/// partners are named in vain.
template <Generator G>
int check_partners(const G& generator, const Shape& shape) {
  int surplus = 0;
  CAPTURE(describe(shape));
  for (int k = 0; k < generator.rounds(shape); ++k) {
    std::vector<std::set<int>> visitors(at(shape.ranks));
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const Move& move : generator.by(shape, rank, k)) {
        CHECK(move.by == rank);
        for (const int owner : touched(move)) visitors[at(owner)].insert(rank);
      }
    }
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const std::vector<int> named = generator.partners(shape, rank, k);
      const std::set<int> once(named.begin(), named.end());
      CHECK(once.size() == named.size());
      CHECK(once.count(rank) == 0);
      CHECK(std::includes(once.begin(), once.end(), visitors[at(rank)].begin(), visitors[at(rank)].end()));
      surplus += static_cast<int>(once.size() - visitors[at(rank)].size());
    }
  }
  return surplus;
}

/// The same for some ranks of very many: whomever such a rank touches must name it, and whoever is named must touch.
template <Generator G>
void check_partners_of(const G& generator, const Shape& shape, const std::vector<int>& ranks) {
  CAPTURE(describe(shape));
  const int rounds = generator.rounds(shape);
  for (const int rank : ranks) {
    for (int k = 0; k < rounds; ++k) {
      std::set<int> owners;
      for (const Move& move : generator.by(shape, rank, k)) {
        for (const int owner : touched(move)) owners.insert(owner);
      }
      if (owners.size() > 64) continue;  // a root that touches everybody
      for (const int owner : owners) {
        const std::vector<int> named = generator.partners(shape, owner, k);
        CHECK(std::find(named.begin(), named.end(), rank) != named.end());
      }
    }
  }
}

/// A rooted operation has the same moves in and out of place: only its root knows which it is.
template <Generator G>
void check_same_in_place(const G& generator, Operation operation, int ranks) {
  for (int root = 0; root<ranks; root += ranks> 9 ? 5 : 1) {
    const Shape apart{operation, ranks, root, false};
    const Shape in_place{operation, ranks, root, true};
    CAPTURE(describe(apart));
    REQUIRE(generator.rounds(apart) == generator.rounds(in_place));
    CHECK(generator.scratch_slots(apart) == generator.scratch_slots(in_place));
    for (int k = 0; k < generator.rounds(apart); ++k) {
      for (int rank = 0; rank < ranks; ++rank) {
        const std::vector<Move> a = generator.by(apart, rank, k);
        const std::vector<Move> b = generator.by(in_place, rank, k);
        REQUIRE(a.size() == b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          CHECK((a[i].by == b[i].by && a[i].block == b[i].block && a[i].from == b[i].from && a[i].to == b[i].to));
        }
      }
    }
  }
}

/// Plans for shared memory and for messages work in random interleavings, on one and on several lanes.
template <Generator G>
void check_plans(const G& generator, const std::vector<int>& sizes = {1, 2, 3, 5, 8}) {
  Dice dice{11};
  for (const int ranks : sizes) {
    for (const Shape& shape : all_shapes(ranks)) {
      if (!generator.supports(shape)) continue;
      CAPTURE(describe(shape));
      for (const int lanes : {1, 3}) CHECK(runs(generator, shape, lanes, dice, 2));
    }
  }
}

/// One more than the highest scratch slot that a move touches.
template <Generator G>
int scratch_used(const G& generator, const Shape& shape) {
  int used = 0;
  for (const Round& round : materialise(generator, shape).rounds) {
    for (const Move& move : round) {
      for (const auto* pieces : {&move.from, &move.to}) {
        for (const Piece& piece : *pieces) {
          if (piece.buffer == Buffer::scratch) used = std::max(used, piece.slot + piece.count);
        }
      }
    }
  }
  return used;
}

}  // namespace meshwise::test
