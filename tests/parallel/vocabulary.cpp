// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/vocabulary.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace {

using namespace test;

template <class D, class... Ps>
using On = Tensor<double, D, Layout<Grid, Ps...>>;
using Table = On<Dims<vocab, hidden>, Shard<vocab, tp>>;
using Ids = Tensor<std::int32_t, Dims<batch, seq>, Layout<Grid, Shard<batch, dp>>>;
using Whole = On<Dims<batch, seq, hidden>, Shard<batch, dp>>;
using Sequence = On<Dims<batch, seq, hidden>, Shard<batch, dp>, Shard<seq, tp>>;
using Logits = On<Dims<batch, seq, vocab>, Shard<batch, dp>, Shard<vocab, tp>>;

struct Sizes {
  std::size_t b, s, v, h;
  std::size_t tokens() const { return b * s; }
};

struct Dense {
  double loss = 0;
  std::vector<double> gradient;
};

// The definition, by loops over whole rows; `count` divides the sum.
Dense dense_cross_entropy(const std::vector<double>& logits, const std::vector<double>& labels, std::size_t v,
                          double count) {
  Dense d{0, std::vector<double>(logits.size())};
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const double* row = logits.data() + n * v;
    const double top = *std::max_element(row, row + v);
    double total = 0;
    for (std::size_t i = 0; i < v; ++i) total += std::exp(row[i] - top);
    const auto label = static_cast<std::size_t>(labels[n]);
    d.loss += (top - row[label] + std::log(total)) / count;
    for (std::size_t i = 0; i < v; ++i) {
      d.gradient[n * v + i] = (std::exp(row[i] - top) / total - (i == label ? 1 : 0)) / count;
    }
  }
  return d;
}

double loss_of(const Logits& logits, const Ids& labels, double count) {
  return whole(cross_entropy<vocab>(logits, labels, count).loss)[0];
}

void loss_as_dense(const Grid& mesh, const Sizes& z, std::uint64_t seed, double deviation) {
  const auto logits = random<Logits>(mesh, {z.b, z.s, z.v}, seed, deviation);
  const auto labels = random_ids<Ids>(mesh, {z.b, z.s}, seed + 1, z.v);
  const double count = static_cast<double>(std::max<std::size_t>(z.tokens(), 1));
  const Dense dense = dense_cross_entropy(whole(logits), whole(labels), z.v, count);

  auto saved = cross_entropy<vocab>(logits, labels, count);
  static_assert(std::is_same_v<decltype(saved.loss), On<Dims<>, Partial<dp>>>);
  require_near(whole(saved.loss), {dense.loss}, 1e-13, "loss");
  const auto seed_of_loss = gradient_seed(saved.loss);
  const Logits gradient = cross_entropy_backward<vocab>(seed_of_loss, std::move(saved), labels);
  require_near(whole(gradient), dense.gradient, 1e-13, "gradient of the logits");
}

template <class To, class Y>
void embedding_as_dense(const Grid& mesh, const Sizes& z, std::uint64_t seed) {
  const auto table = random<Table>(mesh, {z.v, z.h}, seed);
  const auto ids = random_ids<Ids>(mesh, {z.b, z.s}, seed + 1, z.v);
  const auto dy = random<Y>(mesh, {z.b, z.s, z.h}, seed + 2);
  const auto rows = whole(table), chosen = whole(ids), grads = whole(dy);
  std::vector<double> y(z.tokens() * z.h), dtable(z.v * z.h);
  for (std::size_t n = 0; n < z.tokens(); ++n) {
    const auto id = static_cast<std::size_t>(chosen[n]);
    for (std::size_t i = 0; i < z.h; ++i) {
      y[n * z.h + i] = rows[id * z.h + i];
      dtable[id * z.h + i] += grads[n * z.h + i];
    }
  }
  const Y found = vocabulary_embedding<To, vocab>(table, ids);
  require(whole(found) == y, "the rows of the table, to the bit");
  const auto gradient = vocabulary_embedding_backward<vocab>(dy, table, ids);
  static_assert(std::is_same_v<decltype(gradient), const On<Table::dims, Partial<dp>, Shard<vocab, tp>>>);
  require_near(whole(gradient), dtable, 1e-14, "gradient of the table", 8.0);
}

