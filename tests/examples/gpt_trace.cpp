// SPDX-License-Identifier: Apache-2.0
// The timeline of a step: what is computed when, and what is on its way meanwhile, by the order in which it began.
#include <doctest/doctest.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <iterator>

#include "gpt_support.hpp"
#include "meshwise/trace/record.hpp"
#include "meshwise/trace/write_trace.hpp"

namespace {

using namespace test;

using Events = std::vector<Timeline::Event>;

/// The place of the first event of a kind that begins with a name, from a place on; or the end.
std::size_t find(const Events& events, Timeline::Kind kind, const std::string& name, std::size_t from = 0) {
  while (from < events.size() && (events[from].kind != kind || !events[from].name.starts_with(name))) ++from;
  return from;
}

/// The second step of two on two ranks along dp, as rank 0 sees it; and the file that both write.
Events trace_of(int zero, std::string& text) {
  const char* const path = "gpt_trace_test.json";
  Events events;
  std::deque<Timeline> timelines(2);
  launch(2, [&](Communicator& world) {
    const int rank = world.rank();
    Timeline& timeline = timelines[static_cast<std::size_t>(rank)];
    world = record(std::move(world), timeline);
    const gpt::Grid mesh(world, {2, 1, 1});
    gpt::Training t;
    t.zero = zero;
    t.timeline = &timeline;
    const auto trainer = gpt::make_trainer(mesh, odd_sizes, t);
    trainer->step(batch_of(mesh, odd_sizes, 1, 4));
    trainer->settle();
    timeline.clear();
    trainer->step(batch_of(mesh, odd_sizes, 2, 4));
    write_trace(world, timeline, path);
    if (rank == 0) events = timeline.events();
  });
  std::ifstream file(path);
  text.assign(std::istreambuf_iterator<char>(file), {});
  file.close();
  std::remove(path);
  return events;
}

}  // namespace

TEST_CASE("gpt: gradients of a block are on their way before the block below is computed") {
  std::string text;
  const Events events = trace_of(0, text);
  for (std::size_t layer = odd_sizes.layers; layer-- > 1;) {
    const std::size_t above = find(events, Timeline::Kind::span, "backward of block " + std::to_string(layer));
    const std::size_t below = find(events, Timeline::Kind::span, "backward of block " + std::to_string(layer - 1));
    const std::size_t sum = find(events, Timeline::Kind::flight, "all_reduce", above);
    CHECK(above < sum);
    CHECK(sum < below);
    CHECK(below < events.size());
    // Nobody waits for it before all is computed.
    const std::size_t wait = find(events, Timeline::Kind::wait, "all_reduce", above);
    CHECK(find(events, Timeline::Kind::span, "embedding's backward") < wait);
  }
  for (const char* what : {"embedding", "forward of block 2", "output", "output's backward", "backward of block 0",
                           "update", "all_reduce dp"}) {
    CHECK(text.find("\"" + std::string(what) + "\"") != std::string::npos);
  }
  CHECK(text.find("\"pid\":1") != std::string::npos);
}

TEST_CASE("gpt: with stage 3 the next block is on its way while one is computed, forward and backward") {
  std::string text;
  const Events events = trace_of(3, text);
  const auto gathers_before = [&](const std::string& span) {
    std::size_t count = 0;
    const std::size_t end = find(events, Timeline::Kind::span, span);
    for (std::size_t i = 0; i < end; ++i) {
      if (events[i].kind == Timeline::Kind::flight && events[i].name == "all_gather") ++count;
    }
    return count;
  };
  // Two for each unit, of which one is what both axes share; the unit in use and the one after it.
  CHECK(gathers_before("embedding") == 4);
  CHECK(gathers_before("forward of block 0") == 6);
  CHECK(gathers_before("forward of block 1") == 8);
  const std::size_t first = gathers_before("output's backward");
  CHECK(gathers_before("backward of block 2") == first + 2);
  CHECK(gathers_before("backward of block 1") == first + 4);
}
