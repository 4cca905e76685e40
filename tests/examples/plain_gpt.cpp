// SPDX-License-Identifier: Apache-2.0
#include "../reference/plain_gpt.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace {

const plain::Config tiny{.vocab = 11, .positions = 5, .hidden = 6, .heads = 3, .head_dim = 2, .ffn = 7, .layers = 2};

// A private generator: the reference must not lean on the library, and neither must its tests.
double noise(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15u + index * 0xD1342543DE82EF95u + 1;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

plain::Parameters random_parameters(const plain::Config& c, std::uint64_t seed) {
  plain::Parameters all = plain::make_parameters(c);
  for (std::size_t a = 0; a < all.size(); ++a) {
    const bool gain = all[a].name.ends_with("gain");
    for (std::size_t i = 0; i < all[a].values.size(); ++i) {
      all[a].values[i] = (gain ? 1.0 : 0.0) + 1.2 * (noise(seed + a, i) - 0.5);
    }
  }
  return all;
}

plain::Tokens random_tokens(const plain::Config& c, std::size_t sequences, std::uint64_t seed) {
  plain::Tokens tokens(sequences * c.positions);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::size_t>(noise(seed, i) * static_cast<double>(c.vocab));
  }
  return tokens;
}

double mask(double p, std::size_t site, std::uint64_t index) {
  return noise(977 + site, index) >= p ? 1 / (1 - p) : 0.0;
}

double loss_of(const plain::Config& c, const plain::Parameters& parameters, const plain::Tokens& tokens,
               const plain::Tokens& targets) {
  return plain::loss_and_gradients(c, parameters, tokens, targets).loss;
}

double loss_by_logits(const plain::Config& c, const plain::Parameters& parameters, const plain::Tokens& tokens,
                      const plain::Tokens& targets, const plain::Dropout& dropout) {
  const plain::Forward f = plain::forward(c, parameters, tokens, dropout);
  double loss = 0;
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    double total = 0;
    for (std::size_t v = 0; v < c.vocab; ++v) total += std::exp(f.logits[n * c.vocab + v]);
    loss -= std::log(std::exp(f.logits[n * c.vocab + targets[n]]) / total);
  }
  return loss / static_cast<double>(tokens.size());
}

// Every gradient against a central difference of order four.
void check_gradients(const plain::Config& c, std::size_t sequences, const plain::Dropout& dropout) {
  plain::Parameters parameters = random_parameters(c, 1);
  const plain::Tokens tokens = random_tokens(c, sequences, 51), targets = random_tokens(c, sequences, 52);
  const plain::LossAndGradients result = plain::loss_and_gradients(c, parameters, tokens, targets, dropout);
  CHECK(result.loss == doctest::Approx(loss_by_logits(c, parameters, tokens, targets, dropout)).epsilon(1e-13));
  CHECK(plain::gradient_norm(result.gradients) > 0.01);
  for (std::size_t a = 0; a < parameters.size(); ++a) {
    double worst = 0;
    for (std::size_t i = 0; i < parameters[a].values.size(); ++i) {
      double& w = parameters[a].values[i];
      const double old = w, h = 1e-3;
      const auto loss = [&](double value) {
        w = value;
        return loss_by_logits(c, parameters, tokens, targets, dropout);
      };
      const double numeric = (8 * (loss(old + h) - loss(old - h)) - (loss(old + 2 * h) - loss(old - 2 * h))) / (12 * h);
      w = old;
      const double exact = result.gradients[a].values[i];
      worst = std::max(worst, std::abs(numeric - exact) / (std::abs(exact) + 1e-4));
    }
    INFO(parameters[a].name);
    CHECK(worst < 1e-6);
  }
}

}  // namespace

TEST_CASE("plain gpt: every gradient is the derivative of the loss") {
  SUBCASE("odd sizes") { check_gradients(tiny, 3, {}); }
  SUBCASE("with dropout") {
    check_gradients(tiny, 3, [](std::size_t site, std::uint64_t index) { return mask(0.3, site, index); });
  }
  SUBCASE("no layers") {
    plain::Config c = tiny;
    c.layers = 0;
    check_gradients(c, 2, {});
  }
  SUBCASE("sequences of one token") {
    plain::Config c = tiny;
    c.positions = 1;
    check_gradients(c, 3, {});
  }
  SUBCASE("heads that do not fill the hidden width") {
    plain::Config c = tiny;
    c.heads = 2;
    c.head_dim = 5;
    check_gradients(c, 1, {});
  }
}

