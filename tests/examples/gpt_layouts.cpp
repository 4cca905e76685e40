// SPDX-License-Identifier: Apache-2.0
// The trainer in float: a run on any mesh is the run on one rank, and replicas stay equal to the bit.
#include <doctest/doctest.h>

#include "gpt_support.hpp"

namespace {

using namespace test;

using Trainer = gpt::Trainer<float>;

// Nothing divides by two or by four.
const gpt::Sizes sizes{.vocab = 29, .sequence = 13, .hidden = 18, .heads = 5, .head_dim = 3, .ffn = 37, .layers = 2};
constexpr std::size_t sequences = 7;

gpt::Training training(std::uint64_t steps) {
  gpt::Training t;
  t.adamw.learning_rate = 3e-3;
  t.steps = steps;
  t.warmup = 3;
  t.dropout = 0.1;
  return t;
}

/// One run: what every step measured, the parameters whole after every step, and every rank's own pieces at the end.
struct Run {
  std::vector<gpt::StepResult> results;
  std::vector<std::vector<double>> parameters;
  std::vector<std::vector<std::vector<float>>> pieces;  // by rank, then by parameter
  std::vector<bool> split;                              // by parameter: whether tp shards it
};

Run run(Ranks ranks, const gpt::Training& t) {
  Run r;
  r.pieces.resize(static_cast<std::size_t>(ranks.data * ranks.tensor));
  on_grid(ranks, [&](const Grid& mesh) {
    Trainer trainer(mesh, sizes, t);
    for (std::uint64_t step = 1; step <= t.steps; ++step) {
      const auto result = trainer.step(tokens_of<Trainer::Tokens>(mesh, sequences, sizes, step, 0),
                                       tokens_of<Trainer::Tokens>(mesh, sequences, sizes, step, 1));
      std::vector<double> all;
      for (const auto& values : gathered(trainer.parameters())) all.insert(all.end(), values.begin(), values.end());
      if (!mesh.is_first()) continue;
      r.results.push_back(result);
      r.parameters.push_back(std::move(all));
    }
    auto& own = r.pieces[static_cast<std::size_t>(mesh.world().rank())];
    gpt::each(
        [&]<class T>(const std::string&, const T& p) {
          own.push_back(piece(p));
          if (mesh.is_first()) r.split.push_back(!std::is_same_v<placement_of<typename T::layout, tp>, Replicate<tp>>);
        },
        trainer.parameters());
  });
  return r;
}

double relative(double found, double expected) { return std::abs(found - expected) / std::abs(expected); }

double relative_l2(const std::vector<double>& found, const std::vector<double>& expected) {
  double square = 0;
  for (std::size_t i = 0; i < found.size(); ++i) square += (found[i] - expected[i]) * (found[i] - expected[i]);
  return std::sqrt(square / dot(expected, expected));
}

}  // namespace

TEST_CASE("gpt: a run on any mesh is the run on one rank") {
  const gpt::Training t = training(full() ? 50 : 6);
  const Run one = run({1, 1}, t);
  REQUIRE(one.results.size() == t.steps);
  for (const Ranks ranks :
       {Ranks{1, 2}, Ranks{1, 4}, Ranks{2, 1}, Ranks{2, 2}, Ranks{2, 4}, Ranks{4, 1}, Ranks{4, 2}}) {
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    const Run many = run(ranks, t);
    REQUIRE(many.results.size() == t.steps);
    double loss = 0, norm = 0, parameters = 0;
    for (std::size_t i = 0; i < t.steps; ++i) {
      loss = std::max(loss, relative(many.results[i].loss, one.results[i].loss));
      norm = std::max(norm, relative(many.results[i].gradient_norm, one.results[i].gradient_norm));
      parameters = std::max(parameters, relative_l2(many.parameters[i], one.parameters[i]));
    }
    INFO("relative differences: loss " << loss << ", norm " << norm << ", parameters " << parameters);
    CHECK(loss < 1e-4);
    CHECK(norm < 1e-4);
    CHECK(parameters < 1e-3);

    // Replicas: along dp all parameters, along tp those that it does not shard.
    for (int rank = 0; rank < ranks.data * ranks.tensor; ++rank) {
      const auto& own = many.pieces[static_cast<std::size_t>(rank)];
      const auto& same_tp = many.pieces[static_cast<std::size_t>(rank % ranks.tensor)];
      REQUIRE(own.size() == many.split.size());
      CHECK(own == same_tp);
      for (std::size_t i = 0; i < own.size(); ++i) CHECK((many.split[i] || own[i] == many.pieces[0][i]));
    }
  }
}

