// SPDX-License-Identifier: Apache-2.0
#include "meshwise/trace/record.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "../support/launch.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/fabric/delaying/delayed.hpp"
#include "meshwise/tensor/convert.hpp"

using namespace meshwise;
using Kind = Timeline::Kind;

namespace {

std::vector<Timeline::Event> of_kind(const Timeline& timeline, Kind kind) {
  std::vector<Timeline::Event> result;
  for (const auto& event : timeline.events()) {
    if (event.kind == kind) result.push_back(event);
  }
  return result;
}

}  // namespace

TEST_CASE("blocking operations are calls, started ones flights and waits, with verb, axis, ranks and bytes") {
  launch(3, [](Communicator& plain) {
    Timeline timeline;
    plain.set_name("line");
    Communicator line = record(std::move(plain), timeline);
    std::vector<double> data(6, 1);
    all_reduce(line, data);
    auto pending = start_all_reduce(line, data);
    pending.wait();
    auto prepared = prepare_all_reduce(line, data);
    prepared.run();
    CHECK(data[5] == 27);
    const auto& events = timeline.events();
    REQUIRE(events.size() == 4);
    for (const auto& event : events) {
      CHECK(event.name == "all_reduce");
      CHECK(event.axis == "line");
      CHECK(event.ranks == 3);
      CHECK(event.bytes == 2 * 2 * 2 * sizeof(double));
      CHECK(event.begin <= event.end);
    }
    CHECK(events[0].kind == Kind::call);
    CHECK(events[1].kind == Kind::flight);
    CHECK(events[2].kind == Kind::wait);
    CHECK(events[3].kind == Kind::call);
    CHECK(events[1].begin <= events[2].begin);
    CHECK(events[2].end >= events[1].end);
    CHECK(line.traffic().calls == 3);
    CHECK(line.traffic().volume == 3 * events[0].bytes);
  });
}

TEST_CASE("a flight ends where a test sees it complete, and where it is given up") {
  launch(2, [](Communicator& plain) {
    Timeline timeline;
    Communicator line = record(std::move(plain), timeline);
    Communicator other = line.split(0);
    timeline.clear();
    int one = 1;
    auto pending = start_all_reduce(line, std::span(&one, 1));
    while (!pending.test()) {}
    REQUIRE(timeline.events().size() == 1);
    CHECK(timeline.events()[0].end > 0);
    pending.wait();
    CHECK(timeline.events().size() == 1);
    try {
      auto dropped = start_all_reduce(other, std::span(&one, 1));
      throw 1;
    } catch (int) {
    } catch (const Error&) {}  // the other rank was first
    REQUIRE(timeline.events().size() == 2);
    CHECK(timeline.events()[1].end > 0);
  });
}

TEST_CASE("messages are recorded on both sides, with their peers") {
  launch(2, [](Communicator& plain) {
    Timeline timeline;
    Communicator line = record(std::move(plain), timeline);
    const int me = line.rank(), other = 1 - me;
    std::vector<int> in(5), out(5, me);
    exchange(line, out, other, in, other);
    group(line, [&](Group& g) {
      g.send(out, other);
      g.receive(in, other);
    });
    auto pending = start_group(line, [&](Group& g) {
      g.send(out, other);
      g.receive(in, other);
    });
    while (!pending.test()) {}
    CHECK(in[4] == other);
    CHECK(of_kind(timeline, Kind::flight).size() == 3);
    const auto calls = of_kind(timeline, Kind::call);
    REQUIRE(calls.size() == 3);
    CHECK(calls[0].name == "exchange");
    CHECK(calls[2].name == "group");
    for (const auto& event : timeline.events()) {
      CHECK(event.peer == other);
      CHECK(event.bytes == 20);
      CHECK(event.end > 0);
    }
  });
}

TEST_CASE("groups that are split off are recorded, and so the axes of a mesh by name") {
  launch(4, [](Communicator& world) {
    Timeline timeline;
    world = record(std::move(world), timeline);
    {
      using Grid = Mesh<dp, tp>;
      const Grid mesh(world, {2, 2});
      timeline.clear();
      const Tensor<float, Dims<batch>, Layout<Grid>> x(mesh, {8});
      (void)convert<Replicate<tp>>(view_as<Partial<tp>>(x));
      (void)convert<Replicate<dp>>(view_as<Shard<batch, dp>>(x));
    }
    const auto calls = of_kind(timeline, Kind::call);
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].axis == "tp");
    CHECK(calls[0].bytes == 32);
    CHECK(calls[1].axis == "dp");
    CHECK(calls[1].bytes == 16);
    CHECK(calls[1].ranks == 2);
    world = Communicator();
  });
}

TEST_CASE("a recorded wait lasts as long as a delay") {
  launch(2, [](Communicator& plain) {
    Timeline timeline;
    Delays delays;
    delays.alpha = 0.01;
    Communicator line = record(delayed(std::move(plain), delays), timeline);
    barrier(line);
    auto pending = start_barrier(line);
    pending.wait();
    const auto& events = timeline.events();
    REQUIRE(events.size() == 3);
    CHECK(events[0].end - events[0].begin >= 10'000'000);
    CHECK(events[1].end - events[1].begin >= 10'000'000);
  });
}

TEST_CASE("errors pass through, and end what was recorded") {
  launch(2, [](Communicator& plain) {
    Timeline timeline;
    Communicator line = record(std::move(plain), timeline);
    std::vector<int> data(line.rank() == 0 ? 3 : 4);
    CHECK_THROWS_AS(all_reduce(line, data), Error);
    CHECK_THROWS_AS(barrier(line), Error);
    CHECK(timeline.events().size() == 2);
    for (const auto& event : timeline.events()) CHECK(event.end > 0);
  });
  Timeline timeline;
  CHECK_THROWS_WITH_AS((void)record(Communicator(), timeline), doctest::Contains("record"), Error);
}
