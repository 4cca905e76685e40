// SPDX-License-Identifier: Apache-2.0
// The trainer in double against the plain reference: logits, loss, every gradient, the gradient norm and AdamW steps.
#include <doctest/doctest.h>

#include "../reference/plain_gpt.hpp"
#include "gpt_support.hpp"

namespace {

using namespace test;

constexpr MeshShape shapes[] = {{1, 1, 1}, {2, 1, 1}, {1, 1, 2}, {2, 1, 2}, {3, 1, 2},
                                {1, 1, 4}, {1, 2, 1}, {1, 3, 2}, {2, 2, 2}};
const gpt::Sizes tiny{.vocab = 11, .sequence = 5, .hidden = 6, .heads = 3, .head_dim = 2, .ffn = 7, .layers = 2};
constexpr std::size_t sequences = 3;
constexpr double bound = 1e-10;

plain::Config config_of(const gpt::Sizes& z) {
  return {z.vocab, z.sequence, z.hidden, z.heads, z.head_dim, z.ffn, z.layers};
}

plain::Tokens plain_tokens(const gpt::Tokens& x) {
  plain::Tokens all;
  for (const std::int32_t id : convert<Replicate<dp>, Replicate<cp>>(x).local())
    all.push_back(static_cast<std::size_t>(id));
  return all;
}

/// The parameters in the reference's own structure, whose names must be the trainer's, in its order.
plain::Parameters to_plain(const gpt::Sizes& z, gpt::Trainer& trainer) {
  plain::Parameters all = plain::make_parameters(config_of(z));
  const auto parameters = parameters_of(trainer);
  require(parameters.size() == all.size(), "as many parameters");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& name = parameters[i].name;
    require(name == all[i].name, name + " stands where the reference has " + all[i].name);
    require(gpt::is_weight(name) == all[i].decays, name + " decays in one of the two only");
    require(parameters[i].values.size() == all[i].values.size(), name + " has another size");
    all[i].values = parameters[i].values;
  }
  return all;
}

/// The reference's masks by the rule that dropout promises: uniform(seed of the site, global index) < p is dropped.
plain::Dropout masks(const gpt::Training& t, std::uint64_t step) {
  if (t.dropout == 0) return {};
  return [p = t.dropout, of_step = gpt::dropout_seed(t, step, 0)](std::size_t site, std::uint64_t index) {
    return uniform(stream_seed(of_step, site), index) < p ? 0.0 : 1 / (1 - p);
  };
}

/// Large enough that no term is lost, different everywhere, and not symmetric in the heads.
double rough(const std::string& name, std::size_t number, std::uint64_t index) {
  return (name.ends_with("gain") ? 1.0 : 0.0) + 0.5 * normal(500 + number, index);
}

/// Steps of both; the parameters are compared by their differences from those before the first step, in parts of the
/// largest one, or of `floor` for arrays that hardly change: the key biases, whose gradients are zero but for rounding.
void steps(const gpt::Grid& mesh, const gpt::Sizes& z, const gpt::Training& training, double floor) {
  const auto trainer = gpt::make_trainer(mesh, z, training);
  const plain::Parameters before = to_plain(z, *trainer);
  plain::Parameters parameters = before;
  plain::AdamW optimizer{training.adamw.beta1, training.adamw.beta2, training.adamw.epsilon,
                         training.adamw.weight_decay, training.clip};
  for (std::uint64_t step = 1; step <= training.steps; ++step) {
    const gpt::Batch batch = batch_of(mesh, z, step, sequences);
    const auto reference = plain::loss_and_gradients(config_of(z), parameters, plain_tokens(batch.inputs),
                                                     plain_tokens(batch.targets), masks(training, step));
    const double norm = optimizer.step(parameters, reference.gradients, gpt::learning_rate(training, step));
    const gpt::StepResult result = trainer->step(batch);
    require_near({result.loss}, {reference.loss}, bound, "loss", 0);
    require_near({result.gradient_norm}, {norm}, bound, "gradient norm", 0);
    require(training.clip <= 0 || norm > training.clip, "the clipping is meant to act");
    const plain::Parameters found = to_plain(z, *trainer);
    for (std::size_t i = 0; i < found.size(); ++i) {
      std::vector<double> moved = found[i].values, expected = parameters[i].values;
      for (std::size_t k = 0; k < moved.size(); ++k) {
        moved[k] -= before[i].values[k];
        expected[k] -= before[i].values[k];
      }
      require_near(moved, expected, bound, "parameter " + found[i].name, floor);
    }
  }
  const gpt::Batch batch = batch_of(mesh, z, 9, sequences);
  const auto reference =
      plain::loss_and_gradients(config_of(z), parameters, plain_tokens(batch.inputs), plain_tokens(batch.targets));
  require_near({trainer->evaluate(batch)}, {reference.loss}, bound, "evaluated loss", 0);
}

