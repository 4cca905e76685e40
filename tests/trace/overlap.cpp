// SPDX-License-Identifier: Apache-2.0
#include "meshwise/trace/overlap.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

#include "../support/launch.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/fabric/delaying/delayed.hpp"
#include "meshwise/trace/record.hpp"

using namespace meshwise;
using Kind = Timeline::Kind;

namespace {

void add(Timeline& timeline, Kind kind, std::int64_t begin, std::int64_t end) {
  Timeline::Event event;
  event.kind = kind;
  event.begin = begin * 1'000'000'000;
  event.end = end * 1'000'000'000;
  timeline.add(event);
}

/// Computes for so many seconds.
void compute(Timeline& timeline, double seconds) {
  const Timeline::Span span(timeline, "compute");
  const std::int64_t end = monotonic_nanoseconds() + static_cast<std::int64_t>(seconds * 1e9);
  while (monotonic_nanoseconds() < end) {}
}

}  // namespace

TEST_CASE("moments count once, and waiting is no computing") {
  Timeline timeline;
  CHECK(overlap(timeline) == Overlap{});
  add(timeline, Kind::span, 10, 20);
  add(timeline, Kind::span, 12, 18);    // nested
  add(timeline, Kind::flight, 11, 17);  // hidden for 4 s, waited for in the rest
  add(timeline, Kind::flight, 13, 25);  // alone for 5 s
  add(timeline, Kind::wait, 15, 17);
  add(timeline, Kind::call, 30, 33);
  const Overlap sum = overlap(timeline);
  CHECK(sum.compute == doctest::Approx(8));
  CHECK(sum.exposed == doctest::Approx(5));
  CHECK(sum.flying == doctest::Approx(14));
  CHECK(sum.hidden == doctest::Approx(7));
}

TEST_CASE("what has not ended counts to the end") {
  Timeline timeline;
  add(timeline, Kind::flight, 1, 0);
  add(timeline, Kind::span, 2, 6);
  CHECK(overlap(timeline).flying == doctest::Approx(5));
  CHECK(overlap(timeline).hidden == doctest::Approx(4));
}

TEST_CASE("second by second the sums agree with a plain count") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Timeline timeline;
    bool layer[3][64] = {};
    for (std::uint64_t k = 0; k < 12; ++k) {
      const std::uint64_t draw = random_bits(seed, k);
      const auto begin = static_cast<std::int64_t>(1 + draw % 50);
      const auto end = begin + static_cast<std::int64_t>(draw / 50 % 12);
      const Kind kinds[] = {Kind::span, Kind::call, Kind::wait, Kind::flight};
      const Kind kind = kinds[draw / 1000 % 4];
      add(timeline, kind, begin, end);
      const int row = kind == Kind::span ? 0 : kind == Kind::flight ? 2 : 1;
      for (std::int64_t t = begin; t < end; ++t) layer[row][t] = true;
    }
    Overlap wanted;
    for (int t = 0; t < 64; ++t) {
      const bool computes = layer[0][t] && !layer[1][t];
      wanted.compute += computes ? 1 : 0;
      wanted.exposed += layer[1][t] ? 1 : 0;
      wanted.flying += layer[2][t] ? 1 : 0;
      wanted.hidden += computes && layer[2][t] ? 1 : 0;
    }
    const Overlap found = overlap(timeline);
    CHECK(found.compute == doctest::Approx(wanted.compute));
    CHECK(found.exposed == doctest::Approx(wanted.exposed));
    CHECK(found.flying == doctest::Approx(wanted.flying));
    CHECK(found.hidden == doctest::Approx(wanted.hidden));
  }
}

TEST_CASE("what could be hidden, and how much of it is") {
  constexpr Overlap without{10, 4, 0, 0}, with{10, 1, 4, 3};
  static_assert(hideable(without) == 4);
  static_assert(hideable(without, 3) == 3);
  static_assert(hidden_part(without, with) == 0.75);
  static_assert(hidden_part(without, with, 3) == 1);
  static_assert(hidden_part(without, without) == 0);
  static_assert(hidden_part(Overlap{}, Overlap{}) == 1);
}

TEST_CASE("on a slow network a started operation is under way while the program computes") {
  launch(2, [](Communicator& plain) {
    Delays delays;
    delays.alpha = 0.02;
    Timeline timeline;
    Communicator line = record(delayed(std::move(plain), delays), timeline);
    int one = 1;
    all_reduce(line, std::span(&one, 1));
    compute(timeline, 0.03);
    const Overlap without = overlap(timeline);
    CHECK(without.exposed >= 0.02);
    CHECK(without.compute >= 0.03);
    CHECK(without.hidden == 0);
    timeline.clear();
    auto pending = start_all_reduce(line, std::span(&one, 1));
    compute(timeline, 0.03);
    pending.wait();
    const Overlap with = overlap(timeline);
    CHECK(with.hidden >= 0.03);
    CHECK(with.flying >= with.hidden);
    CHECK(one == 4);
  });
}
