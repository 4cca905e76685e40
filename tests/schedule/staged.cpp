// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/staged.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks, int root = 0) {
  const Verdict verdict = verify(materialise<Staged>(Shape{operation, ranks, root, in_place}));
  return verdict.ok() && verdict.left_fold_in_rank_order && verdict.canonical && verdict.identical_on_all_ranks;
}

static_assert(proven(Operation::all_reduce, false, 1) && proven(Operation::all_reduce, true, 1));
static_assert(proven(Operation::all_reduce, false, 2) && proven(Operation::all_reduce, true, 3));
static_assert(proven(Operation::all_reduce, false, 8));
static_assert(proven(Operation::all_reduce, true, 8));
static_assert(proven(Operation::reduce_scatter, false, 8));
static_assert(proven(Operation::reduce_scatter, true, 8));
static_assert(proven(Operation::all_gather, false, 8));
static_assert(proven(Operation::all_gather, true, 8));
static_assert(proven(Operation::broadcast, false, 8));
static_assert(proven(Operation::broadcast, true, 8));
static_assert(proven(Operation::all_to_all, false, 8));
static_assert(proven(Operation::reduce, false, 8, 3) && proven(Operation::reduce, true, 7, 6));
static_assert(proven(Operation::gather, false, 8, 3) && proven(Operation::gather, true, 7, 6));
static_assert(proven(Operation::scatter, false, 8, 3) && proven(Operation::scatter, true, 7, 6));
static_assert(proven(Operation::inclusive_scan, false, 7) && proven(Operation::inclusive_scan, true, 7));
static_assert(proven(Operation::exclusive_scan, false, 7) && proven(Operation::exclusive_scan, true, 7));

/// Whether the only pieces of other ranks that moves touch are scratch, which they read.
bool keeps_apart(const Shape& shape) {
  for (int round = 0; round < Staged::rounds(shape); ++round) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const Move& move : Staged::by(shape, rank, round)) {
        for (const Piece& piece : move.from) {
          if (piece.rank != rank && piece.buffer != Buffer::scratch) return false;
        }
        for (const Piece& piece : move.to) {
          if (piece.rank != rank) return false;
        }
      }
    }
  }
  return true;
}

/// The most rounds from the first in which a rank does something, or its scratch is read, to the last.
int longest_span(const Shape& shape) {
  std::vector<int> first(test::at(shape.ranks), -1);
  std::vector<int> last(first);
  const auto active = [&](int rank, int round) {
    if (first[test::at(rank)] < 0) first[test::at(rank)] = round;
    last[test::at(rank)] = round;
  };
  for (int round = 0; round < Staged::rounds(shape); ++round) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const Move& move : Staged::by(shape, rank, round)) {
        active(rank, round);
        for (const Piece& piece : move.from) active(piece.rank, round);
      }
    }
  }
  int most = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (first[test::at(rank)] >= 0) most = std::max(most, last[test::at(rank)] - first[test::at(rank)] + 1);
  }
  return most;
}

}  // namespace