/// The definition with smoothed and ignored labels, by loops over whole rows.
Dense dense_smoothed(const std::vector<double>& logits, const std::vector<double>& labels, std::size_t v, double count,
                     const LabelOptions& options) {
  Dense d{0, std::vector<double>(logits.size())};
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (options.ignored && static_cast<std::int64_t>(labels[n]) == *options.ignored) continue;
    const double* row = logits.data() + n * v;
    const double top = *std::max_element(row, row + v);
    double total = 0;
    for (std::size_t i = 0; i < v; ++i) total += std::exp(row[i] - top);
    for (std::size_t i = 0; i < v; ++i) {
      const double target = options.smoothing / static_cast<double>(v) +
                            (static_cast<double>(i) == labels[n] ? 1 - options.smoothing : 0);
      d.loss -= target * (row[i] - top - std::log(total)) / count;
      d.gradient[n * v + i] = (std::exp(row[i] - top) / total - target) / count;
    }
  }
  return d;
}

template <class L>
concept can_count = requires(const L labels) {
  count_labels(labels, {});
};
static_assert(can_count<Ids> && !can_count<Logits> && !can_count<Tensor<int, Dims<batch>, Layout<Grid, Partial<dp>>>>);

}  // namespace

TEST_CASE("vocabulary embedding: the rows of the table, and their gradients, whatever the split") {
  Draw draw(2);
  constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8}, vocabs[] = {1, 2, 3, 5, 7, 11, 64};
  const int cases = full() ? 400 : 25;
  for (int i = 0; i < cases; ++i) {
    const Ranks ranks = draw.ranks();
    const Sizes z{draw.of(sizes), draw.of(sizes), draw.of(vocabs), draw.of(sizes)};
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CAPTURE(z.b);
    CAPTURE(z.s);
    CAPTURE(z.v);
    CAPTURE(z.h);
    const auto check = [&](const Grid& mesh) {
      const auto seed = static_cast<std::uint64_t>(i) * 10;
      embedding_as_dense<Shard<seq, tp>, Sequence>(mesh, z, seed);
      embedding_as_dense<Replicate<tp>, Whole>(mesh, z, seed);
    };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}

TEST_CASE("cross entropy: loss and gradient are the dense ones, whatever the split") {
  Draw draw(3);
  constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8}, vocabs[] = {1, 2, 3, 5, 7, 11, 64};
  const int cases = full() ? 400 : 25;
  for (int i = 0; i < cases; ++i) {
    const Ranks ranks = draw.ranks();
    const Sizes z{draw.of(sizes), draw.of(sizes), draw.of(vocabs), 1};
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CAPTURE(z.b);
    CAPTURE(z.s);
    CAPTURE(z.v);
    const auto check = [&](const Grid& mesh) { loss_as_dense(mesh, z, static_cast<std::uint64_t>(i) * 10, 3.0); };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}

TEST_CASE("cross entropy: logits of ten thousand neither overflow nor lose the label") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}, Ranks{1, 8}}) {
    on_grid(ranks, [](const Grid& mesh) {
      loss_as_dense(mesh, {3, 5, 7, 1}, 5, 1e4);
      // One logit of +1e4 among -1e4, at every position in turn, which is every rank's in turn.
      const std::size_t v = 7;
      const auto logits = generate<Logits>(mesh, {2, v, v}, [](const auto& i) {
        return i.template position<seq>() == i.template position<vocab>() ? 1e4 : -1e4;
      });
      const auto right = generate<Ids>(mesh, {2, v}, [](const auto& i) { return i.template position<seq>(); });
      require(loss_of(logits, right, 1) == 0, "a certain and right guess costs nothing");
      const auto wrong =
          generate<Ids>(mesh, {2, v}, [&](const auto& i) { return (i.template position<seq>() + 1) % v; });
      require(loss_of(logits, wrong, 1) == 2e4 * 2 * v, "a certain and wrong guess costs the difference");
    });
  }
}

