// SPDX-License-Identifier: Apache-2.0
// The trainer in float: a run on any mesh, with any stage, is the run on one rank, and replicas stay equal to the bit.
#include <doctest/doctest.h>

#include "../../examples/gpt/volumes.hpp"
#include "../support/sanitized.hpp"
#include "gpt_support.hpp"
#include "meshwise/trace/ledger.hpp"

namespace {

using namespace test;

constexpr std::size_t sequences = 7;

gpt::Training training(std::uint64_t steps) {
  gpt::Training t;
  t.adamw.learning_rate = 3e-3;
  t.steps = steps;
  t.warmup = 3;
  t.dropout = 0.1;
  return t;
}

}  // namespace

TEST_CASE("gpt: a run on any mesh is the run on one rank, whatever the stage") {
  // Up to 8 ranks: more than heads, than sequences, than positions in two parts each.
  gpt::Training t = training(full() ? 30 : 3);
  const Run one = run({}, odd_sizes, t, sequences);
  t.precision = gpt::Precision::bf16;
  const Run rough = run({}, odd_sizes, t, sequences);
  int turn = 0;
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const MeshShape& shape : shapes_of(ranks)) {
      ++turn;
      if (!full() && (ranks > 4 || building::sanitized) && turn % 3 != 0) continue;
      for (int variant = 0; variant < 8; ++variant) {
        const bool narrow = variant >= 4;
        t.zero = variant % 4;
        if (!full() && (narrow ? turn % 5 != 0 || t.zero != turn / 5 % 4 : t.zero != turn % 4)) continue;
        t.precision = narrow ? gpt::Precision::bf16 : gpt::Precision::f32;
        CAPTURE(shape_name(shape));
        CAPTURE(t.zero);
        CAPTURE(narrow);
        const Distance d = distance(run(shape, odd_sizes, t, sequences), narrow ? rough : one);
        INFO("relative differences: loss " << d.loss << ", norm " << d.norm << ", parameters " << d.parameters);
        CHECK(d.loss < (narrow ? 2e-3 : 1e-5));
        CHECK(d.norm < (narrow ? 3e-2 : 1e-5));
        CHECK(d.parameters < (narrow ? 2e-2 : 1e-4));
      }
    }
  }
}

TEST_CASE("gpt: fewer sequences than ranks that share them") {
  gpt::Training t = training(3);
  for (const std::size_t few : {1u, 2u}) {
    const Run one = run({}, odd_sizes, t, few);
    for (t.zero = 0; t.zero < 4; ++t.zero) {
      const Distance d = distance(run({4, 1, 1}, odd_sizes, t, few), one);
      CHECK(d.loss < 1e-5);
      CHECK(d.parameters < 1e-4);
    }
  }
}

TEST_CASE("gpt: it learns: the loss falls, in bf16 as in f32") {
  if (building::sanitized) return;  // nothing new but many more steps
  gpt::Training t = training(40);
  t.dropout = 0;
  const Run r = run({2, 1, 2}, odd_sizes, t, sequences);
  CHECK(r.results.front().loss == doctest::Approx(std::log(29.0)).epsilon(0.02));
  CHECK(r.results.back().loss < 0.9 * r.results.front().loss);
  t.precision = gpt::Precision::bf16;
  t.zero = 1;
  const Run narrow = run({2, 1, 2}, odd_sizes, t, sequences);
  CHECK(narrow.results.back().loss == doctest::Approx(r.results.back().loss).epsilon(0.02));
}

TEST_CASE("gpt: stages, buckets, what is gathered ahead and what is recomputed change no bit after 20 steps") {
  using gpt::Precision;
  using gpt::Recomputed;
  constexpr std::size_t two_blocks = 20'000, all = std::size_t{1} << 40;
  struct Variant {
    int zero;
    std::size_t bytes, prefetch;
    Recomputed recompute = Recomputed::none;
  };
  struct Case {
    MeshShape shape;
    Precision precision;
    std::vector<Variant> variants;
  };
  const Case cases[] = {
      {{2, 1, 1},
       Precision::f32,
       {{1, 0, 1}, {2, two_blocks, 1, Recomputed::full}, {3, 0, 0}, {3, 0, 1, Recomputed::selective}, {3, 0, 2}}},
      {{3, 1, 2}, Precision::f32, {{1, all, 1}, {2, 0, 1}, {3, two_blocks, 9}, {0, all, 1, Recomputed::full}}},
      {{2, 2, 1}, Precision::f32, {{1, 0, 1}, {2, 0, 1}, {3, 0, 1, Recomputed::full}}},
      {{2, 1, 2},
       Precision::bf16,
       {{1, 0, 1}, {2, all, 1}, {3, 0, 1, Recomputed::selective}, {3, two_blocks, 0, Recomputed::full}}}};
  for (const Case& c : cases) {
    CAPTURE(shape_name(c.shape));
    gpt::Training t = training(building::sanitized ? 3 : 20);
    t.precision = c.precision;
    const Run usual = run(c.shape, odd_sizes, t, sequences);
    for (const Variant& v : c.variants) {
      t.zero = v.zero;
      t.bucket_bytes = v.bytes;
      t.prefetch = v.prefetch;
      t.recompute = v.recompute;
      CAPTURE(v.zero);
      CAPTURE(v.bytes);
      CAPTURE(v.prefetch);
      CAPTURE(static_cast<int>(v.recompute));
      const Run other = run(c.shape, odd_sizes, t, sequences);
      CHECK(other.parameters == usual.parameters);
      CHECK(other.results == usual.results);
    }
  }
}