template <class F>
void on_all(const F& f) {
  for (const MeshShape& shape : shapes) {
    CAPTURE(shape_name(shape));
    CHECK_NOTHROW(on_mesh(shape, f));
  }
}

gpt::Sizes changed(void (*change)(gpt::Sizes&)) {
  gpt::Sizes z = tiny;
  change(z);
  return z;
}

gpt::Training in_double() {
  gpt::Training t;
  t.precision = gpt::Precision::f64;
  return t;
}

}  // namespace

TEST_CASE("gpt: loss and every gradient are the plain reference's, whatever the layout") {
  // An epsilon far above all gradients makes of AdamW a step along the gradient, here of length 1.
  gpt::Training t = in_double();
  t.initial = rough;
  t.adamw.epsilon = t.adamw.learning_rate = 1e6;
  t.adamw.weight_decay = 0;
  t.clip = 0;
  const auto check = [&](const gpt::Sizes& z) { on_all([&](const gpt::Grid& mesh) { steps(mesh, z, t, 1e-3); }); };
  SUBCASE("odd sizes") { check(tiny); }
  SUBCASE("dropout: the same masks in every layout") {
    t.dropout = 0.3;
    check(tiny);
  }
  SUBCASE("sequences of one token") {
    check(changed([](gpt::Sizes& s) { s.sequence = 1; }));
  }
  SUBCASE("no layers, stage 3") {
    t.dropout = 0.3;
    t.zero = 3;
    check(changed([](gpt::Sizes& s) { s.layers = 0; }));
  }
  SUBCASE("heads that do not fill the hidden width, fewer of everything than ranks, stage 3") {
    t.zero = 3;
    check(changed([](gpt::Sizes& s) {
      s = {.vocab = 2, .sequence = 3, .hidden = 5, .heads = 1, .head_dim = 4, .ffn = 2, .layers = 1};
    }));
  }
}

TEST_CASE("gpt: after AdamW steps every parameter is the plain reference's, whatever the layout") {
  gpt::Training training = in_double();
  training.adamw.learning_rate = 0.01;
  training.steps = 3;
  training.warmup = 1;
  training.clip = 0.5;
  SUBCASE("clipped, with decay") {
    on_all([&](const gpt::Grid& mesh) { steps(mesh, tiny, training, 1e-2); });
  }
  SUBCASE("with dropout, unclipped, stage 1") {
    training.dropout = 0.2;
    training.clip = 0;
    training.zero = 1;
    on_all([&](const gpt::Grid& mesh) { steps(mesh, tiny, training, 1e-2); });
  }
  SUBCASE("no layers, stage 2") {
    const auto z = changed([](gpt::Sizes& s) { s.layers = 0; });
    training.clip = 0.1;
    training.zero = 2;
    on_all([&](const gpt::Grid& mesh) { steps(mesh, z, training, 1e-2); });
  }
}

TEST_CASE("gpt: the logits of one position are those of the whole forward") {
  gpt::Training t = in_double();
  t.initial = rough;
  on_all([&](const gpt::Grid& mesh) {
    const auto trainer = gpt::make_trainer(mesh, tiny, t);
    const auto tokens = batch_of(mesh, tiny, 1, 1).inputs;
    const auto all = plain::forward(config_of(tiny), to_plain(tiny, *trainer), plain_tokens(tokens)).logits;
    for (std::size_t position = 0; position < tiny.sequence; ++position) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(position * tiny.vocab);
      require_near(trainer->next_logits(tokens, position),
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
