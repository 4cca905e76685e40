// SPDX-License-Identifier: Apache-2.0
// Data parallelism over a network that completes everything late, in random order on different axes, with data that
// lands when it is late or long before that is said: no buffer may be used again before its collective has ended.
#include <doctest/doctest.h>

#include "meshwise/fabric/delaying/launch.hpp"
#include "zero_support.hpp"

namespace {

using namespace test;

void on_delayed_grid(Ranks ranks, const Delays& delays, const std::function<void(const Grid&)>& program) {
  LaunchOptions options;
  options.deadline = 120;
  launch_delayed(ranks.data * ranks.tensor, options, delays, [&](Communicator& world) {
    const Grid mesh(world, {ranks.data, ranks.tensor});
    program(mesh);
  });
}

bool same(const Outcome& a, const Outcome& b) { return a.parameters == b.parameters && a.losses == b.losses; }

}  // namespace

TEST_CASE("delayed: buckets of any size, stages and prefetch depths give what they give without delays") {
  ModelShape shape;
  shape.steps = 3;
  for (const Ranks ranks : {Ranks{2, 1}, Ranks{3, 1}, Ranks{2, 2}}) {
    for (const int micro_batches : {1, 2}) {
      shape.micro_batches = micro_batches;
      Outcome owed, split;
      on_grid(ranks, [&](const Grid& mesh) {
        const Outcome one = train_plainly(mesh, shape, 100), other = train<Zero2<dp>>(mesh, shape);
        if (!mesh.is_first()) return;
        owed = one;
        split = other;
      });
      for (const Landing landing : {Landing::late, Landing::at_once, Landing::mixed}) {
        const Delays delays{5e-6, 1e-9, 2e-4, static_cast<std::uint64_t>(micro_batches), landing};
        on_delayed_grid(ranks, delays, [&](const Grid& mesh) {
          for (const std::size_t bytes : {std::size_t{1}, std::size_t{40}, std::size_t{200}, std::size_t{1} << 30}) {
            require(same(train_plainly(mesh, shape, bytes), owed), "buckets of " + std::to_string(bytes));
          }
          require(same(train<Zero1<dp>>(mesh, shape), owed), "stage 1");
          require(same(train<Zero2<dp>>(mesh, shape), split), "stage 2");
          for (const std::size_t prefetch : {0U, 1U, 3U}) {
            const std::string what = "stage 3, prefetch " + std::to_string(prefetch);
            require(same(train<Zero3<dp>>(mesh, shape, {prefetch, prefetch == 1}), split), what);
          }
          require(same(train<Zero3Unresharded<dp>>(mesh, shape), split), "stage 3 unresharded");
        });
      }
    }
  }
}

TEST_CASE("delayed: two data axes, whose collectives overtake each other") {
  ModelShape shape;
  shape.steps = 3;
  shape.micro_batches = 2;
  Outcome hybrid, both;
  const Ranks ranks{2, 2};
  on_grid(ranks, [&](const Grid& mesh) {
    const Outcome one = train<HybridZero3<dp, tp>, OverBoth>(mesh, shape);
    const Outcome other = train<Zero3<dp, tp>, OverBoth>(mesh, shape);
    if (!mesh.is_first()) return;
    hybrid = one;
    both = other;
  });
  for (const Landing landing : {Landing::late, Landing::at_once, Landing::mixed}) {
    on_delayed_grid(ranks, {5e-6, 1e-9, 3e-4, 7, landing}, [&](const Grid& mesh) {
      require(same(train<HybridZero3<dp, tp>, OverBoth>(mesh, shape), hybrid), "hybrid");
      require(same(train<SecondaryZero3<dp, tp>, OverBoth>(mesh, shape), both), "secondary parts");
      require(same(train<Zero3<dp, tp>, OverBoth>(mesh, shape), both), "stage 3 over both");
    });
  }
}
