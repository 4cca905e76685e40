// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/verify.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <tuple>

#include "all_shapes.hpp"
#include "dice.hpp"
#include "meshwise/schedule/circulant.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/double_tree.hpp"
#include "meshwise/schedule/halving_doubling.hpp"
#include "meshwise/schedule/one_shot.hpp"
#include "meshwise/schedule/pairwise.hpp"
#include "meshwise/schedule/recursive_doubling.hpp"
#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/scatter_all_gather.hpp"
#include "meshwise/schedule/staged.hpp"
#include "meshwise/schedule/two_shot.hpp"
#include "proxy.hpp"

using namespace meshwise;

namespace {

constexpr Piece in(int rank, int slot, int count = 1) { return Piece{rank, Buffer::input, slot, count}; }
constexpr Piece out(int rank, int slot, int count = 1) { return Piece{rank, Buffer::output, slot, count}; }
constexpr Piece tmp(int rank, int slot, int count = 1) { return Piece{rank, Buffer::scratch, slot, count}; }

Move& move_of(Schedule& schedule, int round, int move) {
  return schedule.rounds.at(static_cast<std::size_t>(round)).at(static_cast<std::size_t>(move));
}

/// Executes a schedule on lists of contributors, the moves of each round in random order, and says whether every
/// output ends right and every input that no output shares ends as it began. An oracle with nothing in common with
/// the symbols of verify.
bool works(const Schedule& schedule, test::Dice& dice) {
  using Value = std::pair<int, std::vector<int>>;  // block, contributors
  using Key = std::tuple<int, int, int>;
  const Shape& shape = schedule.shape;
  const auto key = [&](Piece piece, int i) {
    piece = place(shape, piece);
    return Key{piece.rank, static_cast<int>(piece.buffer), piece.slot + i};
  };
  std::map<Key, Value> slots;
  for (int r = 0; r < shape.ranks; ++r) {
    for (int s = 0; s < input_slots(shape, r); ++s) slots[key(in(r, s), 0)] = {input_block(shape, r, s), {r}};
  }
  for (Round round : schedule.rounds) {
    for (std::size_t m = round.size(); m > 1; --m) {
      std::swap(round[m - 1], round[static_cast<std::size_t>(dice.roll(static_cast<int>(m)))]);
    }
    for (const Move& move : round) {
      for (int i = 0; i < move.from[0].count; ++i) {
        Value result{move.block + i, {}};
        for (const Piece& piece : move.from) {
          const auto found = slots.find(key(piece, i));
          if (found == slots.end() || found->second.first != move.block + i) return false;
          result.second.insert(result.second.end(), found->second.second.begin(), found->second.second.end());
        }
        for (const Piece& piece : move.to) slots[key(piece, i)] = result;
      }
    }
  }
  for (int r = 0; r < shape.ranks; ++r) {
    for (int s = 0; s < output_slots(shape, r); ++s) {
      Value value = slots[key(out(r, s), 0)];
      std::sort(value.second.begin(), value.second.end());
      const int block = output_block(shape, r, s);
      if (value.first != block) return false;
      if (combines(shape.operation)) {
        std::vector<int> wanted;
        for (int q = 0; q < contributors(shape, r); ++q) wanted.push_back(q);
        if (value.second != wanted) return false;
      } else {
        if (value.second.size() != 1 || !contributes(shape, block, value.second[0])) return false;
      }
    }
    for (int s = 0; s < input_slots(shape, r); ++s) {
      if (writable_input(shape, r, s)) continue;
      if (slots[key(in(r, s), 0)] != Value{input_block(shape, r, s), {r}}) return false;
    }
  }
  return true;
}

template <class G>
std::vector<Schedule> schedules(int most_ranks) {
  std::vector<Schedule> result;
  for (int p = 1; p <= most_ranks; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (G::supports(shape)) result.push_back(materialise<G>(shape));
    }
  }
  return result;
}