TEST_CASE("plain gpt: the parts are what their names say") {
  const plain::Values x{1, 2, 4, 9, -3, 0, 0.5, 2};
  SUBCASE("norm: mean 0 and variance 1 per token, then gain and bias") {
    const plain::Norm r = plain::norm(x, {2, 2, 2, 2}, {1, 1, 1, 1});
    for (std::size_t n = 0; n < 2; ++n) {
      double mean = 0, square = 0;
      for (std::size_t h = 0; h < 4; ++h) {
        const double unit = (r.y[n * 4 + h] - 1) / 2;
        mean += unit / 4;
        square += unit * unit / 4;
      }
      CHECK(std::abs(mean) < 1e-14);
      CHECK(square == doctest::Approx(1).epsilon(1e-5));
      CHECK(square < 1);  // the 1e-5 under the root
    }
  }
  SUBCASE("gelu: near x times the normal distribution, and x - gelu(x) is even") {
    plain::Values negative = x;
    for (double& value : negative) value = -value;
    const plain::Values y = plain::gelu(x), z = plain::gelu(negative);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(std::abs(y[i] - 0.5 * x[i] * std::erfc(-x[i] / std::sqrt(2.0))) < 5e-4);
      CHECK(y[i] + z[i] == doctest::Approx(x[i] * std::tanh(plain::gelu_inner(x[i]))));
    }
  }
  SUBCASE("attention: equal keys give the mean of the values so far") {
    const plain::Config c{.positions = 4, .heads = 1, .head_dim = 2};
    const plain::Attention r = plain::attention(c, x, plain::Values(8, 0.7), x);
    for (std::size_t s = 0; s < 4; ++s) {
      for (std::size_t d = 0; d < 2; ++d) {
        double mean = 0;
        for (std::size_t t = 0; t <= s; ++t) mean += x[t * 2 + d] / static_cast<double>(s + 1);
        CHECK(r.y[s * 2 + d] == doctest::Approx(mean));
      }
    }
  }
  SUBCASE("attention: two keys, weights of a logistic function of the scaled score difference") {
    const plain::Config c{.positions = 2, .heads = 1, .head_dim = 4};
    const plain::Attention r = plain::attention(c, x, x, plain::Values{0, 0, 0, 0, 1, 1, 1, 1});
    double difference = 0;
    for (std::size_t d = 0; d < 4; ++d) difference += x[4 + d] * (x[4 + d] - x[d]) / 2;
    CHECK(r.y[4] == doctest::Approx(1 / (1 + std::exp(-difference))));
    CHECK(r.weight[1] == 0);
  }
  SUBCASE("linear: the identity weight adds the bias") {
    const plain::Values y = plain::linear(x, {1, 0, 0, 1}, {10, 20});
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == x[i] + (i % 2 == 0 ? 10 : 20));
  }
}