TEST_CASE("gpt: it learns: the loss falls") {
  gpt::Training t = training(40);
  t.dropout = 0;
  const Run r = run({2, 2}, t);
  CHECK(r.results.front().loss == doctest::Approx(std::log(29.0)).epsilon(0.02));
  CHECK(r.results.back().loss < 0.9 * r.results.front().loss);
}

TEST_CASE("gpt: the size of the gradient buckets changes no bit") {
  gpt::Training t = training(4);
  const Run usual = run({2, 2}, t);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 40}) {
    CAPTURE(bytes);
    t.bucket_bytes = bytes;
    const Run other = run({2, 2}, t);
    CHECK(other.pieces == usual.pieces);
    for (std::size_t i = 0; i < t.steps; ++i) {
      CHECK(other.results[i].loss == usual.results[i].loss);
      CHECK(other.results[i].gradient_norm == usual.results[i].gradient_norm);
    }
  }
}

TEST_CASE("gpt: what a step communicates is the sum of its parts, exactly") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{1, 2}, Ranks{2, 2}, Ranks{3, 2}, Ranks{1, 4}}) {
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    const auto check = [](const Grid& mesh) {
      Trainer trainer(mesh, sizes, training(1));
      const auto tokens = tokens_of<Trainer::Tokens>(mesh, sequences, sizes, 1, 0);
      const Traffic before = mesh.along<dp>().traffic(), before_both = mesh.along<dp, tp>().traffic();
      const Traffic over_tp = traffic_of<tp>(mesh, [&] { trainer.step(tokens, tokens); });
      const Traffic over_dp = mesh.along<dp>().traffic() - before;
      const Traffic over_both = mesh.along<dp, tp>().traffic() - before_both;

      // Elements of the parameters that tp replicates (norms and row biases) and of those that it splits.
      std::uint64_t replicated = 0, split = 0;
      gpt::each(
          [&]<class T>(const std::string&, const T& p) {
            (std::is_same_v<placement_of<typename T::layout, tp>, Replicate<tp>> ? replicated : split) += p.size();
          },
          trainer.parameters());
      require(replicated == (6 * sizes.layers + 2) * sizes.hidden, "norms and row biases");

      const auto d = static_cast<std::uint64_t>(mesh.size<dp>()), t = static_cast<std::uint64_t>(mesh.size<tp>());
      const std::uint64_t all_tokens = sequences * sizes.sequence, real = sizeof(float);
      // Activations: 8 conversions per block; those of the embedding and of the final norm, forward and backward.
      // Loss: 3 numbers per token. Gradients that owe a sum over tp. The norm: one exact sum over all ranks, which are a
      // line where the other axis has one.
      const std::uint64_t activations = (8 * sizes.layers + 4) * all_tokens * sizes.hidden * real;
      const std::uint64_t norm = GlobalNorm<gpt::Grid>::bytes, norm_over_tp = d == 1 ? norm : 0,
                          norm_over_dp = t == 1 ? norm : 0;
      const std::uint64_t numbers = 2 * (3 * all_tokens * real + d * replicated * real + norm_over_tp);
      require(sum_over_ranks(mesh, over_tp.volume) == (t - 1) * (activations + numbers), "volume over tp");
      require(over_tp.calls == (t == 1 ? 0 : 8 * sizes.layers + 4 + 3 + 1 + (d == 1 ? 1 : 0)), "calls over tp");
      // The loss, the gradients in one bucket, and the norm.
      const std::uint64_t gradients = (split + t * replicated) * real;
      require(sum_over_ranks(mesh, over_dp.volume) == 2 * (d - 1) * (t * real + gradients + norm_over_dp),
              "volume over dp");
      require(over_dp.calls == (d == 1 ? 0 : 2 + (t == 1 ? 1 : 0)), "calls over dp");
      if (d > 1 && t > 1) {
        require(sum_over_ranks(mesh, over_both.volume) == 2 * (d * t - 1) * norm, "volume over all ranks");
        require(over_both.calls == 1, "calls over all ranks");
      }
    };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}