static_assert(verify(materialise<test::Proxy>(Shape{Operation::all_reduce, 5, 0, true})).ok());
static_assert(verify(materialise<test::Proxy>(Shape{Operation::all_gather, 5, 0, true})).ok());
static_assert(verify(Schedule{}).fault == Fault::output_undefined);
static_assert(verify(Schedule{Shape{Operation::all_reduce, 0, 0, false}, 0, {}}).fault == Fault::bad_shape);
static_assert(verify(Schedule{Shape{Operation::all_reduce, 1, 0, true}, -1, {}}).fault == Fault::bad_shape);

}  // namespace

TEST_CASE_TEMPLATE("a schedule lacks nothing, has nothing too much, and is what the oracle says", G, Direct, Ring,
                   OneShot, TwoShot, test::Proxy) {
  test::Dice dice{1};
  for (const Schedule& schedule : schedules<G>(9)) {
    CAPTURE(test::describe(schedule.shape));
    CHECK(verify(schedule).ok());
    CHECK(works(schedule, dice));
  }
}

TEST_CASE_TEMPLATE("every move, source and destination is needed", G, Direct, Ring, OneShot, TwoShot) {
  for (const Schedule& schedule : schedules<G>(5)) {
    CAPTURE(test::describe(schedule.shape));
    for (std::size_t k = 0; k < schedule.rounds.size(); ++k) {
      for (std::size_t m = 0; m < schedule.rounds[k].size(); ++m) {
        Schedule broken = schedule;
        const Move& move = schedule.rounds[k][m];
        // The one move that may be left out in place: it brings a root's block to where it already is.
        const bool idle =
            move.from.size() == 1 && place(schedule.shape, move.from[0]) == place(schedule.shape, move.to[0]);
        broken.rounds[k].erase(broken.rounds[k].begin() + static_cast<std::ptrdiff_t>(m));
        CHECK(verify(broken).ok() == idle);
        for (std::size_t i = 0; move.from.size() > 1 && i < move.from.size(); ++i) {
          broken = schedule;
          auto& from = broken.rounds[k][m].from;
          from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
          CHECK(verify(broken).fault == Fault::contribution_missing);
          broken = schedule;
          broken.rounds[k][m].from.push_back(move.from[i]);
          CHECK(verify(broken).fault == Fault::contribution_repeated);
        }
        for (std::size_t i = 0; move.to.size() > 1 && i < move.to.size(); ++i) {
          broken = schedule;
          auto& to = broken.rounds[k][m].to;
          to.erase(to.begin() + static_cast<std::ptrdiff_t>(i));
          CHECK(!verify(broken).ok());
        }
        broken = schedule;
        broken.rounds[k][m].block += 1;
        CHECK(verify(broken).fault == Fault::wrong_block);
      }
    }
  }
}

TEST_CASE("pieces must lie in their buffers, and moves must be whole") {
  const Schedule good = materialise<Ring>(Shape{Operation::all_reduce, 4, 0, false});
  for (const Piece& piece : {in(4, 0), in(-1, 0), in(0, 4), in(0, -1), in(0, 3, 2), in(0, 0, 0), in(0, 0, -1),
                             in(0, 0, 2147483647), tmp(0, 0)}) {
    Schedule broken = good;
    move_of(broken, 1, 2).from[1] = piece;
    const Verdict verdict = verify(broken);
    CHECK(verdict.fault == Fault::out_of_range);
    CHECK(verdict.round == 1);
    CHECK(verdict.move == 2);
    CHECK(verdict.rank == piece.rank);
    CHECK(verdict.slot == piece.slot);
  }
  Schedule broken = good;
  move_of(broken, 2, 1).from.clear();
  CHECK(verify(broken).fault == Fault::bad_move);
  broken = good;
  move_of(broken, 2, 1).to.clear();
  CHECK(verify(broken).fault == Fault::bad_move);
  broken = good;
  move_of(broken, 2, 1).by = 4;
  CHECK(verify(broken).fault == Fault::bad_move);
  broken = good;
  move_of(broken, 0, 1).to = {out(1, 0, 2)};
  CHECK(verify(broken).fault == Fault::bad_move);
}