TEST_CASE("staged schedules are right, in rank order, and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    const std::int64_t n = p - 1;
    const std::int64_t one = p > 1 ? 1 : 0;
    for (const Shape& shape : test::sampled_shapes(p)) {
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Staged>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK((verdict.in_rank_order && verdict.left_fold_in_rank_order && verdict.canonical));
      CHECK(verdict.identical_on_all_ranks);
      CHECK(verdict.written == Count{0, 0});
      CHECK(keeps_apart(shape));
      CHECK(longest_span(shape) <= Staged::span);
      std::int64_t rounds = 2;
      int slots = p;
      switch (shape.operation) {
        case Operation::all_reduce:
          rounds = 3;
          CHECK(verdict.read == Count{2 * p * n, 2 * n});
          CHECK(verdict.messages == 2 * p * n);
          break;
        case Operation::reduce:
          rounds = 3;
          CHECK(verdict.read == Count{p * n + n, 2 * n});
          CHECK(verdict.messages == p * n + n);
          break;
        case Operation::reduce_scatter:
        case Operation::all_to_all:
        case Operation::all_gather:
          slots = shape.operation == Operation::all_gather ? 1 : p - 1;
          CHECK(verdict.read == Count{p * n, n});
          CHECK(verdict.messages == p * n);
          break;
        case Operation::broadcast:
          CHECK(verdict.read == Count{p * n, one * p});
          CHECK(verdict.messages == n);
          break;
        case Operation::gather:
          slots = 1;
          CHECK(verdict.read == Count{n, n});
          CHECK(verdict.messages == n);
          break;
        case Operation::scatter:
          slots = p - 1;
          CHECK(verdict.read == Count{n, one});
          CHECK(verdict.messages == n);
          break;
        case Operation::inclusive_scan:
          rounds = p;
          CHECK(verdict.read == Count{p * n, one * p});
          break;
        case Operation::exclusive_scan:
          rounds = p;
          CHECK(verdict.read == Count{p > 1 ? p * (2 * n - 1) : 0, p > 2 ? 2 * p : one * p});
          break;
        case Operation::exchange: break;
      }
      if (p == 1) {
        rounds = shape.operation == Operation::exclusive_scan ? 0 : 1;
        slots = 0;
      }
      CHECK(verdict.rounds == rounds);
      CHECK(Staged::scratch_slots(shape) == slots);
      CHECK(test::scratch_used(Staged{}, shape) == slots);
    }
  }
}

TEST_CASE("staged schedules name their partners, and do not look at whether a root is in place") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) CHECK(test::check_partners(Staged{}, shape) == 0);
  }
  for (const int p : {1, 2, 7, 21}) {
    for (const Operation operation : {Operation::reduce, Operation::gather, Operation::scatter}) {
      test::check_same_in_place(Staged{}, operation, p);
    }
  }
}

TEST_CASE("staged plans work in any interleaving") { test::check_plans(Staged{}); }

TEST_CASE("a rank of very many asks for its own moves of a staged schedule only") {
  const int p = 100000;
  for (const Operation operation : {Operation::gather, Operation::scatter, Operation::broadcast, Operation::all_gather,
                                    Operation::inclusive_scan, Operation::exclusive_scan}) {
    const Shape shape{operation, p, rooted(operation) ? 77 : 0, true};
    CHECK(Staged::by(shape, 5, 5).size() <= 1);
    CHECK(Staged::by(shape, 5, 0).size() <= 1);
    test::check_partners_of(Staged{}, Shape{operation, 2000, shape.root, true}, {0, 5, 77, 1998, 1999});
  }
}

TEST_CASE("staged schedules of many ranks") {
  for (const int p : {64, 100, 257}) {
    for (const Shape& shape :
         {Shape{Operation::all_reduce, p, 0, true}, Shape{Operation::reduce, p, p - 1, true},
          Shape{Operation::gather, p, p / 2, true}, Shape{Operation::inclusive_scan, p, 0, true},
          Shape{Operation::exclusive_scan, p, 0, true}, Shape{Operation::reduce_scatter, p, 0, true},
          Shape{Operation::all_gather, p, 0, false}, Shape{Operation::broadcast, p, 3, false}}) {
      const Verdict verdict = verify(materialise<Staged>(shape));
      CHECK((verdict.ok() && verdict.canonical));
    }
  }
  if (building::most_ranks < 1000) return;
  CHECK(verify(materialise<Staged>(Shape{Operation::all_reduce, 1000, 0, false})).canonical);
  CHECK(verify(materialise<Staged>(Shape{Operation::inclusive_scan, 1024, 0, true})).canonical);
  CHECK(verify(materialise<Staged>(Shape{Operation::all_to_all, 512, 0, false})).ok());
  CHECK(verify(materialise<Staged>(Shape{Operation::scatter, 1024, 1000, true})).ok());
}
