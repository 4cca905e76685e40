// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/zero.hpp"

#include <doctest/doctest.h>

#include "zero_support.hpp"

namespace {

using namespace test;

void require_same(const Outcome& a, const Outcome& b, const std::string& what) {
  require(a.parameters == b.parameters, what + ": the parameters, to the bit");
  require(a.losses == b.losses, what + ": the losses, to the bit");
  require(a.norms == b.norms, what + ": the norms, to the bit");
}
void require_close(const Outcome& a, const Outcome& b, double bound, const std::string& what) {
  require_near(a.losses, b.losses, bound, what + ": the losses");
  require_near(a.norms, b.norms, bound, what + ": the norms");
  require(a.parameters.size() == b.parameters.size(), what);
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    require_near(a.parameters[i], b.parameters[i], bound, what + ": parameter " + std::to_string(i));
  }
}

Outcome alone(const ModelShape& shape) {
  Outcome outcome;
  on_grid({1, 1}, [&](const Grid& mesh) { outcome = train_plainly<OverDp, double>(mesh, shape, 1000); });
  return outcome;
}

}  // namespace

TEST_CASE("zero: all stages, bucket sizes and prefetch depths give the same parameters to the bit") {
  const ModelShape shape;
  const Outcome one = alone(shape);
  for (const Ranks ranks :
       {Ranks{1, 1}, Ranks{2, 1}, Ranks{3, 1}, Ranks{4, 1}, Ranks{5, 1}, Ranks{2, 2}, Ranks{3, 2}}) {
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    on_grid(ranks, [&](const Grid& mesh) {
      const Outcome plain = train_plainly(mesh, shape, 1);
      require_close(plain, one, 2e-4, "one rank in double");
      require_same(train_plainly(mesh, shape, 100), plain, "buckets of 100 bytes");
      require_same(train_plainly(mesh, shape, std::size_t{1} << 30), plain, "one bucket");
      require_same(train<DataParallel<dp>>(mesh, shape), plain, "data parallel");
      require_same(train<Zero1<dp>>(mesh, shape), plain, "stage 1");
      require_same(train<Zero2<dp>>(mesh, shape), plain, "stage 2");
      for (const std::size_t prefetch : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{9}}) {
        const std::string what = ", prefetch " + std::to_string(prefetch);
        require_same(train<Zero3<dp>>(mesh, shape, {prefetch, prefetch == 2}), plain, "stage 3" + what);
      }
      require_same(train<Zero3<dp>>(mesh, shape, {1, true}), plain, "stage 3, the last unit kept");
      require_same(train<Zero3Unresharded<dp>>(mesh, shape), plain, "stage 3 unresharded");
    });
  }
}

TEST_CASE("zero: several micro-batches, of which the last one may be summed alone or each by itself") {
  ModelShape shape;
  shape.micro_batches = 3;
  shape.steps = 8;
  const Outcome one = alone(shape);
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{3, 1}, Ranks{2, 2}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      const Outcome owed = train_plainly(mesh, shape, 100);
      require_close(owed, one, 2e-4, "one rank in double");
      require_same(train<DataParallel<dp>>(mesh, shape), owed, "data parallel");
      require_same(train<Zero1<dp>>(mesh, shape), owed, "stage 1 adds before it sums, too");
      const Outcome split = train<Zero2<dp>>(mesh, shape);
      require_close(split, one, 2e-4, "stage 2 sums before it adds");
      require_same(train<Zero3<dp>>(mesh, shape), split, "stage 3");
      require_same(train<Zero3<dp>>(mesh, shape, {2, true}), split, "stage 3, the last unit kept");
      require_same(train<Zero3Unresharded<dp>>(mesh, shape), split, "stage 3 unresharded");
    });
  }
}

TEST_CASE("zero: two data axes, all as one, split inside and replicated across, and with secondary parts") {
  ModelShape shape;
  shape.steps = 8;
  for (const int micro_batches : {1, 2}) {
    shape.micro_batches = micro_batches;
    const Outcome one = alone(shape);
    for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{3, 2}, Ranks{2, 3}, Ranks{1, 3}, Ranks{3, 1}}) {
      CAPTURE(ranks.data);
      CAPTURE(ranks.tensor);
      on_grid(ranks, [&](const Grid& mesh) {
        const Outcome plain = train_plainly<OverBoth, float, Mesh<dp, tp>>(mesh, shape, 100);
        require_close(plain, one, 2e-4, "one rank in double");
        require_same(train<DataParallel<dp, tp>, OverBoth>(mesh, shape), plain, "data parallel over both");
        require_same(train<Zero1<dp, tp>, OverBoth>(mesh, shape), plain, "stage 1 over both");
        const Outcome split = train<Zero2<dp, tp>, OverBoth>(mesh, shape);
        require_close(split, one, 2e-4, "stage 2 over both");
        require_same(train<Zero3<dp, tp>, OverBoth>(mesh, shape), split, "stage 3 over both");
        require_same(train<SecondaryZero3<dp, tp>, OverBoth>(mesh, shape), split, "secondary parts");
        const Outcome hybrid = train<HybridZero3<dp, tp>, OverBoth>(mesh, shape);
        require_close(hybrid, one, 2e-4, "hybrid");
        require_same(train<HybridZero3<dp, tp>, OverBoth>(mesh, shape, {0, true}), hybrid, "hybrid without prefetch");
      });
    }
  }
}

TEST_CASE("zero: more layers than parameters in them, and shapes that nothing divides") {
  for (const ModelShape shape : {ModelShape{1, 1, 1, 5, 5, 1}, ModelShape{3, 1, 0, 2, 5, 2},
                                 ModelShape{2, 2, 1, 1, 5, 1}, ModelShape{0, 3, 2, 2, 3, 1}}) {
    for (const Ranks ranks : {Ranks{2, 1}, Ranks{5, 1}, Ranks{3, 2}}) {
      on_grid(ranks, [&](const Grid& mesh) {
        const Outcome plain = train_plainly(mesh, shape, 1);
        require_same(train<Zero1<dp>>(mesh, shape), plain, "stage 1");
        if (shape.micro_batches != 1) return;
        require_same(train<Zero2<dp>>(mesh, shape), plain, "stage 2");
        require_same(train<Zero3<dp>>(mesh, shape), plain, "stage 3");
      });
    }
  }
}