TEST_CASE("sources must be defined and hold the block of the move") {
  Schedule broken = materialise<Ring>(Shape{Operation::all_gather, 4, 0, false});
  move_of(broken, 0, 0).from = {out(3, 1)};
  CHECK(verify(broken).fault == Fault::undefined_source);
  broken = materialise<Ring>(Shape{Operation::reduce_scatter, 4, 0, false});
  std::swap(broken.rounds[0], broken.rounds[1]);
  CHECK(verify(broken).fault == Fault::undefined_source);
  broken = materialise<Direct>(Shape{Operation::all_to_all, 3, 0, false});
  move_of(broken, 0, 1).from[0].slot = 2;
  CHECK(verify(broken).fault == Fault::wrong_block);
}

TEST_CASE("inputs stay as they were, except where an output shares them") {
  Schedule broken = materialise<Direct>(Shape{Operation::all_reduce, 3, 0, false});
  broken.rounds.push_back({Move{0, 1, {out(0, 1)}, {in(0, 1)}}});
  Verdict verdict = verify(broken);
  CHECK(verdict.fault == Fault::input_written);
  CHECK(verdict.round == 1);
  CHECK(verdict.slot == 1);
  broken.shape.in_place = true;
  broken.rounds = materialise<Direct>(broken.shape).rounds;
  for (Move& move : broken.rounds[0]) {
    for (Piece& piece : move.to) piece.buffer = Buffer::input;
  }
  CHECK_MESSAGE(verify(broken).ok(), "in place, input and output are two names of one memory");
  broken = materialise<Ring>(Shape{Operation::reduce_scatter, 3, 0, true});
  move_of(broken, 0, 0).to[0] = in(0, 1);
  CHECK(verify(broken).fault == Fault::input_written);
}

TEST_CASE("no move writes what another one of its round touches") {
  const Shape shape{Operation::all_reduce, 2, 0, false};
  const Move sum0{0, 0, {in(0, 0), in(1, 0)}, {out(0, 0), out(1, 0)}};
  const Move sum1{1, 1, {in(0, 1), in(1, 1)}, {out(0, 1), out(1, 1)}};
  CHECK(verify(Schedule{shape, 0, {{sum0, sum1}}}).ok());
  // Written twice, by two moves and by one.
  CHECK(verify(Schedule{shape, 0, {{sum0, sum1, sum0}}}).fault == Fault::conflict);
  Move twice = sum0;
  twice.to.push_back(out(0, 0));
  CHECK(verify(Schedule{shape, 0, {{twice, sum1}}}).fault == Fault::conflict);
  // Read by another move, before and after the writing one in the list.
  const Move first{0, 0, {in(0, 0), in(1, 0)}, {out(0, 0)}};
  const Move then{1, 0, {out(0, 0)}, {out(1, 0)}};
  CHECK(verify(Schedule{shape, 0, {{first, sum1}, {then}}}).ok());
  CHECK(verify(Schedule{shape, 0, {{first, then, sum1}}}).fault == Fault::conflict);
  CHECK(verify(Schedule{shape, 0, {{then, first, sum1}}}).fault == Fault::conflict);
  // Only in place: the write of one rank's output hits another move's source.
  const Shape in_place{Operation::all_gather, 2, 0, true};
  const Move give{0, 0, {in(0, 0)}, {out(1, 0)}};
  const Move take{0, 1, {in(1, 0)}, {out(0, 1)}};
  CHECK(verify(Schedule{in_place, 0, {{give, take}}}).ok());
  const Move back{1, 0, {out(1, 0)}, {out(0, 0)}};
  CHECK(verify(Schedule{in_place, 0, {{give, take}, {back}}}).ok());
  CHECK(verify(Schedule{in_place, 0, {{give, take}, {back, give}}}).fault == Fault::conflict);
}