TEST_CASE("gpt: in bf16, what ranks hold of each parameter between steps: 14 bytes, 2 + 12/n, or 14/n") {
  for (int zero = 0; zero < 4; ++zero) {
    CAPTURE(zero);
    gpt::Training t = training(1);
    t.precision = gpt::Precision::bf16;
    t.zero = zero;
    CHECK_NOTHROW(on_mesh({3, 1, 2}, [&](const gpt::Grid& mesh) {
      const auto trainer = gpt::make_trainer(mesh, odd_sizes, t);
      trainer->step(batch_of(mesh, odd_sizes, 1, sequences));
      trainer->settle();
      const auto memory = collect_ledger(mesh).memory;
      const auto held = [&](Category c) { return memory[static_cast<std::size_t>(c)].current; };
      const gpt::ParameterCounts n = gpt::count_parameters(odd_sizes);
      // Along tp all have the whole of some, and a stage that splits these splits them over all ranks.
      const std::uint64_t everywhere = 3 * (n.split + 2 * n.whole), once = n.split + n.whole;
      require(held(Category::parameters) == 2 * (zero == 3 ? once : everywhere), "parameters");
      require(held(Category::optimizer) == 12 * (zero >= 1 ? once : everywhere), "optimizer state");
      require(held(Category::gradients) == 0, "gradients");
    }));
  }
}

TEST_CASE("gpt: what a step communicates is the sum of its parts, exactly") {
  struct Case {
    MeshShape shape;
    int zero;
    std::size_t micro_batches;
    gpt::Recomputed recompute = gpt::Recomputed::none;
    gpt::Precision precision = gpt::Precision::f32;
  };
  for (const Case& c : {Case{{1, 1, 1}, 3, 1}, Case{{2, 1, 1}, 0, 2}, Case{{1, 1, 2}, 3, 1}, Case{{2, 1, 2}, 1, 2},
                        Case{{3, 1, 2}, 2, 3}, Case{{1, 1, 4}, 0, 1, gpt::Recomputed::full},
                        Case{{2, 1, 2}, 3, 2, gpt::Recomputed::selective}, Case{{2, 2, 2}, 3, 1},
                        Case{{1, 3, 1}, 2, 2, gpt::Recomputed::full},
                        Case{{2, 3, 1}, 3, 2, gpt::Recomputed::none, gpt::Precision::bf16}}) {
    CAPTURE(shape_name(c.shape));
    CAPTURE(c.zero);
    CAPTURE(c.micro_batches);
    gpt::Training t = training(2);
    t.zero = c.zero;
    t.recompute = c.recompute;
    t.precision = c.precision;
    CHECK_NOTHROW(on_mesh(c.shape, [&](const gpt::Grid& mesh) {
      const auto trainer = gpt::make_trainer(mesh, odd_sizes, t);
      trainer->settle();
      const auto before = traffic_of(mesh);
      const auto together_before = group_traffic_of(mesh);
      for (std::uint64_t step = 1; step <= t.steps; ++step) {
        trainer->step(micro_batches_of(mesh, odd_sizes, step, sequences, c.micro_batches));
      }
      trainer->settle();
      Ledger ledger = collect_ledger(mesh, before, together_before);
      ledger.axes.insert(ledger.axes.end(), ledger.groups.begin(), ledger.groups.end());
      const auto volumes =
          gpt::step_volumes(odd_sizes, sequences, c.micro_batches, {c.shape.data, c.shape.context, c.shape.tensor}, t);
      std::uint64_t measured = 0, expected = 0;
      for (const auto& axis : ledger.axes) {
        std::uint64_t on_axis = 0;
        for (const gpt::Volume& v : volumes) on_axis += v.axis == axis.name ? v.bytes : 0;
        measured += axis.traffic.volume;
        expected += on_axis;
        require(axis.traffic.volume == t.steps * on_axis, "volume over " + axis.name + ": " +
                                                              std::to_string(axis.traffic.volume / t.steps) +
                                                              " instead of " + std::to_string(on_axis));
      }
      for (const gpt::Volume& v : volumes) expected -= v.bytes;
      require(expected == 0 && (measured == 0) == (c.shape.ranks() == 1), "every line belongs to an axis");
    }));
  }
}
