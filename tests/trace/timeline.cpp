// SPDX-License-Identifier: Apache-2.0
#include "meshwise/trace/timeline.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace meshwise;

TEST_CASE("spans are recorded in the order in which they begin, nested like their scopes") {
  Timeline timeline;
  {
    const Timeline::Span step(timeline, "step");
    { const Timeline::Span forward(timeline, "forward"); }
    { const Timeline::Span backward(timeline, "backward"); }
  }
  const auto& events = timeline.events();
  REQUIRE(events.size() == 3);
  CHECK(events[0].name == "step");
  CHECK(events[1].name == "forward");
  CHECK(events[2].name == "backward");
  for (const auto& event : events) {
    CHECK(event.kind == Timeline::Kind::span);
    CHECK(event.begin > 0);
    CHECK(event.begin <= event.end);
    CHECK(event.begin >= events[0].begin);
    CHECK(event.end <= events[0].end);
  }
  CHECK(events[1].end <= events[2].begin);
}

TEST_CASE("an event has no end before it ends, and ends once") {
  Timeline timeline;
  Timeline::Event event;
  event.name = "transfer";
  const Timeline::Mark mark = timeline.begin(event);
  CHECK(timeline.events()[0].end == 0);
  timeline.end(mark);
  const auto end = timeline.events()[0].end;
  CHECK(end >= timeline.events()[0].begin);
  timeline.end(mark);
  CHECK(timeline.events()[0].end == end);
  event.begin = 3;
  event.end = 5;
  timeline.add(event);
  CHECK(timeline.events()[1].end == 5);
}

TEST_CASE("a cleared timeline forgets what has begun, and a paused one what begins") {
  Timeline timeline;
  {
    const Timeline::Span before(timeline, "before");
    timeline.clear();
    const Timeline::Span after(timeline, "after");
    CHECK(timeline.events().size() == 1);
  }
  REQUIRE(timeline.events().size() == 1);
  CHECK(timeline.events()[0].name == "after");
  CHECK(timeline.events()[0].end > 0);
  {
    const Timeline::Pause outer(timeline);
    {
      const Timeline::Pause inner(timeline);
      const Timeline::Span span(timeline, "unseen");
    }
    const Timeline::Span span(timeline, "unseen");
    timeline.add({});
  }
  CHECK(timeline.events().size() == 1);
  { const Timeline::Span span(timeline, "seen"); }
  CHECK(timeline.events().size() == 2);
}