TEST_CASE("plain gpt: the model's laws") {
  const plain::Parameters parameters = random_parameters(tiny, 7);
  const plain::Tokens tokens = random_tokens(tiny, 4, 61), targets = random_tokens(tiny, 4, 62);
  const std::size_t S = tiny.positions, V = tiny.vocab;

  SUBCASE("without parameters every token is equally likely") {
    CHECK(loss_of(tiny, plain::make_parameters(tiny), tokens, targets) == doctest::Approx(std::log(11.0)));
  }
  SUBCASE("a token changes its own and later logits of its own sequence, and nothing else") {
    plain::Tokens changed = tokens;
    changed[S + 2] = (changed[S + 2] + 1) % V;
    const plain::Values before = plain::forward(tiny, parameters, tokens).logits;
    const plain::Values after = plain::forward(tiny, parameters, changed).logits;
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      const bool equal = std::equal(before.begin() + static_cast<std::ptrdiff_t>(n * V),
                                    before.begin() + static_cast<std::ptrdiff_t>((n + 1) * V),
                                    after.begin() + static_cast<std::ptrdiff_t>(n * V));
      CHECK(equal == !(n >= S + 2 && n < 2 * S));
    }
  }
  SUBCASE("the loss and gradients of a batch are the means of those of its halves") {
    const auto half = [&](const plain::Tokens& all, std::size_t k) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(k * 2 * S);
      return plain::Tokens(begin, begin + static_cast<std::ptrdiff_t>(2 * S));
    };
    const auto whole = plain::loss_and_gradients(tiny, parameters, tokens, targets);
    const auto first = plain::loss_and_gradients(tiny, parameters, half(tokens, 0), half(targets, 0));
    const auto second = plain::loss_and_gradients(tiny, parameters, half(tokens, 1), half(targets, 1));
    CHECK(whole.loss == doctest::Approx((first.loss + second.loss) / 2).epsilon(1e-13));
    for (std::size_t a = 0; a < parameters.size(); ++a) {
      for (std::size_t i = 0; i < parameters[a].values.size(); ++i) {
        const double mean = (first.gradients[a].values[i] + second.gradients[a].values[i]) / 2;
        REQUIRE(std::abs(whole.gradients[a].values[i] - mean) < 1e-13);
      }
    }
  }
  SUBCASE("a soft-max does not see a constant: the key biases have no gradient") {
    const auto result = plain::loss_and_gradients(tiny, parameters, tokens, targets);
    for (const double g : plain::named(result.gradients, "layer1.key.bias")) CHECK(std::abs(g) < 1e-14);
  }
  SUBCASE("dropout: a mask of ones changes nothing, one of zeros leaves the final bias") {
    const auto one = [](std::size_t, std::uint64_t) { return 1.0; };
    const auto zero = [](std::size_t, std::uint64_t) { return 0.0; };
    CHECK(plain::forward(tiny, parameters, tokens, one).logits == plain::forward(tiny, parameters, tokens).logits);
    const plain::Values logits = plain::forward(tiny, parameters, tokens, zero).logits;
    const plain::Values& bias = plain::named(parameters, "final.bias");
    const plain::Values& embedding = plain::named(parameters, "embedding");
    for (std::size_t v = 0; v < V; ++v) {
      double sum = 0;
      for (std::size_t h = 0; h < tiny.hidden; ++h) sum += bias[h] * embedding[v * tiny.hidden + h];
      CHECK(logits[v] == doctest::Approx(sum));
    }
  }
  SUBCASE("branches add to a residual stream that nothing else changes") {
    const auto only_embeddings = [](std::size_t site, std::uint64_t) { return site == 0 ? 1.0 : 0.0; };
    plain::Config bare = tiny;
    bare.layers = 0;
    CHECK(plain::forward(tiny, parameters, tokens, only_embeddings).logits ==
          plain::forward(bare, parameters, tokens).logits);
  }
  SUBCASE("everything sees the stream through a norm: a constant added to it changes nothing") {
    plain::Parameters shifted = parameters;
    for (double& value : plain::named(shifted, "position")) value += 3;
    const plain::Values before = plain::forward(tiny, parameters, tokens).logits;
    const plain::Values after = plain::forward(tiny, shifted, tokens).logits;
    for (std::size_t i = 0; i < before.size(); ++i) REQUIRE(std::abs(before[i] - after[i]) < 1e-11);
  }
  SUBCASE("a block is attention, then MLP, each on the norm of the stream so far") {
    plain::Config one = tiny;
    one.layers = 1;
    const auto p = [&](const char* name) { return plain::named(parameters, std::string("layer0.") + name); };
    const auto attend = [](std::size_t site, std::uint64_t) { return site == 2 ? 0.0 : 1.0; };
    const plain::Forward whole = plain::forward(one, parameters, tokens);
    const plain::Forward half = plain::forward(one, parameters, tokens, attend);
    CHECK(half.layers[0].norm2.y == whole.layers[0].norm2.y);
    // The stream before and after the MLP differs by the MLP of the second norm.
    const plain::Values mlp =
        plain::linear(plain::gelu(plain::linear(whole.layers[0].norm2.y, p("up.weight"), p("up.bias"))),
                      p("down.weight"), p("down.bias"));
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      // A norm hides mean and scale, so compare the stream without its mean.
      double mean = 0;
      for (std::size_t h = 0; h < tiny.hidden; ++h) mean += mlp[n * tiny.hidden + h] / static_cast<double>(tiny.hidden);
      for (std::size_t h = 0; h < tiny.hidden; ++h) {
        const std::size_t i = n * tiny.hidden + h;
        const double difference = whole.final.unit[i] / whole.final.scale[n] - half.final.unit[i] / half.final.scale[n];
        REQUIRE(std::abs(difference - (mlp[i] - mean)) < 1e-12);
      }
    }
  }
  SUBCASE("dropout: each site is asked for each element of its array") {
    std::set<std::pair<std::size_t, std::uint64_t>> asked;
    plain::forward(tiny, parameters, tokens, [&](std::size_t site, std::uint64_t index) {
      REQUIRE(index < tokens.size() * tiny.hidden);
      asked.insert({site, index});
      return 1.0;
    });
    CHECK(asked.size() == (1 + 2 * tiny.layers) * tokens.size() * tiny.hidden);
    CHECK(asked.rbegin()->first == 2 * tiny.layers);
  }
}