TEST_CASE("a move may overlap itself in step, but not shifted") {
  const Shape shape{Operation::all_reduce, 2, 0, true};
  CHECK(verify(Schedule{shape, 0, {{Move{0, 0, {in(0, 0, 2), in(1, 0, 2)}, {out(0, 0, 2), out(1, 0, 2)}}}}}).ok());
  const Schedule shifted{
      shape, 3, {{Move{0, 0, {in(0, 0, 2)}, {tmp(0, 0, 2)}}}, {Move{0, 0, {tmp(0, 0, 2)}, {tmp(0, 1, 2)}}}}};
  CHECK(verify(shifted).fault == Fault::conflict);
}

TEST_CASE("outputs must be there and hold their block") {
  const Shape shape{Operation::all_gather, 2, 0, false};
  const Move own{0, 0, {in(0, 0)}, {out(0, 0), out(1, 0)}};
  const Verdict missing = verify(Schedule{shape, 0, {{own}}});
  CHECK(missing.fault == Fault::output_undefined);
  CHECK(missing.round == -1);
  CHECK(missing.rank == 0);
  CHECK(missing.slot == 1);
  const Move wrong{0, 0, {in(0, 0)}, {out(0, 0), out(1, 0), out(0, 1), out(1, 1)}};
  CHECK(verify(Schedule{shape, 0, {{wrong}}}).fault == Fault::output_wrong_block);
}

TEST_CASE("the order of combination decides whether a result is reproducible") {
  const Shape shape{Operation::reduce_scatter, 4, 0, false};
  const auto schedule = [&](bool tree, bool swapped) {
    Schedule result{shape, 2, {{}, {}}};
    for (int r = 0; r < 4; ++r) {
      result.rounds[0].push_back(Move{r, r, {in(swapped ? 1 : 0, r), in(swapped ? 0 : 1, r)}, {tmp(r, 0)}});
      if (tree) {
        result.rounds[0].push_back(Move{r, r, {in(2, r), in(3, r)}, {tmp(r, 1)}});
        result.rounds[1].push_back(Move{r, r, {tmp(r, 0), tmp(r, 1)}, {out(r, 0)}});
      } else {
        result.rounds[1].push_back(Move{r, r, {tmp(r, 0), in(2, r), in(3, r)}, {out(r, 0)}});
      }
    }
    return result;
  };
  CHECK(verify(schedule(false, false)).left_fold_in_rank_order);
  for (const bool swapped : {false, true}) {
    CHECK(verify(schedule(true, swapped)).ok());
    CHECK(!verify(schedule(true, swapped)).left_fold_in_rank_order);
  }
  CHECK(verify(schedule(false, true)).ok());
  CHECK(!verify(schedule(false, true)).left_fold_in_rank_order);
}

TEST_CASE("stored partial sums are a left fold, but not the canonical one; in scans they are") {
  const Shape shape{Operation::reduce, 3, 0, false};
  const auto left = [&](bool stored) {
    Schedule result{shape, 1, {{}, {}}};
    for (int b = 0; b < 3; ++b) {
      if (stored) {
        result.rounds[0].push_back(Move{b, b, {in(0, b), in(1, b)}, {tmp(b, 0)}});
        result.rounds[1].push_back(Move{b, b, {tmp(b, 0), in(2, b)}, {out(0, b)}});
      } else {
        result.rounds[0].push_back(Move{b, b, {in(0, b), in(1, b), in(2, b)}, {out(0, b)}});
      }
    }
    return verify(result);
  };
  CHECK((left(false).left_fold_in_rank_order && left(false).canonical && left(false).roundings == 1));
  CHECK((left(true).left_fold_in_rank_order && !left(true).canonical && left(true).roundings == 2));
  const Schedule steps = materialise<Direct>(Shape{Operation::inclusive_scan, 4, 0, false});
  CHECK((verify(steps).left_fold_in_rank_order && verify(steps).canonical && verify(steps).roundings == 3));
  const Schedule at_once = materialise<OneShot>(Shape{Operation::inclusive_scan, 4, 0, false});
  CHECK((verify(at_once).left_fold_in_rank_order && !verify(at_once).canonical && verify(at_once).roundings == 1));
}