TEST_CASE("cross entropy: laws") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{3, 2}, Ranks{1, 9}}) {
    on_grid(ranks, [](const Grid& mesh) {
      const std::size_t b = 3, s = 4, v = 5;
      const double tokens = static_cast<double>(b * s);
      const auto labels = random_ids<Ids>(mesh, {b, s}, 1, v);
      require_near({loss_of(Logits(mesh, {b, s, v}), labels, tokens)}, {std::log(5.0)}, 1e-15, "equal logits");
      const auto logits = random<Logits>(mesh, {b, s, v}, 2);
      const double loss = loss_of(logits, labels, tokens);
      const auto shifted = map([](double z) { return z + 100; }, logits);
      require_near({loss_of(shifted, labels, tokens)}, {loss}, 1e-13, "a constant changes nothing");
      require_near({loss_of(logits, labels, 1) / tokens}, {loss}, 1e-14, "the count divides once");
      auto saved = cross_entropy<vocab>(logits, labels, tokens);
      const auto ones = gradient_seed(saved.loss);
      const auto gradient = cross_entropy_backward<vocab>(ones * 2.0, std::move(saved), labels);
      require_near(whole(sum<vocab>(gradient)), std::vector<double>(b * s), 1e-15, "gradients of a token sum to 0");
      require_near(
          whole(gradient),
          [&] {
            auto once = dense_cross_entropy(whole(logits), whole(labels), v, tokens).gradient;
            for (double& g : once) g *= 2;
            return once;
          }(),
          1e-15, "the seed multiplies");
    });
  }
}

TEST_CASE("cross entropy and embedding: the gradients are derivatives") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}}) {
    on_grid(ranks, [](const Grid& mesh) {
      // The embedding's rows are the logits: one function of the table, [v, v].
      using SquareTable = On<Dims<key<vocab>, vocab>, Shard<key<vocab>, tp>>;
      const std::size_t v = 4, b = 3, s = 2;
      const auto ids = random_ids<Ids>(mesh, {b, s}, 1, v);
      const auto labels = random_ids<Ids>(mesh, {b, s}, 2, v);
      auto values = whole(random<SquareTable>(mesh, {v, v}, 3));
      const auto logits_of = [&] {
        const auto table = placed<SquareTable>(mesh, {v, v}, values);
        return convert<Shard<vocab, tp>>(vocabulary_embedding<Replicate<tp>, key<vocab>>(table, ids));
      };
      auto saved = cross_entropy<vocab>(Logits(logits_of()), labels, 6);
      const auto ones = gradient_seed(saved.loss);
      const auto dlogits = convert<Replicate<tp>>(cross_entropy_backward<vocab>(ones, std::move(saved), labels));
      const auto gradient =
          whole(vocabulary_embedding_backward<key<vocab>>(dlogits, placed<SquareTable>(mesh, {v, v}, values), ids));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto at = [&, old = values[i]](double h) {
          values[i] = old + h;
          const double loss = loss_of(logits_of(), labels, 6);
          values[i] = old;
          return loss;
        };
        const double h = 1e-3;
        const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
        require(std::abs(numeric - gradient[i]) < 1e-10, "the derivative along one entry of the table");
      }
    });
  }
}

TEST_CASE("cross entropy: three all-reduces of one number per token, and a free backward") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 1}, Ranks{1, 2}, Ranks{2, 3}, Ranks{3, 3}}) {
    on_grid(ranks, [](const Grid& mesh) {
      const std::size_t b = 5, s = 7, v = 11;
      const auto logits = random<Logits>(mesh, {b, s, v}, 1);
      const auto labels = random_ids<Ids>(mesh, {b, s}, 2, v);
      const Traffic before_dp = mesh.along<dp>().traffic(), before = mesh.along<tp>().traffic();
      auto saved = cross_entropy<vocab>(logits, labels, static_cast<double>(b * s));
      const Traffic forward = mesh.along<tp>().traffic() - before;
      const auto ones = gradient_seed(saved.loss);
      cross_entropy_backward<vocab>(ones, std::move(saved), labels);
      require(mesh.along<tp>().traffic() - before == forward, "the backward is local");
      require(mesh.along<dp>().traffic() == before_dp, "nothing crosses dp");

      const auto n = static_cast<std::uint64_t>(mesh.size<tp>());
      require(forward.calls == (n == 1 ? 0 : 3), "max, sum and label");
      // Along one dp coordinate 3 * 2(n-1) numbers per token of its own; over all of them every token once.
      require(sum_over_ranks(mesh, forward.volume) == 3 * 2 * (n - 1) * b * s * sizeof(double), "volume");
    });
  }
}