TEST_CASE("plain gpt: parameters have fixed names, sizes and decay") {
  const plain::Parameters all = plain::make_parameters(tiny, 3);
  CHECK(all.size() == 2 + 16 * tiny.layers + 2);
  std::set<std::string> names;
  std::size_t total = 0;
  for (const plain::Array& array : all) {
    names.insert(array.name);
    total += array.values.size();
    std::size_t product = 1;
    for (const std::size_t dim : array.dims) product *= dim;
    CHECK(product == array.values.size());
    CHECK(array.decays == (array.name.ends_with("weight") || array.name == "embedding" || array.name == "position"));
  }
  CHECK(names.size() == all.size());
  const std::size_t h = tiny.hidden, width = tiny.heads * tiny.head_dim;
  const std::size_t layer = 4 * h + 3 * (h + 1) * width + (width + 1) * h + (h + 1) * tiny.ffn + (tiny.ffn + 1) * h;
  CHECK(total == (tiny.vocab + tiny.positions + 2) * h + tiny.layers * layer);
  CHECK(plain::named(all, "layer1.up.weight") == plain::Values(42, 3.0));
  CHECK_THROWS_AS(plain::named(all, "layer2.up.weight"), std::invalid_argument);
}

TEST_CASE("plain gpt: AdamW") {
  const plain::Config c{.vocab = 2, .positions = 1, .hidden = 1, .heads = 1, .head_dim = 1, .ffn = 1, .layers = 0};
  plain::Parameters parameters = plain::make_parameters(c, 2.0), gradients = plain::make_parameters(c, -0.25);

  SUBCASE("the first step moves every value by the learning rate, whatever the clipping") {
    plain::AdamW optimizer{.weight_decay = 0.1, .clip = 0.5};
    const double length = optimizer.step(parameters, gradients, 0.01);
    CHECK(length == doctest::Approx(0.25 * std::sqrt(5.0)));
    for (const plain::Array& array : parameters) {
      for (const double w : array.values) CHECK(w == doctest::Approx(2 + 0.01 - (array.decays ? 0.002 : 0)));
    }
  }
  SUBCASE("a constant gradient moves by the learning rate in every step") {
    plain::AdamW optimizer{.weight_decay = 0, .clip = 0};
    for (int step = 1; step <= 20; ++step) {
      optimizer.step(parameters, gradients, 0.01);
      CHECK(parameters[0].values[0] == doctest::Approx(2 + 0.01 * step));
    }
  }
  SUBCASE("clipping leaves a gradient of the largest norm") {
    plain::AdamW clipped{.clip = 0.1};
    clipped.step(parameters, gradients, 0.01);
    double square = 0;
    for (const plain::Values& values : clipped.mean) {
      for (const double m : values) square += m * m;
    }
    CHECK(std::sqrt(square) == doctest::Approx(0.1 * (1 - clipped.beta1)));
  }
  SUBCASE("no gradient: only the decay acts") {
    plain::AdamW optimizer{.weight_decay = 0.5};
    optimizer.step(parameters, plain::make_parameters(c), 0.1);
    for (const plain::Array& array : parameters) {
      for (const double w : array.values) CHECK(w == doctest::Approx(array.decays ? 1.9 : 2.0));
    }
  }
}

TEST_CASE("plain gpt: it learns a sequence by heart") {
  plain::Parameters parameters = random_parameters(tiny, 3);
  const plain::Tokens tokens{1, 4, 2, 8, 5}, targets{4, 2, 8, 5, 7};
  plain::AdamW optimizer;
  const double before = loss_of(tiny, parameters, tokens, targets);
  for (int step = 0; step < 100; ++step) {
    const auto result = plain::loss_and_gradients(tiny, parameters, tokens, targets);
    optimizer.step(parameters, result.gradients, 0.02);
  }
  CHECK(before > 1.5);
  CHECK(loss_of(tiny, parameters, tokens, targets) < 0.1);
}

TEST_CASE("plain gpt: input that cannot be meant is refused") {
  const plain::Parameters parameters = plain::make_parameters(tiny);
  CHECK_THROWS_AS(plain::forward(tiny, parameters, {}), std::invalid_argument);
  CHECK_THROWS_AS(plain::forward(tiny, parameters, {1, 2, 3}), std::invalid_argument);
  CHECK_THROWS_AS(plain::forward(tiny, parameters, {1, 2, 3, 4, 11}), std::invalid_argument);
  CHECK_THROWS_AS(plain::loss_and_gradients(tiny, parameters, {1, 2, 3, 4, 5}, {1}), std::invalid_argument);
  CHECK_THROWS_AS(plain::loss_and_gradients(tiny, parameters, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 11}),
                  std::invalid_argument);
}
