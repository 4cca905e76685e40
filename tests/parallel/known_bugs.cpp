// SPDX-License-Identifier: Apache-2.0
// Bugs that systems for sharded training have had, each as a test of its name. Here are those that show in a whole model
// only; the others stand beside what they are about:
//   doubling for groups of one                  data.cpp ("a group of one changes nothing"), zero.cpp (one rank)
//   clip norm over replicated parameters        ../train/clip.cpp
//   mean of means                               vocabulary.cpp
//   label smoothing with the local vocabulary   vocabulary.cpp
//   bucket refilled before its reduction        zero_delayed.cpp
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention_support.hpp"
#include "meshwise/parallel/tensor.hpp"
#include "meshwise/parallel/vocabulary.hpp"
#include "meshwise/tensor/activation.hpp"
#include "meshwise/tensor/layer_norm.hpp"
#include "meshwise/tensor/replicas.hpp"
#include "meshwise/train/adamw.hpp"

namespace {

using namespace attending;

template <class D, class... Ps>
using On = Over<double, D, Ps...>;
using Ids = Over<std::int32_t, Dims<batch, seq>, Shard<batch, dp>, Shard<seq, Zigzag<cp>>>;
using X = On<Dims<batch, seq, hidden>, Shard<batch, dp>, Shard<seq, Zigzag<cp>, tp>>;
using Vector = On<Dims<hidden>>;

/// A model with one tied embedding, a norm between sequence-split activations, and a row bias.
template <template <class> class Of>
struct All {
  Of<On<Dims<vocab, hidden>, Shard<vocab, tp>>> table;
  Of<Vector> gain, bias;
  Of<On<Dims<hidden, ffn>, Shard<ffn, tp>>> up;
  Of<On<Dims<ffn>, Shard<ffn, tp>>> up_bias;
  Of<On<Dims<ffn, hidden>, Shard<ffn, tp>>> down;
  Of<Vector> row_bias;
};
template <class F, class... As>
void each(const F& f, As&... all) {
  f(all.table...), f(all.gain...), f(all.bias...), f(all.up...), f(all.up_bias...), f(all.down...), f(all.row_bias...);
}
template <class T>
using Self = T;
using Parameters = All<Self>;
using Moments = All<AdamWState>;

constexpr std::size_t samples = 5, length = 11, words = 7, width = 6, inner = 5;
const LabelOptions options{.smoothing = 0.1, .ignored = -1};

Parameters make(const Cube& mesh) {
  std::uint64_t seed = 50;
  const auto one = [&]<class T>(detail::type<T>, const Extents<typename T::dims>& extents) {
    return normals<T>(mesh, extents, seed++, 0.5);
  };
  return {one(detail::type<decltype(Parameters::table)>{}, {words, width}),
          one(detail::type<Vector>{}, {width}),
          one(detail::type<Vector>{}, {width}),
          one(detail::type<decltype(Parameters::up)>{}, {width, inner}),
          one(detail::type<decltype(Parameters::up_bias)>{}, {inner}),
          one(detail::type<decltype(Parameters::down)>{}, {inner, width}),
          one(detail::type<Vector>{}, {width})};
}

/// Token numbers by global position; labels are those of the next position, and some are ignored.
Ids tokens(const Cube& mesh, std::size_t ahead) {
  return generate<Ids>(mesh, {samples, length}, [ahead](const auto& i) {
    const std::size_t at = i.template position<seq>() + ahead, sample = i.template position<batch>();
    if (ahead == 1 && (at * (sample + 1)) % 5 == 0) return std::int32_t{-1};
    return static_cast<std::int32_t>(random_bits(sample, at) % words);
  });
}

struct Result {
  double loss;
  Parameters gradients;  // summed
};

Result learn(const Cube& mesh, const Parameters& w, bool backward = true) {
  const Ids ids = tokens(mesh, 0), labels = tokens(mesh, 1);
  const X x = vocabulary_embedding<Shard<seq, tp>, vocab>(w.table, ids);
  const auto norm = layer_norm(x, w.gain, w.bias);
  const auto a = convert<Replicate<tp>>(norm.y);
  const auto h = column_linear<hidden>(a, w.up, w.up_bias);
  const auto u = gelu(h);
  const X y = row_linear<Shard<seq, tp>, ffn>(u, w.down, w.row_bias) + x;
  const auto z = convert<Replicate<tp>>(y);
  auto loss = cross_entropy<vocab>(contract<hidden>(z, w.table), labels, count_labels(labels, options), options);
  const double value_of_loss = all_of(loss.loss)[0];
  if (!backward) return {value_of_loss, w};

  const auto seed = gradient_seed(loss.loss);
  const auto dlogits = cross_entropy_backward<vocab>(seed, std::move(loss), labels);
  const X dy = backward_to<X>(contract<vocab>(dlogits, w.table));
  const auto down = row_linear_backward(dy, u, w.down);
  const auto up = column_linear_backward(gelu_backward(down.x, h), a, w.up);
  auto dn = layer_norm_backward(backward_to<X>(up.x), x, norm, w.gain);
  dn.x += dy;
  const auto table = einsum<Dims<vocab, hidden>>(dlogits, z) + vocabulary_embedding_backward<vocab>(dn.x, w.table, ids);
  const auto summed = [](const auto& parameter, const auto& gradient) {
    return reshard<typename detail::bare<decltype(parameter)>::layout>(gradient);
  };
  return {value_of_loss,
          {summed(w.table, table), summed(w.gain, dn.gain), summed(w.bias, dn.bias), summed(w.up, up.weight),
           summed(w.up_bias, up.bias), summed(w.down, down.weight), summed(w.row_bias, down.bias)}};
}

using Numbers = std::vector<std::vector<double>>;  // the loss and the whole gradients

Numbers numbers(std::array<int, 3> sizes) {
  Numbers result;
  on_cube(sizes, [&](const Cube& mesh) {
    const Result one = learn(mesh, make(mesh));
    Numbers all{{one.loss}};
    each([&](const auto& g) { all.push_back(all_of(g)); }, one.gradients);
    if (mesh.is_first()) result = std::move(all);
  });
  return result;
}
enum Which : std::size_t { the_loss, the_table, the_gain, the_bias, up, up_bias, down, the_row_bias };

void require_as_on_one_rank(std::array<int, 3> sizes, std::initializer_list<std::size_t> which) {
  static const Numbers expected = numbers({1, 1, 1});
  const Numbers found = numbers(sizes);
  for (const std::size_t i : which) {
    CAPTURE(i);
    CHECK(difference(found[i], expected[i]) < 1e-12);
    CHECK(largest(expected[i]) > 1e-3);
  }
}

}  // namespace