TEST_CASE("vocabulary embedding: one conversion forward, and backward only where it is owed") {
  on_grid({2, 3}, [](const Grid& mesh) {
    const auto table = random<Table>(mesh, {11, 6}, 1);
    const auto ids = random_ids<Ids>(mesh, {3, 5}, 2, 11);
    const auto calls = [&](auto program) { return traffic_of<tp>(mesh, program).calls; };
    require(calls([&] { vocabulary_embedding<Shard<seq, tp>, vocab>(table, ids); }) == 1, "reduce-scatter");
    require(calls([&] { vocabulary_embedding<Replicate<tp>, vocab>(table, ids); }) == 1, "all-reduce");
    const Sequence split(mesh, {3, 5, 6});
    const Whole replicated(mesh, {3, 5, 6});
    require(calls([&] { vocabulary_embedding_backward<vocab>(split, table, ids); }) == 1, "all-gather");
    require(calls([&] { vocabulary_embedding_backward<vocab>(replicated, table, ids); }) == 0, "nothing");
  });
}

TEST_CASE("a label or an index outside of the vocabulary is an error that names both") {
  const auto message = [](auto program) -> std::string {
    try {
      on_grid({1, 2}, program);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto bad_ids = [](const Grid& mesh) { return generate<Ids>(mesh, {1, 3}, [](const auto&) { return 11; }); };
  const std::string loss = message([&](const Grid& mesh) {
    cross_entropy<vocab>(Logits(mesh, {1, 3, 11}), bad_ids(mesh), 3);
  });
  CHECK(loss.find("[0, 11)") != std::string::npos);
  const std::string rows = message([&](const Grid& mesh) {
    vocabulary_embedding<Replicate<tp>, vocab>(Table(mesh, {11, 2}), bad_ids(mesh));
  });
  CHECK(rows.find("[0, 11)") != std::string::npos);
  CHECK(rows.find("found 11") != std::string::npos);
}

TEST_CASE("cross entropy in float: rounding only") {
  using F = Tensor<float, Logits::dims, Logits::layout>;
  on_grid({2, 2}, [](const Grid& mesh) {
    const std::size_t b = 3, s = 5, v = 11;
    const auto logits = random<F>(mesh, {b, s, v}, 1, 5);
    const auto labels = random_ids<Ids>(mesh, {b, s}, 2, v);
    auto saved = cross_entropy<vocab>(logits, labels, 15);
    const Dense dense = dense_cross_entropy(whole(logits), whole(labels), v, 15);
    require_near(whole(saved.loss), {dense.loss}, 1e-6, "loss");
    const auto ones = gradient_seed(saved.loss);
    require_near(whole(cross_entropy_backward<vocab>(ones, std::move(saved), labels)), dense.gradient, 1e-7,
                 "gradient");
  });
}

TEST_CASE("the backward of the loss refuses labels that are not those of the forward") {
  launch(1, [](Communicator& world) {
    const Mesh<dp, tp> mesh(world, {1, 1});
    using Scores = Tensor<double, Dims<batch, vocab>, Layout<Mesh<dp, tp>, Shard<vocab, tp>>>;
    using Labels = Tensor<std::int32_t, Dims<batch>, Layout<Mesh<dp, tp>>>;
    const Scores logits(mesh, {4, 8});
    const Labels labels(mesh, {4}), more(mesh, {400});
    Labels foreign(mesh, {4});
    foreign.mutable_local()[2] = 100;
    const auto loss = cross_entropy<vocab>(logits, labels, 4.0);
    const auto seed = gradient_seed(loss.loss);
    CHECK_THROWS_AS(cross_entropy_backward<vocab>(seed, loss, more), Error);
    CHECK_THROWS_AS(cross_entropy_backward<vocab>(seed, loss, foreign), Error);
    CHECK_NOTHROW(static_cast<void>(cross_entropy_backward<vocab>(seed, loss, labels)));
  });
}

TEST_CASE("label smoothing and ignored tokens: the dense definition, whatever the split") {
  Draw draw(7);
  constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8}, vocabs[] = {1, 2, 3, 5, 7, 11, 64};
  const int cases = full() ? 300 : 20;
  for (int i = 0; i < cases; ++i) {
    const Ranks ranks = draw.ranks();
    const std::size_t b = draw.of(sizes), s = draw.of(sizes), v = draw.of(vocabs);
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CAPTURE(b);
    CAPTURE(s);
    CAPTURE(v);
    const auto check = [&](const Grid& mesh) {
      const auto logits = random<Logits>(mesh, {b, s, v}, static_cast<std::uint64_t>(i), 3);
      for (const std::int64_t ignored : {std::int64_t{-100}, std::int64_t{0}}) {
        for (const double smoothing : {0.0, 0.1, 1.0}) {
          const LabelOptions options{smoothing, ignored};
          const auto labels = generate<Ids>(mesh, {b, s}, [&](const auto& at) {
            const std::uint64_t bits = random_bits(static_cast<std::uint64_t>(i) + 1, at.linear);
            return bits % 3 == 0 ? ignored : static_cast<std::int64_t>(bits / 4 % v);
          });
          const double count = count_labels(labels, options);
          double expected = 0;
          for (const double label : whole(labels)) expected += label == static_cast<double>(ignored) ? 0 : 1;
          require(count == expected, "labels that are not ignored");
          const Dense dense = dense_smoothed(whole(logits), whole(labels), v, std::max(count, 1.0), options);
          auto saved = cross_entropy<vocab>(logits, labels, count, options);
          require_near(whole(saved.loss), {dense.loss}, 1e-13, "loss");
          const auto ones = gradient_seed(saved.loss);
          require_near(whole(cross_entropy_backward<vocab>(ones, std::move(saved), labels)), dense.gradient, 1e-13,
                       "gradient");
        }
      }
    };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}

TEST_CASE("label smoothing with the local vocabulary: the loss is the same however the vocabulary is split") {
  // Spread over V / t entries instead of V, smoothing would be t times as strong.
  const double smoothing = 0.2;
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{1, 2}, Ranks{1, 5}, Ranks{2, 3}, Ranks{1, 9}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      const std::size_t v = 7;  // fewer entries than ranks too
      const auto labels = generate<Ids>(mesh, {2, v}, [](const auto& i) { return i.template position<seq>(); });
      // Logits of 6 at the label and 0 elsewhere: log(e^6 + 6) - (1 - smoothing) * 6 - smoothing / 7 * 6.
      const auto logits = generate<Logits>(mesh, {2, v, v}, [](const auto& i) {
        return i.template position<seq>() == i.template position<vocab>() ? 6.0 : 0.0;
      });
      const double expected = std::log(std::exp(6.0) + 6) - (1 - smoothing) * 6 - smoothing / 7 * 6;
      auto saved = cross_entropy<vocab>(logits, labels, 2.0 * v, {.smoothing = smoothing});
      require_near(whole(saved.loss), {expected}, 1e-14, "loss");
      const auto ones = gradient_seed(saved.loss);
      require_near(whole(sum<vocab>(cross_entropy_backward<vocab>(ones, std::move(saved), labels))),
                   std::vector<double>(2 * v), 1e-15, "the targets of a token add up to 1");
    });
  }
}