TEST_CASE("a contribution is rounded as often as the documentation of the verbs says") {
  for (const int p : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33}) {
    CAPTURE(p);
    const int most = p < 2 ? 0 : static_cast<int>(std::bit_width(static_cast<unsigned>(p - 1)));  // ceil(lg p)
    const auto roundings = [&](const auto& generator, Operation operation) {
      return verify(generator, Shape{operation, p, 0, false}).roundings;
    };
    for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::reduce}) {
      CHECK(roundings(Direct{}, operation) == (p > 1 ? 1 : 0));
      CHECK(roundings(Staged{}, operation) == (p > 1 ? 1 : 0));
      CHECK(roundings(Ring{}, operation) == p - 1);
      CHECK(roundings(HalvingDoubling{}, operation) == most);
    }
    CHECK(roundings(OneShot{}, Operation::all_reduce) == (p > 1 ? 1 : 0));
    CHECK(roundings(TwoShot{}, Operation::all_reduce) == (p > 1 ? 1 : 0));
    CHECK(roundings(RecursiveDoubling{}, Operation::all_reduce) == most);
    CHECK(roundings(Circulant{}, Operation::all_reduce) == most);
    CHECK(roundings(DoubleTree{}, Operation::all_reduce) <= most);
    CHECK(roundings(DoubleTree{}, Operation::reduce) <= most + 1);
    CHECK(roundings(Pairwise{}, Operation::reduce_scatter) == p - 1);
    CHECK(roundings(ScatterAllGather{}, Operation::reduce) == most);
    CHECK(roundings(Direct{}, Operation::inclusive_scan) == p - 1);
    CHECK(roundings(RecursiveDoubling{}, Operation::inclusive_scan) == most);
    CHECK(roundings(OneShot{}, Operation::inclusive_scan) == (p > 1 ? 1 : 0));
    CHECK(roundings(Direct{}, Operation::all_gather) == 0);
  }
}

TEST_CASE("replicas are identical if their trees differ in the order of pairs at most") {
  const Shape shape{Operation::all_reduce, 4, 0, false};
  // Recursive doubling in which every rank puts its own partial result first, or the lower one; or a rank that brackets
  // from the left.
  const auto doubling = [&](bool own_first, bool odd_one) {
    Schedule result{shape, 4, {{}, {}}};
    for (int r = 0; r < 4; ++r) {
      const int near = r ^ 1;
      const int far = r ^ 2;
      const bool swap = !own_first && near < r;
      if (odd_one && r == 3) {
        result.rounds[0].push_back(Move{r, 0, {in(0, 0, 4), in(1, 0, 4)}, {tmp(r, 0, 4)}});
        result.rounds[1].push_back(Move{r, 0, {tmp(r, 0, 4), in(2, 0, 4), in(3, 0, 4)}, {out(r, 0, 4)}});
        continue;
      }
      result.rounds[0].push_back(Move{r, 0, {in(swap ? near : r, 0, 4), in(swap ? r : near, 0, 4)}, {tmp(r, 0, 4)}});
      const bool last = !own_first && far < r;
      result.rounds[1].push_back(Move{r, 0, {tmp(last ? far : r, 0, 4), tmp(last ? r : far, 0, 4)}, {out(r, 0, 4)}});
    }
    return result;
  };
  Verdict verdict = verify(doubling(false, false));
  REQUIRE(verdict.ok());
  CHECK((verdict.identical_on_all_ranks && verdict.in_rank_order && !verdict.left_fold_in_rank_order));
  verdict = verify(doubling(true, false));
  REQUIRE(verdict.ok());
  CHECK((verdict.identical_on_all_ranks && !verdict.in_rank_order));
  // With its partner's partial result taken from rank 1, which is the same sum, the odd one is the only difference.
  Schedule odd = doubling(false, true);
  for (Piece& piece : move_of(odd, 1, 1).from) {
    if (piece.rank == 3) piece.rank = 2;
  }
  verdict = verify(odd);
  REQUIRE(verdict.ok());
  CHECK((!verdict.identical_on_all_ranks && verdict.in_rank_order));
}

