// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/delaying/delayed.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "../../support/launch.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/mesh/mesh.hpp"

using namespace meshwise;

TEST_CASE("one communicator may be delayed and others not, and ranks differently") {
  launch(3, [](Communicator& world) {
    Communicator fast = world.split(0);
    Delays delays;
    delays.alpha = 1e-3 * world.rank();
    delays.landing = world.rank() == 1 ? Landing::at_once : Landing::late;
    Communicator late = delayed(std::move(world), delays);
    CHECK(world.empty());
    std::vector<int> a(100, 1), b(2000, 1);
    auto slow = start_all_reduce(late, a);
    all_reduce(fast, b);
    if (fast.rank() == 2) {
      all_reduce(fast, b);
      slow.wait();
    } else {
      slow.wait();
      all_reduce(fast, b);
    }
    CHECK(a[50] == 3);
    CHECK(b[1000] == 9);
  });
}

TEST_CASE("in virtual time an operation takes as long as it says, whatever the machine does") {
  for (const Landing landing : {Landing::late, Landing::at_once, Landing::mixed}) {
    launch(3, [landing](Communicator& world) {
      VirtualClock clock;
      Delays delays;
      delays.alpha = 3600;  // nobody waits for an hour
      delays.landing = landing;
      Communicator line = delayed(std::move(world), delays, clock);
      const std::int64_t begin = clock.now(), hour = 3'600'000'000'000;
      std::vector<int> data(100, 1);
      auto pending = start_all_reduce(line, data);
      CHECK(!pending.test());
      clock.advance(1800);
      CHECK(!pending.test());
      clock.advance(1800);
      CHECK(pending.test());  // though the others may have to be waited for
      CHECK(clock.now() == begin + hour);
      pending.wait();
      CHECK(data[99] == 3);
      all_reduce(line, data);
      CHECK(clock.now() == begin + 2 * hour);
      auto hidden = start_all_reduce(line, data);
      clock.advance(7200);
      hidden.wait();
      CHECK(clock.now() == begin + 4 * hour);
      CHECK(data[0] == 27);
      Communicator group = line.split(line.rank() == 0 ? 0 : 1);
      CHECK(clock.now() == begin + 4 * hour);
      all_reduce(group, data);
      CHECK(clock.now() == begin + (group.size() == 1 ? 4 : 5) * hour);
    });
  }
}

TEST_CASE("the axes of a mesh are as late as its world") {
  launch(4, [](Communicator& world) {
    Delays delays;
    delays.alpha = 0.01;
    world = delayed(std::move(world), delays);
    const Mesh<dp, tp> mesh(world, {2, 2});
    std::vector<int> data(3, 1);
    const std::int64_t begin = monotonic_nanoseconds();
    all_reduce(mesh.along<tp>(), data);
    all_reduce(mesh.along<dp>(), data);
    CHECK(monotonic_nanoseconds() - begin >= 20'000'000);
    CHECK(data[0] == 4);
    CHECK(mesh.along<tp>().name() == "tp");
  });
}

TEST_CASE("bad delays and empty communicators are refused, and the communicator stays usable") {
  launch(2, [](Communicator& world) {
    Delays delays;
    delays.beta = -1;
    CHECK_THROWS_WITH_AS((void)delayed(std::move(world), delays), doctest::Contains("beta >= 0"), Error);
    int one = 1;
    all_reduce(world, std::span(&one, 1));
    CHECK(one == 2);
    CHECK_THROWS_WITH_AS((void)delayed(Communicator(), Delays()), doctest::Contains("delayed"), Error);
  });
}