TEST_CASE("mean of means: micro-batches of few and of no tokens, divided once, have the gradient of one batch") {
  const LabelOptions options{.ignored = -1};
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{4, 1}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      // Four micro-batches of two rows: 10, 7, 1 and 0 tokens, and ranks along dp without any.
      const std::size_t s = 5, v = 6, micro = 4;
      const std::size_t kept[] = {10, 7, 1, 0};
      const auto rows = random<On<Dims<batch, seq, vocab>>>(mesh, {2 * micro, s, v}, 1);
      const auto chosen = [&](std::size_t row, std::size_t position) {
        const std::size_t number = row % 2 * s + position;
        return number < kept[row / 2] ? static_cast<int>((row + position) % v) : -1;
      };
      const auto part = [&](std::size_t first, std::size_t count) {
        const auto all = whole(rows);
        return std::pair{placed<Logits>(mesh, {count, s, v},
                                        {all.begin() + static_cast<std::ptrdiff_t>(first * s * v),
                                         all.begin() + static_cast<std::ptrdiff_t>((first + count) * s * v)}),
                         generate<Ids>(mesh, {count, s}, [&](const auto& i) {
                           return chosen(first + i.template position<batch>(), i.template position<seq>());
                         })};
      };
      const auto learn = [&](const auto& of, double count) {
        auto saved = cross_entropy<vocab>(of.first, of.second, count, options);
        const double loss = whole(saved.loss)[0];
        const auto ones = gradient_seed(saved.loss);
        return std::pair{loss, whole(cross_entropy_backward<vocab>(ones, std::move(saved), of.second))};
      };
      const auto all = part(0, 2 * micro);
      require(count_labels(all.second, options) == 18, "all tokens");
      const auto once = learn(all, 18);
      double count = 0, loss = 0;
      std::vector<double> gradients;
      for (std::size_t m = 0; m < micro; ++m) count += count_labels(part(2 * m, 2).second, options);
      require(count == 18, "the counts of micro-batches add up");
      for (std::size_t m = 0; m < micro; ++m) {
        const auto [l, g] = learn(part(2 * m, 2), count);
        loss += l;
        gradients.insert(gradients.end(), g.begin(), g.end());
      }
      require_near({loss}, {once.first}, 1e-14, "loss");
      require_near(gradients, once.second, 1e-15, "gradients");
    });
  }
}