TEST_CASE("a repetition hidden behind the right number of contributions is found") {
  const Shape shape{Operation::all_reduce, 2, 0, false};
  Schedule broken{shape, 0, {{Move{0, 0, {in(0, 0), in(0, 0)}, {out(0, 0), out(1, 0)}}}}};
  CHECK(verify(broken).fault == Fault::contribution_repeated);
}

TEST_CASE("a scan that holds too much, too little or a stranger is found") {
  Schedule broken = materialise<Direct>(Shape{Operation::inclusive_scan, 3, 0, false});
  move_of(broken, 2, 0).from[1].rank = 1;
  CHECK(verify(broken).fault == Fault::contribution_repeated);
  broken = materialise<OneShot>(Shape{Operation::inclusive_scan, 3, 0, false});
  move_of(broken, 0, 1).from[1].rank = 2;
  Verdict verdict = verify(broken);
  CHECK(verdict.fault == Fault::contribution_foreign);
  CHECK(verdict.rank == 1);
  broken = materialise<OneShot>(Shape{Operation::exclusive_scan, 4, 0, false});
  move_of(broken, 0, 2).from.pop_back();
  verdict = verify(broken);
  CHECK(verdict.fault == Fault::contribution_missing);
  CHECK(verdict.rank == 3);
  // The same sum wanted by two ranks can be right for one of them only.
  const Shape shape{Operation::inclusive_scan, 2, 0, false};
  const Move sum{0, 0, {in(0, 0, 2), in(1, 0, 2)}, {out(0, 0, 2), out(1, 0, 2)}};
  CHECK(verify(Schedule{shape, 0, {{sum}}}).fault == Fault::contribution_repeated);
  const Move own{0, 0, {in(0, 0, 2)}, {out(0, 0, 2), out(1, 0, 2)}};
  CHECK(verify(Schedule{shape, 0, {{own}}}).fault == Fault::contribution_missing);
}

TEST_CASE("equal sums of many ranks are one value, looked at once") {
  // Own partial result first: on 256 ranks 2^16 outputs of 256 contributions each, in as many orders as there are
  // ranks.
  const int p = 256;
  const Shape shape{Operation::all_reduce, p, 0, false};
  Schedule schedule{shape, 2 * p, {}};
  for (int distance = 1, k = 0; distance < p; distance *= 2, ++k) {
    Round round;
    for (int r = 0; r < p; ++r) {
      const auto held = [&](int rank) { return k == 0 ? in(rank, 0, p) : tmp(rank, (k % 2) * p, p); };
      const Piece to = 2 * distance == p ? out(r, 0, p) : tmp(r, ((k + 1) % 2) * p, p);
      round.push_back(Move{r, 0, {held(r), held(r ^ distance)}, {to}});
    }
    schedule.rounds.push_back(std::move(round));
  }
  const Verdict verdict = verify(schedule);
  REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
  CHECK((verdict.identical_on_all_ranks && !verdict.in_rank_order));
}

TEST_CASE("counts tell reads from writes and group messages by pair and round") {
  // Rank 1 pulls two slots from rank 0 in two moves, then pushes one of its own.
  const Shape shape{Operation::all_to_all, 2, 0, false};
  const Schedule schedule{shape,
                          0,
                          {{Move{1, 1, {in(0, 1)}, {out(1, 0)}}, Move{0, 0, {in(0, 0)}, {out(0, 0)}},
                            Move{1, 2, {in(1, 0)}, {out(0, 1)}}, Move{1, 3, {in(1, 1)}, {out(1, 1)}}}}};
  const Verdict verdict = verify(schedule);
  REQUIRE(verdict.ok());
  CHECK(verdict.moves == 4);
  CHECK(verdict.read == Count{1, 1});
  CHECK(verdict.written == Count{1, 1});
  CHECK(verdict.messages == 2);
  const Verdict proxy = verify(materialise<test::Proxy>(Shape{Operation::all_gather, 4, 0, true}));
  CHECK(proxy.read == Count{3 + 3 * 4, 4});
  CHECK(proxy.messages == 6);
}

