// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/fully_shard.hpp"

#include <doctest/doctest.h>

#include "zero_support.hpp"

namespace {

using namespace test;

template <class T>
using Split = decltype(fully_shard<dp>(std::declval<const T&>()));

template <class T>
using AdamWStateOf = AdamWState<Split<T>>;

/// The trainer of zero_support.hpp, with every parameter split by itself and all of a layer on their way at once.
template <class E>
Outcome train_by_parameter(const Grid& mesh, const ModelShape& shape) {
  using L = Layer<OverDp, E>;
  std::vector<typename L::template All<Split>> parameters;
  std::vector<typename L::template All<AdamWStateOf>> moments;
  for (std::size_t l = 0; l < shape.layers; ++l) {
    const CategoryScope scope(mesh.memory(), Category::parameters);
    const auto w = L::make(mesh, shape.wide, shape.inner, l);
    parameters.push_back({fully_shard<dp>(w.gain), fully_shard<dp>(w.bias), fully_shard<dp>(w.w1),
                          fully_shard<dp>(w.b1), fully_shard<dp>(w.w2)});
    const auto& p = parameters.back();
    moments.push_back({AdamWState(p.gain), AdamWState(p.bias), AdamWState(p.w1), AdamWState(p.b1), AdamWState(p.w2)});
  }
  const auto gathered = [&](std::size_t l) {
    const auto& p = parameters[l];
    auto gain = start_unshard<dp>(p.gain), bias = start_unshard<dp>(p.bias);
    auto w1 = start_unshard<dp>(p.w1);
    auto b1 = start_unshard<dp>(p.b1);
    auto w2 = start_unshard<dp>(p.w2);
    return typename L::Parameters{gain.wait(), bias.wait(), w1.wait(), b1.wait(), w2.wait()};
  };
  Outcome outcome;
  for (int step = 0; step < shape.steps; ++step) {
    auto [x, target] = samples_of<OverDp, E>(mesh, shape, step, 0);
    std::vector<std::optional<typename L::Saved>> saved(shape.layers);
    for (std::size_t l = 0; l < shape.layers; ++l) x = L::forward(gathered(l), x, saved[l]);
    auto [dx, loss] = loss_of(x, target, static_cast<double>(shape.samples));
    GlobalNorm<Grid> norm(mesh);
    for (std::size_t l = shape.layers; l-- > 0;) {
      auto [next, owed] = L::backward(gathered(l), *saved[l], dx);
      dx = next;
      L::give3(
          [&](auto& w, auto& state, const auto& gradient) {
            const auto reduced = start_shard_gradient<dp>(gradient).wait();
            static_assert(std::is_same_v<std::remove_const_t<decltype(reduced)>, std::decay_t<decltype(w)>>);
            norm.add(reduced);
            adamw_step(w, reduced, state, static_cast<std::uint64_t>(step + 1),
                       options_for<std::decay_t<decltype(w)>>(options_of_test()));
          },
          parameters[l], moments[l], owed);
    }
    outcome.norms.push_back(norm.norm());
    outcome.losses.push_back(loss);
  }
  for (std::size_t l = 0; l < shape.layers; ++l) {
    auto w = gathered(l);
    L::each([&](const auto& p) { outcome.parameters.push_back(whole(p)); }, w);
  }
  return outcome;
}

}  // namespace

TEST_CASE("fully_shard: the parameters of a training without it, to the bit") {
  const ModelShape shape;
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{4, 1}, Ranks{5, 1}, Ranks{2, 2}, Ranks{3, 2}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      const Outcome plain = train_plainly(mesh, shape, 100), split = train_by_parameter<float>(mesh, shape);
      require(split.parameters == plain.parameters && split.losses == plain.losses && split.norms == plain.norms,
              "the same bits");
    });
  }
}

TEST_CASE("fully_shard: types, bytes and memory, for tensors that are smaller than the group, empty, or numbers") {
  using Table = Tensor<float, Dims<vocab, hidden>, Layout<Grid, Shard<vocab, tp>>>;
  using Number = Tensor<float, Dims<>, Layout<Grid>>;
  using Row = Tensor<float, Dims<hidden>, Layout<Grid>>;
  using SplitTable = Tensor<float, Dims<vocab, hidden>, Layout<Grid, Shard<vocab, tp, dp>>>;
  static_assert(std::is_same_v<Split<Table>, SplitTable>, "dp cuts what tp has cut");
  static_assert(std::is_same_v<Split<Number>, Number>);
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{5, 1}, Ranks{2, 3}, Ranks{3, 2}}) {
    on_grid(ranks, [](const Grid& mesh) {
      const auto others = static_cast<std::uint64_t>(mesh.size<dp>() - 1),
                 lines = static_cast<std::uint64_t>(mesh.size<tp>());
      for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{40}}) {
        const std::uint64_t bytes = rows * 3 * sizeof(float);
        const auto table = random<Table>(mesh, {rows, 3}, 1);
        std::uint64_t sent = traffic_of<dp>(mesh, [&] {
                               const auto part = fully_shard<dp>(table);
                               require(part.storage().bytes() == part.local().size_bytes(), "the own part alone");
                               require(piece(start_unshard<dp>(part).wait()) == piece(table), "there and back");
                             }).volume;
        require(sum_over_ranks(mesh, sent) == others * bytes, "an all_gather");
        const auto owed = view_as<Partial<dp>>(table);
        sent = traffic_of<dp>(mesh, [&] {
                 require(piece(start_shard_gradient<dp>(owed).wait()) == piece(fully_shard<dp>(table)), "a sum");
               }).volume;
        require(sum_over_ranks(mesh, sent) == others * bytes, "a reduce_scatter");
        const auto row = random<Row>(mesh, {rows}, 2);
        require(piece(start_unshard<dp>(fully_shard<dp>(row)).wait()) == piece(row), "a row");
      }
      const auto number = random<Number>(mesh, {}, 3);
      require(piece(start_unshard<dp>(fully_shard<dp>(number)).wait()) == piece(number), "a number");
      const std::uint64_t sent =
          traffic_of<dp>(mesh, [&] {
            require(piece(start_shard_gradient<dp>(view_as<Partial<dp>>(number)).wait()) == piece(number),
                    "its gradient");
          }).volume;
      require(sum_over_ranks(mesh, sent) == 2 * others * lines * sizeof(float), "an all_reduce");
    });
  }
}
