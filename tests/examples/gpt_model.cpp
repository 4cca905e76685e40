// SPDX-License-Identifier: Apache-2.0
// The trainer in double against the plain reference: loss, every gradient, the gradient norm and AdamW steps.
#include <doctest/doctest.h>

#include "../reference/plain_gpt.hpp"
#include "gpt_support.hpp"

namespace {

using namespace test;

using Trainer = gpt::Trainer<double>;
using Model = gpt::Model<double>;
using Tokens = Model::Tokens;

constexpr Ranks layouts[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 2}, {1, 4}};
const gpt::Sizes tiny{.vocab = 11, .sequence = 5, .hidden = 6, .heads = 3, .head_dim = 2, .ffn = 7, .layers = 2};
constexpr std::size_t sequences = 3;
constexpr double bound = 1e-10;

plain::Config config_of(const gpt::Sizes& z) {
  return {z.vocab, z.sequence, z.hidden, z.heads, z.head_dim, z.ffn, z.layers};
}

plain::Tokens plain_tokens(const Tokens& x) {
  plain::Tokens all;
  for (const double id : whole(x)) all.push_back(static_cast<std::size_t>(id));
  return all;
}

/// The gathered parameters in the reference's own structure, whose names must be the trainer's, in its order.
plain::Parameters to_plain(const gpt::Sizes& z, const Model::Parameters& parameters) {
  plain::Parameters all = plain::make_parameters(config_of(z));
  const auto values = gathered(parameters);
  require(values.size() == all.size(), "as many parameters");
  std::size_t i = 0;
  gpt::each(
      [&]<class T>(const std::string& name, const T& x) {
        require(name == all[i].name, name + " stands where the reference has " + all[i].name);
        require(gpt::is_weight(name) == all[i].decays, name + " decays in one of the two only");
        require(std::equal(x.extents().begin(), x.extents().end(), all[i].dims.begin(), all[i].dims.end()), name);
        all[i].values = values[i];
        ++i;
      },
      parameters);
  return all;
}

/// The reference's masks by the rule that dropout promises: uniform(seed of the site, global index) < p is dropped.
plain::Dropout masks(const Model::Drop& drop) {
  if (drop.p == 0) return {};
  return [drop](std::size_t site, std::uint64_t index) {
    const std::uint64_t seed = stream_seed(drop.seed, site);
    return uniform(seed, index) < drop.p ? 0.0 : 1 / (1 - drop.p);
  };
}

/// Compares each array, with a floor for those that are zero but for rounding (the key biases' gradients).
void require_same(const std::vector<std::vector<double>>& found, const plain::Parameters& expected, double floor,
                  const std::string& what) {
  require(found.size() == expected.size(), what);
  for (std::size_t i = 0; i < found.size(); ++i) {
    require_near(found[i], expected[i].values, bound, what + " " + expected[i].name, floor);
  }
}

void forward_and_backward(const Grid& mesh, const gpt::Sizes& z, double p) {
  auto parameters = Model::make(mesh, z, 1);
  std::uint64_t stream = 500;
  gpt::each(
      [&]<class T>(const std::string&, T& x) {
        // Large enough that no term is lost, different everywhere, and not symmetric in the heads.
        x = x + random<T>(mesh, x.extents(), stream++, 0.5);
      },
      parameters);
  const auto tokens = tokens_of<Tokens>(mesh, sequences, z, 1, 0),
             targets = tokens_of<Tokens>(mesh, sequences, z, 1, 1);
  const Model::Drop drop{p, 99};
  const auto reference = plain::loss_and_gradients(config_of(z), to_plain(z, parameters), plain_tokens(tokens),
                                                   plain_tokens(targets), masks(drop));

  auto [logits, saved] = Model::forward(parameters, tokens, drop);
  require_near(whole(logits),
               plain::forward(config_of(z), to_plain(z, parameters), plain_tokens(tokens), masks(drop)).logits, bound,
               "logits");
  auto loss = Model::loss(logits, targets, static_cast<double>(targets.size()));
  require_near(whole(loss.loss), {reference.loss}, bound, "loss", 0);
  const auto gradients = Model::backward(parameters, std::move(saved), tokens, targets, std::move(loss), drop);
  require_same(gathered(gradients), reference.gradients, 1e-3 * plain::gradient_norm(reference.gradients),
               "gradient of");
}

