// SPDX-License-Identifier: Apache-2.0
// What buckets and prefetch hide of a slow network, in virtual time: the same numbers on every machine.
#include <doctest/doctest.h>

#include <cmath>

#include "../support/launch.hpp"
#include "overlap_support.hpp"
#include "support.hpp"

namespace {

using namespace overlapping;
using Kind = Timeline::Kind;

struct Recorded {
  std::vector<Timeline::Event> events;
  Overlap sums;
};

/// The timeline of every rank.
std::vector<Recorded> recorded(int ranks, TimedStep step, const TimedModel& shape, bool overlaps) {
  std::vector<Recorded> all(static_cast<std::size_t>(ranks));
  launch(ranks, [&](Communicator& world) {
    Recorded& own = all[static_cast<std::size_t>(world.rank())];
    VirtualClock clock;
    Timeline timeline(clock);
    record_step(std::move(world), step, shape, overlaps, timeline, &clock);
    own = {timeline.events(), overlap(timeline)};
  });
  return all;
}

const Timeline::Event& span_named(const std::vector<Timeline::Event>& events, const std::string& name) {
  for (const Timeline::Event& event : events) {
    if (event.kind == Kind::span && event.name == name) return event;
  }
  throw std::runtime_error("no span " + name);
}

std::vector<Timeline::Event> flights(const std::vector<Timeline::Event>& events, const std::string& verb) {
  std::vector<Timeline::Event> result;
  for (const Timeline::Event& event : events) {
    if (event.kind == Kind::flight && event.name == verb) result.push_back(event);
  }
  return result;
}

bool overlap_in_time(const Timeline::Event& a, const Timeline::Event& b) { return a.begin < b.end && b.begin < a.end; }

/// The part of what could be hidden that is hidden, on the rank that hides least.
double least_hidden(int ranks, TimedStep step, const TimedModel& shape, double compute_left) {
  const auto off = recorded(ranks, step, shape, false), on = recorded(ranks, step, shape, true);
  double least = 1;
  for (std::size_t rank = 0; rank < off.size(); ++rank) {
    CHECK(off[rank].sums.hidden == 0);
    CHECK(off[rank].sums.compute == doctest::Approx(shape.compute()));
    CHECK(on[rank].sums.compute == doctest::Approx(shape.compute()));
    const double part = hidden_part(off[rank].sums, on[rank].sums, compute_left);
    least = part < least ? part : least;
  }
  return least;
}

}  // namespace

TEST_CASE("buckets hide at least 70 % of what can be hidden, on slow networks and slower ones") {
  for (const double transfer : {0.1e-3, 0.4e-3, 0.8e-3, 2e-3}) {
    for (const int ranks : {2, 3}) {
      TimedModel shape;
      shape.transfer = transfer;
      const double left = 2 * shape.forward * (shape.layers - 1);  // after the first bucket is full
      const double part = least_hidden(ranks, step_with_buckets, shape, left);
      CHECK(part >= 0.7);
      CHECK(part <= 1.0001);
    }
  }
}

TEST_CASE("the prefetch of stage 3 hides at least 70 % of what can be hidden") {
  for (const double transfer : {0.1e-3, 0.4e-3, 0.8e-3}) {
    for (const int ranks : {2, 3}) {
      TimedModel shape;
      shape.transfer = transfer;
      const double part = least_hidden(ranks, step_of_zero3, shape, shape.compute());
      CHECK(part >= 0.7);
      CHECK(part <= 1.0001);
    }
  }
}

TEST_CASE("the trace shows it: what is in flight during which layer's compute") {
  const TimedModel shape;
  for (const Recorded& rank : recorded(2, step_with_buckets, shape, true)) {
    // The bucket of a layer is summed while the layer before it computes, and only the last sum is waited for.
    const auto sums = flights(rank.events, "all_reduce");
    CHECK(sums.size() == static_cast<std::size_t>(shape.layers));
    for (int l = 1; l < shape.layers; ++l) {
      const auto& sum = sums[static_cast<std::size_t>(shape.layers - 1 - l)];
      CHECK(overlap_in_time(sum, span_named(rank.events, "backward " + std::to_string(l - 1))));
      CHECK(sum.begin >= span_named(rank.events, "backward " + std::to_string(l)).end);
    }
  }
  for (const Recorded& rank : recorded(2, step_of_zero3, shape, true)) {
    const auto gathers = flights(rank.events, "all_gather"), scatters = flights(rank.events, "reduce_scatter");
    CHECK(gathers.size() == 2 * static_cast<std::size_t>(shape.layers));
    CHECK(scatters.size() == static_cast<std::size_t>(shape.layers));
    for (int l = 1; l < shape.layers; ++l) {
      const auto at = static_cast<std::size_t>(l), back = 2 * static_cast<std::size_t>(shape.layers) - 1 - at;
      // The next unit is on its way while this one is used, and before a backward the one before it.
      CHECK(overlap_in_time(gathers[at], span_named(rank.events, "forward " + std::to_string(l - 1))));
      CHECK(overlap_in_time(gathers[back + 1], span_named(rank.events, "backward " + std::to_string(l))));
      // The gradients of a unit leave while the unit before it computes.
      CHECK(overlap_in_time(scatters[static_cast<std::size_t>(shape.layers) - 1 - at],
                            span_named(rank.events, "backward " + std::to_string(l - 1))));
    }
  }
}

TEST_CASE("virtual time is the same in every run, and a waiting run takes as long as its parts") {
  const TimedModel shape;
  for (const TimedStep step : {step_with_buckets, step_of_zero3}) {
    const auto once = recorded(3, step, shape, true), again = recorded(3, step, shape, true);
    const auto off = recorded(3, step, shape, false);
    for (std::size_t rank = 0; rank < once.size(); ++rank) {
      REQUIRE(once[rank].events.size() == again[rank].events.size());
      for (std::size_t i = 0; i < once[rank].events.size(); ++i) {
        CHECK(once[rank].events[i].begin - once[rank].events[0].begin ==
              again[rank].events[i].begin - again[rank].events[0].begin);
        CHECK(once[rank].events[i].end - once[rank].events[0].begin ==
              again[rank].events[i].end - again[rank].events[0].begin);
      }
      CHECK(off[rank].sums.exposed > once[rank].sums.exposed);
    }
  }
}