TEST_CASE_TEMPLATE("what passes after random damage still works", G, Direct, Ring, OneShot, TwoShot, test::Proxy) {
  test::Dice dice{20240229};
  int passed = 0;
  int failed = 0;
  const std::vector<Schedule> all = schedules<G>(4);
  for (int trial = 0; trial < 6000; ++trial) {
    Schedule schedule = all[static_cast<std::size_t>(dice.roll(static_cast<int>(all.size())))];
    const int damage = 1 + dice.roll(2);
    for (int d = 0; d < damage && !schedule.rounds.empty(); ++d) {
      auto& round = schedule.rounds[static_cast<std::size_t>(dice.roll(static_cast<int>(schedule.rounds.size())))];
      if (round.empty()) continue;
      Move& move = round[static_cast<std::size_t>(dice.roll(static_cast<int>(round.size())))];
      std::vector<Piece>& pieces = dice.roll(2) == 0 ? move.from : move.to;
      Piece& piece = pieces[static_cast<std::size_t>(dice.roll(static_cast<int>(pieces.size())))];
      switch (dice.roll(8)) {
        case 0: piece.rank = dice.roll(schedule.shape.ranks); break;
        case 1: piece.slot = dice.roll(schedule.shape.ranks); break;
        case 2: piece.buffer = static_cast<Buffer>(dice.roll(3)); break;
        case 3: std::swap(pieces.front(), piece); break;
        case 4: pieces.push_back(piece); break;
        case 5: round.push_back(Move(move)); break;
        case 6: std::swap(schedule.rounds.front(), round); break;
        case 7: move.by = dice.roll(schedule.shape.ranks); break;
      }
    }
    if (verify(schedule).ok()) {
      ++passed;
      for (int order = 0; order < 3; ++order) CHECK(works(schedule, dice));
    } else {
      ++failed;
    }
  }
  CHECK(passed > 100);
  CHECK(failed > 100);
}

namespace {

/// A star around rank 0, right or with one mistake.
struct Star {
  static constexpr const char* name = "star";
  int mistake = 0;

  static constexpr bool supports(const Shape& shape) {
    return shape.operation == Operation::all_reduce && !shape.in_place && shape.ranks > 1;
  }
  static constexpr int rounds(const Shape&) { return 2; }
  static constexpr int scratch_slots(const Shape&) { return 0; }
  constexpr std::vector<Move> by(const Shape& shape, int rank, int round) const {
    std::vector<Move> moves;
    const int p = shape.ranks;
    if ((round == 0) != (rank == 0)) return moves;
    Move move;
    move.by = mistake == 1 ? 1 - rank : rank;
    if (round == 0) {
      for (int peer = 0; peer < p - (mistake == 2 ? 1 : 0); ++peer) move.from.push_back({peer, Buffer::input, 0, p});
    } else {
      move.from.push_back({0, Buffer::output, 0, p});
    }
    move.to.push_back({rank, Buffer::output, 0, p});
    moves.push_back(move);
    return moves;
  }
  constexpr std::vector<int> partners(const Shape& shape, int rank, int round) const {
    std::vector<int> result;
    if (round == 0 && rank != 0 && mistake != 3) result.push_back(0);
    if (round == 1 && rank == 0) {
      for (int peer = mistake == 4 ? 0 : 1; peer < shape.ranks; ++peer) result.push_back(peer);
    }
    return result;
  }
};

}  // namespace

TEST_CASE("a generator is proven with its laziness: performers and partners too") {
  for (int p = 2; p <= 9; ++p) {
    const Shape shape{Operation::all_reduce, p};
    CHECK(verify(Star{}, shape).ok());
    CHECK(verify(Star{}, shape).canonical);
    CHECK(verify(Star{1}, shape).fault == Fault::performer_wrong);
    CHECK(verify(Star{2}, shape).fault == Fault::contribution_missing);
    CHECK(verify(Star{3}, shape).fault == Fault::partner_missing);
    CHECK(verify(Star{4}, shape).fault == Fault::partner_wrong);
  }
}

static_assert(verify(Star{}, Shape{Operation::all_reduce, 5}).ok());