TEST_CASE("ignored tokens: whatever their logits are, and when there is nothing else") {
  on_grid({2, 2}, [](const Grid& mesh) {
    const LabelOptions options{0.1, 3};
    const auto logits = generate<Logits>(mesh, {2, 2, 5}, [](const auto& i) {
      return i.template position<seq>() == 1 ? std::nan("") : 0.5 * static_cast<double>(i.linear);
    });
    const auto labels =
        generate<Ids>(mesh, {2, 2}, [](const auto& i) { return i.template position<seq>() == 1 ? 3 : 4; });
    auto saved = cross_entropy<vocab>(logits, labels, count_labels(labels, options), options);
    require(std::isfinite(whole(saved.loss)[0]), "the others have a loss");
    const auto ones = gradient_seed(saved.loss);
    for (const double g : whole(cross_entropy_backward<vocab>(ones, std::move(saved), labels))) {
      require(std::isfinite(g), "and gradients");
    }
    const auto padding = generate<Ids>(mesh, {2, 2}, [](const auto&) { return 3; });
    require(count_labels(padding, options) == 0, "nothing");
    auto nothing = cross_entropy<vocab>(random<Logits>(mesh, {2, 2, 5}, 1), padding, 0, options);
    require(whole(nothing.loss)[0] == 0, "no loss");
    const auto seed = gradient_seed(nothing.loss);
    for (const double g : whole(cross_entropy_backward<vocab>(seed, std::move(nothing), padding)))
      require(g == 0, "none");
  });
}

TEST_CASE("label options: smoothing costs no call more, counting one where something is ignored") {
  for (const Ranks ranks : {Ranks{1, 2}, Ranks{2, 3}}) {
    on_grid(ranks, [](const Grid& mesh) {
      const auto logits = random<Logits>(mesh, {5, 7, 11}, 1);
      const auto labels = random_ids<Ids>(mesh, {5, 7}, 2, 11);
      const Traffic over_tp = traffic_of<tp>(mesh, [&] { cross_entropy<vocab>(logits, labels, 35, {0.1, 3}); });
      require(over_tp.calls == 3, "max, sum and targets");
      const std::uint64_t wide = mesh.size<dp>() > 1 ? 1 : 0;
      require(traffic_of<dp>(mesh, [&] { require(count_labels(labels, {}) == 35, "all"); }).calls == 0, "no call");
      require(traffic_of<dp>(mesh, [&] { static_cast<void>(count_labels(labels, {0, 3})); }).calls == wide, "one");
      require(traffic_of<tp>(mesh, [&] { static_cast<void>(count_labels(labels, {0, 3})); }).calls == 0, "replicas");
    });
  }
}

TEST_CASE("label options: a smoothing that is no fraction, and labels that are neither entries nor ignored") {
  const auto message = [](const LabelOptions& options, int label) -> std::string {
    try {
      on_grid({1, 2}, [&](const Grid& mesh) {
        const auto labels = generate<Ids>(mesh, {1, 3}, [&](const auto&) { return label; });
        cross_entropy<vocab>(Logits(mesh, {1, 3, 11}), labels, 3, options);
      });
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({.smoothing = 1.5}, 0).find("found 1.5") != std::string::npos);
  CHECK(message({.smoothing = -0.1}, 0).find("[0, 1]") != std::string::npos);
  CHECK(message({.smoothing = std::nan("")}, 0) != "");
  CHECK(message({.ignored = -100}, -1).find("found -1") != std::string::npos);
  CHECK(message({.ignored = -100}, -100) == "");
  CHECK(message({}, -100).find("ignored") != std::string::npos);
}