void steps(const Grid& mesh, const gpt::Sizes& z, const gpt::Training& training) {
  Trainer trainer(mesh, z, training);
  plain::Parameters parameters = to_plain(z, trainer.parameters());
  plain::AdamW optimizer{training.adamw.beta1, training.adamw.beta2, training.adamw.epsilon,
                         training.adamw.weight_decay, training.clip};
  for (std::uint64_t step = 1; step <= training.steps; ++step) {
    const auto tokens = tokens_of<Tokens>(mesh, sequences, z, step, 0);
    const auto targets = tokens_of<Tokens>(mesh, sequences, z, step, 1);
    const Model::Drop drop{training.dropout, stream_seed(training.seed, 1'000'000 + step)};
    const auto reference =
        plain::loss_and_gradients(config_of(z), parameters, plain_tokens(tokens), plain_tokens(targets), masks(drop));
    const double norm = optimizer.step(parameters, reference.gradients, gpt::learning_rate(training, step));
    const gpt::StepResult result = trainer.step(tokens, targets);
    require_near({result.loss}, {reference.loss}, bound, "loss", 0);
    require_near({result.gradient_norm}, {norm}, bound, "gradient norm", 0);
    require(training.clip <= 0 || norm > training.clip, "the clipping is meant to act");
    require_same(gathered(trainer.parameters()), parameters, 1e-2, "parameter");
  }
  const auto tokens = tokens_of<Tokens>(mesh, sequences, z, 9, 0),
             targets = tokens_of<Tokens>(mesh, sequences, z, 9, 1);
  const auto reference =
      plain::loss_and_gradients(config_of(z), parameters, plain_tokens(tokens), plain_tokens(targets));
  require_near({trainer.evaluate(tokens, targets)}, {reference.loss}, bound, "evaluated loss", 0);
}

template <class F>
void on_all(const F& f) {
  for (const Ranks ranks : layouts) {
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CHECK_NOTHROW(on_grid(ranks, f));
  }
}

gpt::Sizes changed(void (*change)(gpt::Sizes&)) {
  gpt::Sizes z = tiny;
  change(z);
  return z;
}

}  // namespace

TEST_CASE("gpt: logits, loss and every gradient are the plain reference's, whatever the layout") {
  SUBCASE("odd sizes") {
    on_all([](const Grid& mesh) { forward_and_backward(mesh, tiny, 0); });
  }
  SUBCASE("dropout: the same masks in every layout") {
    on_all([](const Grid& mesh) { forward_and_backward(mesh, tiny, 0.3); });
  }
  SUBCASE("sequences of one token") {
    const auto z = changed([](gpt::Sizes& s) { s.sequence = 1; });
    on_all([&](const Grid& mesh) { forward_and_backward(mesh, z, 0); });
  }
  SUBCASE("no layers") {
    const auto z = changed([](gpt::Sizes& s) { s.layers = 0; });
    on_all([&](const Grid& mesh) { forward_and_backward(mesh, z, 0.3); });
  }
  SUBCASE("heads that do not fill the hidden width, fewer of everything than ranks") {
    const auto z = changed([](gpt::Sizes& s) {
      s = {.vocab = 2, .sequence = 3, .hidden = 5, .heads = 1, .head_dim = 4, .ffn = 2, .layers = 1};
    });
    on_all([&](const Grid& mesh) { forward_and_backward(mesh, z, 0); });
  }
}

TEST_CASE("gpt: after AdamW steps every parameter is the plain reference's, whatever the layout") {
  gpt::Training training;
  training.adamw.learning_rate = 0.01;
  training.steps = 3;
  training.warmup = 1;
  training.clip = 0.5;
  SUBCASE("clipped, with decay") {
    on_all([&](const Grid& mesh) { steps(mesh, tiny, training); });
  }
  SUBCASE("with dropout, unclipped, in tiny buckets") {
    training.dropout = 0.2;
    training.clip = 0;
    training.bucket_bytes = 100;
    on_all([&](const Grid& mesh) { steps(mesh, tiny, training); });
  }
  SUBCASE("no layers") {
    const auto z = changed([](gpt::Sizes& s) { s.layers = 0; });
    training.clip = 0.1;
    on_all([&](const Grid& mesh) { steps(mesh, z, training); });
  }
}

TEST_CASE("gpt: the logits of one position are those of the whole forward") {
  on_grid({1, 2}, [](const Grid& mesh) {
    const Trainer trainer(mesh, tiny, {});
    const auto tokens = tokens_of<Tokens>(mesh, 1, tiny, 1, 0);
    const auto all = plain::forward(config_of(tiny), to_plain(tiny, trainer.parameters()), plain_tokens(tokens)).logits;
    for (const std::size_t position : {std::size_t{0}, std::size_t{4}}) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(position * tiny.vocab);
      require_near(trainer.next_logits(tokens, position),
                   std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(tiny.vocab)), bound, "logits", 1e-3);
    }
  });
}

TEST_CASE("gpt: the learning rate warms up in a line and falls to a tenth along half a cosine") {
  gpt::Training t;
  t.adamw.learning_rate = 2;
  t.warmup = 4;
  t.steps = 104;
  for (std::uint64_t step = 1; step <= 4; ++step) CHECK(gpt::learning_rate(t, step) == 0.5 * static_cast<double>(step));
  CHECK(gpt::learning_rate(t, 54) == doctest::Approx(1.1));
  CHECK(gpt::learning_rate(t, 104) == doctest::Approx(0.2));
  CHECK(gpt::learning_rate(t, 1000) == doctest::Approx(0.2));
  for (std::uint64_t step = 4; step < 104; ++step) CHECK(gpt::learning_rate(t, step + 1) < gpt::learning_rate(t, step));
  t.warmup = 0;
  CHECK(gpt::learning_rate(t, 1) < 2);
  CHECK(gpt::learning_rate(t, 1) > 1.99);
}