// The loss was multiplied by cp and divided over another group: gradients off by a factor that Adam hides.
TEST_CASE("loss scaled by cp: loss and gradients are the same for 8 x 1, 4 x 2, 2 x 4 and 1 x 8 ranks") {
  for (const std::array<int, 3> sizes :
       {std::array{8, 1, 1}, std::array{4, 2, 1}, std::array{2, 4, 1}, std::array{1, 8, 1}, std::array{2, 2, 2}}) {
    require_as_on_one_rank(sizes, {the_loss, the_table, the_gain, the_bias, up, up_bias, down, the_row_bias});
  }
}

// Ranks along tp see their own tokens only; without the sum over tp their weights drift apart.
TEST_CASE("norm-weight gradients under SP: those of one rank, and after three steps all ranks have the same weights") {
  for (const std::array<int, 3> sizes :
       {std::array{1, 1, 2}, std::array{1, 1, 4}, std::array{2, 1, 2}, std::array{1, 2, 3}}) {
    require_as_on_one_rank(sizes, {the_gain, the_bias});
    on_cube(sizes, [](const Cube& mesh) {
      Parameters w = make(mesh);
      Moments moments{AdamWState(w.table),   AdamWState(w.gain), AdamWState(w.bias),    AdamWState(w.up),
                      AdamWState(w.up_bias), AdamWState(w.down), AdamWState(w.row_bias)};
      for (std::uint64_t step = 1; step <= 3; ++step) {
        const Result one = learn(mesh, w);
        each([&](auto& x, const auto& g, auto& state) { adamw_step(x, g, state, step, {}); }, w, one.gradients,
             moments);
      }
      each([](const auto& x) { check_replicas(x); }, w);
    });
  }
}

// Added before the sum over tp it would count t times, and its gradient once per rank.
TEST_CASE("row bias added once: forward and gradient are those of one rank") {
  for (const std::array<int, 3> sizes : {std::array{1, 1, 2}, std::array{1, 1, 5}, std::array{2, 1, 3}}) {
    require_as_on_one_rank(sizes, {the_loss, the_row_bias});
  }
}

// One copy's gradient was dropped, or both were summed after they had been reduced.
TEST_CASE("tied embeddings: the gradient is that of both uses, on any mesh") {
  for (const std::array<int, 3> sizes : {std::array{2, 1, 1}, std::array{1, 1, 3}, std::array{2, 2, 2}}) {
    require_as_on_one_rank(sizes, {the_loss, the_table});
  }
  on_cube({1, 1, 1}, [](const Cube& mesh) {
    const Parameters w = make(mesh);
    const auto gradient = all_of(learn(mesh, w).gradients.table);
    for (const std::size_t at : {std::size_t{0}, std::size_t{9}, words * width - 1}) {
      const auto moved = [&](double by) {
        Parameters other = w;
        other.table.mutable_local()[at] += by;
        return learn(mesh, other, false).loss;
      };
      const double step = 1e-3,
                   numeric = (8 * (moved(step) - moved(-step)) - (moved(2 * step) - moved(-2 * step))) / (12 * step);
      require(std::abs(numeric - gradient[at]) < 1e-9, "the derivative of the loss by an entry that is used twice");
    }
  });
}
