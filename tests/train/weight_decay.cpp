// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/weight_decay.hpp"

#include <doctest/doctest.h>

#include "../parallel/support.hpp"
#include "meshwise/fabric/dry/launch.hpp"

namespace {

using namespace test;

template <class E, class... Ps>
using Flat = Tensor<E, Dims<flat>, Layout<Grid, Ps...>>;
using Weight = Tensor<float, Dims<hidden, ffn>, Layout<Grid, Shard<hidden, dp>>>;

static_assert(decays_by_default<Weight> && !decays_by_default<Flat<float>>);
static_assert(options_for<Weight>({}).weight_decay == AdamWOptions{}.weight_decay);
static_assert(options_for<Flat<float>>({}).weight_decay == 0);

template <class T>
concept can_group = requires(T& w, const T& g, AdamWState<T>& s, std::span<const Range> ranges) {
  adamw_step(w, g, s, 1, AdamWOptions{}, 1.0, ranges);
};
static_assert(can_group<Flat<float, Shard<flat, dp>>>);
static_assert(!can_group<Weight> && !can_group<Flat<float, Shard<flat, Striped<dp>>>>);
static_assert(!can_group<Flat<float, Partial<dp>>>);

/// Some parameters in one vector, by one call, are these parameters by a call each.
template <template <class> class State, class E, class... Ps>
void as_alone(const Grid& mesh, const std::vector<std::size_t>& sizes) {
  using T = Flat<E, Ps...>;
  using Alone = Flat<E>;
  std::size_t total = 0;
  std::vector<Range> places, vectors;
  for (const std::size_t size : sizes) {
    places.push_back({total, size});
    if (places.size() % 2 == 0) vectors.push_back(places.back());
    total += size;
  }
  const AdamWOptions options{.learning_rate = 0.1, .weight_decay = 0.5};
  AdamWOptions still = options;
  still.weight_decay = 0;
  auto all = random<T>(mesh, {total}, 1);
  State<T> state(all);
  std::vector<double> expected;
  std::vector<Alone> alone;
  std::vector<State<Alone>> states;
  const auto part = [&](std::size_t k, std::uint64_t seed) {
    return generate<Alone>(mesh, {sizes[k]},
                           [&](const auto& i) { return static_cast<E>(normal(seed, places[k].begin + i.linear)); });
  };
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    alone.push_back(part(k, 1));
    states.emplace_back(alone[k]);
  }
  for (std::uint64_t step = 1; step <= 3; ++step) {
    adamw_step(all, random<T>(mesh, {total}, 1 + step), state, step, options, 0.5, vectors);
    expected.clear();
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      adamw_step(alone[k], part(k, 1 + step), states[k], step, k % 2 == 1 ? still : options, 0.5);
      expected.insert(expected.end(), alone[k].local().begin(), alone[k].local().end());
    }
    require(whole(all) == expected, "the bits of a step on each alone");
  }
}

}  // namespace

TEST_CASE("weight decay: a flat shard of a matrix decays, one of a vector does not, whatever the split") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{3, 1}, Ranks{2, 2}, Ranks{8, 1}}) {
    on_grid(ranks, [](const Grid& mesh) {
      for (const auto& sizes : std::vector<std::vector<std::size_t>>{
               {6, 3, 10, 2, 1}, {5}, {0, 4}, {3, 0, 3, 0}, {1, 1, 1}, {}, {0, 0}, {30, 7}}) {
        as_alone<AdamWState, float>(mesh, sizes);
        as_alone<AdamWState, double, Shard<flat, dp>>(mesh, sizes);
        as_alone<MasterState, bf16, Shard<flat, dp>>(mesh, sizes);
        as_alone<MasterState, fp16, Shard<flat, dp, tp>>(mesh, sizes);
      }
    });
  }
}

TEST_CASE("weight decay: ranges that overlap, are out of order or leave the vector are errors, nothing is updated") {
  on_grid({1, 1}, [](const Grid& mesh) {
    using T = Flat<float>;
    auto w = random<T>(mesh, {8}, 1);
    const auto before = whole(w);
    AdamWState<T> state(w);
    for (const auto& ranges : std::vector<std::vector<Range>>{
             {{4, 2}, {1, 2}}, {{1, 3}, {3, 2}}, {{6, 3}}, {{9, 0}}, {{2, ~std::size_t{0}}}}) {
      std::string text;
      try {
        adamw_step(w, w, state, 1, {}, 1.0, ranges);
      } catch (const Error& error) {
        text = error.what();
      }
      require(text.find("ascending ranges") != std::string::npos, text);
      require(whole(w) == before, "nothing is updated");
    }
    adamw_step(w, w, state, 1, {}, 1.0, std::vector<Range>{{0, 8}, {8, 0}});
  });
}

TEST_CASE("weight decay: a dry step touches no element, and still refuses ranges that are out of order") {
  launch_dry(3, [](Communicator& world) {
    const Grid mesh(world, {3, 1});
    using T = Flat<float, Shard<flat, dp>>;
    const std::size_t n = std::size_t{1} << 30;
    T w(mesh, {n});
    AdamWState<T> state(w);
    const std::size_t before = mesh.memory().total().current;
    adamw_step(w, T(mesh, {n}), state, 1, {}, 1.0, std::vector<Range>{{0, 8}, {n / 2, n / 4}});
    require(mesh.memory().total().current == before, "bytes");
    bool refused = false;
    try {
      adamw_step(w, w, state, 1, {}, 1.0, std::vector<Range>{{8, 8}, {0, 8}});
    } catch (const Error&) {
      refused = true;
    }
    require(refused, "ranges that are out of order");
  });
}
